#include "node/runtime/json.h"

#include "api/json/reader.h"

namespace drakkar::node {

Result<api::TreePtr> ParseJson(std::string_view text) {
  return api::ParseJson(
      text,
      {.max_depth = kMaxJsonDepth, .max_size_bytes = kMaxJsonBytes, .position_in_errors = true});
}

std::vector<std::string> Strings(api::Value list) {
  std::vector<std::string> strings;
  for (const api::Value item : list.elements()) {
    if (item.is_string()) strings.emplace_back(item.str());
  }
  return strings;
}

std::map<std::string, std::string> StringMap(api::Value map) {
  std::map<std::string, std::string> strings;
  for (const api::MemberView member : map.members()) {
    if (member.value.is_string()) strings.emplace(member.name, member.value.str());
  }
  return strings;
}

}  // namespace drakkar::node
