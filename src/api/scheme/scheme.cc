#include "api/scheme/scheme.h"

#include <algorithm>
#include <tuple>

#include "api/scheme/internal/tables.h"
#include "base/text/text.h"

namespace drakkar::api {

const FieldSchema* StructSchema::Find(const Key& key) const {
  if (names != nullptr) {
    const auto found = names->find(key.view());
    return found == names->end() ? nullptr : &fields[found->second];
  }
  if (index == nullptr) {  // a schema made by hand
    const auto found = std::ranges::find(fields, &key, &FieldSchema::key);
    return found == fields.end() ? nullptr : &*found;
  }
  const std::size_t place = index[(key.id * index_multiplier) >> index_shift];
  return place < fields.size() && fields[place].key == &key ? &fields[place] : nullptr;
}

const FieldSchema* StructSchema::Find(std::string_view field_name) const {
  if (names != nullptr) {
    const auto found = names->find(field_name);
    return found == names->end() ? nullptr : &fields[found->second];
  }
  const Key* key = FindKey(field_name);
  return key == nullptr ? nullptr : Find(*key);
}

const StructSchema* FindStruct(std::string_view name) {
  const auto structs = generated::Structs();
  const auto found = std::ranges::lower_bound(structs, name, {}, &StructSchema::name);
  return found != structs.end() && found->name == name ? &*found : nullptr;
}

std::string GroupVersionKind::api_version() const {
  return group.empty() ? version : group + "/" + version;
}

std::string KindSchema::api_version() const {
  return group.empty() ? std::string(version) : StrCat(group, "/", version);
}

bool KindSchema::is_api_version(std::string_view text) const {
  if (group.empty()) return text == version;
  return text.size() == group.size() + 1 + version.size() && text.starts_with(group) &&
         text[group.size()] == '/' && text.ends_with(version);
}

std::span<const KindSchema> AllKinds() {
  return generated::Kinds();
}
std::span<const KindSchema> BodyKinds() {
  return generated::Bodies();
}

namespace {

using Identity = std::tuple<std::string_view, std::string_view, std::string_view>;

const KindSchema& KindAt(std::uint16_t index) {
  const auto kinds = generated::Kinds();
  return index < kinds.size() ? kinds[index] : generated::Bodies()[index - kinds.size()];
}

template <typename IdentityOf>
const KindSchema* Search(std::span<const std::uint16_t> order, const Identity& wanted,
                         IdentityOf identity_of) {
  const auto found = std::ranges::lower_bound(
      order, wanted, {}, [&](std::uint16_t index) { return identity_of(KindAt(index)); });
  if (found == order.end()) return nullptr;
  const KindSchema& kind = KindAt(*found);
  return identity_of(kind) == wanted ? &kind : nullptr;
}

}  // namespace

const KindSchema* FindKind(std::string_view group, std::string_view version,
                           std::string_view kind) {
  return Search(generated::KindOrder(), Identity(kind, group, version),
                [](const KindSchema& k) { return Identity(k.kind, k.group, k.version); });
}

const KindSchema* FindResource(std::string_view group, std::string_view version,
                               std::string_view plural) {
  return Search(generated::PluralOrder(), Identity(plural, group, version),
                [](const KindSchema& k) { return Identity(k.plural, k.group, k.version); });
}

const KindSchema* FindKindByApiVersion(std::string_view api_version, std::string_view kind) {
  const auto slash = api_version.find('/');
  if (slash == std::string_view::npos) return FindKind("", api_version, kind);
  // "/v1" is not the core group.
  if (slash == 0) return nullptr;
  return FindKind(api_version.substr(0, slash), api_version.substr(slash + 1), kind);
}

}  // namespace drakkar::api
