#include "node/nri/required_plugins.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

constexpr std::string_view kRequired = "required-plugins.noderesource.dev";
constexpr std::string_view kTolerated = "tolerate-missing-plugins.noderesource.dev";

std::string ValueOf(const std::map<std::string, std::string>& annotations, std::string_view key,
                    std::string_view container) {
  for (const std::string& name :
       {StrCat(key, "/container.", container), StrCat(key, "/pod"), std::string(key)}) {
    if (const auto found = annotations.find(name); found != annotations.end()) return found->second;
  }
  return "";
}

}  // namespace

bool RequiresPlugins(const std::map<std::string, std::string>& annotations) {
  return std::ranges::any_of(annotations,
                             [](const auto& entry) { return entry.first.starts_with(kRequired); });
}

std::vector<std::string> MissingPlugins(std::vector<std::string> required,
                                        const std::map<std::string, std::string>& annotations,
                                        std::string_view container,
                                        const std::vector<std::string>& connected) {
  const std::string tolerated = ToLower(ValueOf(annotations, kTolerated, container));
  if (tolerated == "true" || tolerated == "1") return {};
  const std::string listed = ValueOf(annotations, kRequired, container);
  std::string_view rest = Trim(listed);
  if (rest.starts_with('[')) rest.remove_prefix(1);
  if (rest.ends_with(']')) rest.remove_suffix(1);
  for (std::string_view name : Split(rest, ',')) {
    name = Trim(name);
    while (!name.empty() && (name.front() == '"' || name.front() == '\'')) name.remove_prefix(1);
    while (!name.empty() && (name.back() == '"' || name.back() == '\'')) name.remove_suffix(1);
    if (!name.empty()) required.emplace_back(name);
  }
  std::erase_if(required, [&](const std::string& name) {
    return std::ranges::find(connected, name) != connected.end();
  });
  return required;
}

}  // namespace drakkar::node
