#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "apiserver/rest/request.h"

namespace drakkar::apiserver {

// Whether a user is a node, and which one: system:node:<name> in the group system:nodes.
struct NodeIdentity {
  bool is_node = false;
  std::string_view name;  // borrowed from the user; may be empty
};

inline NodeIdentity IdentifyNode(const UserInfo& user) {
  constexpr std::string_view kPrefix = "system:node:";
  constexpr std::string_view kGroup = "system:nodes";
  if (!std::string_view(user.name).starts_with(kPrefix)) return {};
  if (std::ranges::find(user.groups, kGroup) == user.groups.end()) return {};
  return {true, std::string_view(user.name).substr(kPrefix.size())};
}

}  // namespace drakkar::apiserver
