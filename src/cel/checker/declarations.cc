#include "cel/checker/declarations.h"

#include "base/text/text.h"

namespace drakkar::cel {
namespace {

template <typename Map>
const typename Map::mapped_type* Find(const Map& map, std::string_view name) {
  const auto found = map.find(name);
  return found == map.end() ? nullptr : &found->second;
}

}  // namespace

void Declarations::AddFunction(std::string name, Overload overload) {
  functions_[std::move(name)].overloads.push_back(std::move(overload));
}

void Declarations::SetImplementation(const std::string& name, Implementation implementation,
                                     Prepare prepare) {
  Function& function = functions_[name];
  function.implementation = implementation;
  function.prepare = prepare;
}

const Function* Declarations::FindFunction(std::string_view name) const {
  return Find(functions_, name);
}
const TypeRef* Declarations::FindVariable(std::string_view name) const {
  return Find(variables_, name);
}
const TypeRef* Declarations::FindTypeName(std::string_view name) const {
  return Find(type_names_, name);
}
const StructType* Declarations::FindStruct(std::string_view name) const {
  return Find(structs_, name);
}
const std::int64_t* Declarations::FindConstant(std::string_view name) const {
  return Find(constants_, name);
}

std::vector<std::string> CandidateNames(std::string_view container, std::string_view name) {
  if (name.starts_with('.')) return {std::string(name.substr(1))};
  std::vector<std::string> candidates;
  while (!container.empty()) {
    candidates.push_back(StrCat(container, ".", name));
    const std::size_t dot = container.rfind('.');
    container = dot == std::string_view::npos ? std::string_view() : container.substr(0, dot);
  }
  candidates.emplace_back(name);
  return candidates;
}

}  // namespace drakkar::cel
