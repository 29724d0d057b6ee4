#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apiserver/auth/rule.h"
#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// Role-based access control with the API server's own Roles, ClusterRoles and bindings. They are
// compiled into an index by subject, which is rebuilt when one of the four kinds changed; a check
// looks only at the rules of the user's own roles.
//
// Members of system:masters may do everything, always. Before Attach all others are denied. Bound
// to the API server's loop.
class RbacAuthorizer final : public Authorizer {
 public:
  RbacAuthorizer();
  ~RbacAuthorizer() override;

  // `core` must outlive this, or Detach must come first.
  void Attach(const Core& core);
  void Detach();

  Decision Check(const Attributes& attributes) override;
  // For non-resource paths; verbs are "get", "post" ... in lower case.
  Decision CheckPath(const UserInfo& user, std::string_view verb, std::string_view path);

  // The rules that are bound to the user, in the namespace and cluster-wide.
  std::vector<api::TreePtr> RulesFor(const UserInfo& user, std::string_view namespace_);
  // The rules of a role, including aggregated ones; empty if there is no such role.
  std::vector<api::TreePtr> RulesOfRole(bool cluster, std::string_view namespace_,
                                        const std::string& name) const;
  bool HasRole(bool cluster, std::string_view namespace_, const std::string& name) const;
  // Whether the user may do everything that `rule` (a PolicyRule) allows, in the namespace (""
  // means cluster-wide).
  bool Covers(const UserInfo& user, std::string_view namespace_, api::Value rule);

 private:
  struct Role;
  struct Grant;
  class Builder;
  using Grants = std::vector<Grant>;
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  using BySubject = std::unordered_map<std::string, Grants, TextHash, std::equal_to<>>;

  void Refresh();
  // Calls `visit` with the grants of the user and of each group, until it returns true.
  template <typename Visit>
  bool ForEachGrant(const UserInfo& user, Visit visit) const;

  const WatchCache* roles_ = nullptr;
  const WatchCache* cluster_roles_ = nullptr;
  const WatchCache* bindings_ = nullptr;
  const WatchCache* cluster_bindings_ = nullptr;
  // The newest change of each kind when the index was built.
  storage::Revision seen_[4] = {-1, -1, -1, -1};
  BySubject users_;
  BySubject groups_;
};

}  // namespace drakkar::apiserver
