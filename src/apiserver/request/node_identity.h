#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/request/request.h"

namespace drakkar::apiserver {

// Extra fields of a user that name the pod and the node that a service account's token is bound to.
inline constexpr std::string_view kPodNameExtra = "authentication.kubernetes.io/pod-name";
inline constexpr std::string_view kNodeNameExtra = "authentication.kubernetes.io/node-name";

// The group of DRA drivers that run on nodes with a certificate instead of a service account:
// drakkar:node-driver:<node>, who may act for that node only.
inline constexpr std::string_view kNodeDriversGroup = "drakkar:node-drivers";
inline constexpr std::string_view kNodeDriverPrefix = "drakkar:node-driver:";

// The API server's identity towards nodes, when it asks for logs or commands. The API server itself
// does not accept it.
inline constexpr std::string_view kNodeClientUser = "kube-apiserver-kubelet-client";

// Whether a user is a node, and which one: system:node:<name> in the group system:nodes.
struct NodeIdentity {
  bool is_node = false;
  std::string_view name;  // borrowed from the user; may be empty
};

inline bool IsInGroup(const UserInfo& user, std::string_view group) {
  return std::ranges::find(user.groups, group) != user.groups.end();
}

inline NodeIdentity IdentifyNode(const UserInfo& user) {
  constexpr std::string_view kPrefix = "system:node:";
  constexpr std::string_view kGroup = "system:nodes";
  if (!std::string_view(user.name).starts_with(kPrefix)) return {};
  if (!IsInGroup(user, kGroup)) return {};
  return {true, std::string_view(user.name).substr(kPrefix.size())};
}

// The only value of an extra field; "" if there is none or more than one.
inline std::string_view OnlyExtra(const UserInfo& user, std::string_view key) {
  const auto found = user.extra.find(std::string(key));
  if (found == user.extra.end() || found->second.size() != 1) return {};
  return found->second.front();
}

// Whether the user is a driver with a certificate of its own.
inline bool IsNodeDriver(const UserInfo& user) {
  return IsInGroup(user, kNodeDriversGroup);
}

// The node that a user who is not a node acts from: that of a driver's certificate, or of the pod
// or node that a service account's token is bound to. Empty if unknown.
inline std::string_view NodeOfUser(const UserInfo& user) {
  if (IsNodeDriver(user) && std::string_view(user.name).starts_with(kNodeDriverPrefix)) {
    return std::string_view(user.name).substr(kNodeDriverPrefix.size());
  }
  return OnlyExtra(user, kNodeNameExtra);
}

}  // namespace drakkar::apiserver
