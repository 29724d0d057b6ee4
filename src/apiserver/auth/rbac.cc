#include "apiserver/auth/rbac.h"

#include <algorithm>
#include <set>

#include "api/meta/label_selector.h"
#include "api/tree/draft.h"
#include "apiserver/auth/demanded_value.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
constexpr std::string_view kMasters = "system:masters";

bool IsMaster(const UserInfo& user) {
  return std::ranges::find(user.groups, kMasters) != user.groups.end();
}

}  // namespace

struct RbacAuthorizer::Role {
  std::vector<PolicyRule> rules;
  std::vector<api::TreePtr> sources;  // the same rules as objects
};

struct RbacAuthorizer::Grant {
  std::string namespace_;            // empty: cluster-wide
  std::shared_ptr<const Role> role;  // null: the role does not exist
  std::string missing;               // then the message about it
};

// Builds the index. Compiles each role once, however many bindings refer to it.
class RbacAuthorizer::Builder {
 public:
  explicit Builder(RbacAuthorizer& owner) : owner_(owner) {}

  std::shared_ptr<const Role> Find(bool cluster, const std::string& key) {
    return cluster ? ClusterRole(key) : NamespacedRole(key);
  }

  void Build() {
    owner_.users_.clear();
    owner_.groups_.clear();
    for (const auto& [key, binding] : owner_.cluster_bindings_->objects()) AddBinding(*binding, "");
    for (const auto& [key, binding] : owner_.bindings_->objects()) {
      AddBinding(*binding, binding->namespace_());
    }
  }

 private:
  void AddBinding(const api::Object& binding, std::string_view home) {
    const api::Value reference = binding["roleRef"];
    const std::string_view name = reference["name"].str();
    Grant grant;
    grant.namespace_ = home;
    if (reference["kind"].str() == "ClusterRole") {
      grant.role = ClusterRole(name);
      if (!grant.role) {
        grant.missing = StrCat("clusterrole.rbac.authorization.k8s.io ", Quote(name), " not found");
      }
    } else if (!home.empty()) {
      grant.role = NamespacedRole(StrCat(home, "/", name));
      if (!grant.role) {
        grant.missing = StrCat("role.rbac.authorization.k8s.io ", Quote(name), " not found");
      }
    } else {
      return;  // a cluster binding cannot refer to a Role
    }
    for (api::Value subject : binding["subjects"].elements()) {
      const std::string_view kind = subject["kind"].str();
      std::string who(subject["name"].str());
      if (kind == "Group") {
        owner_.groups_[std::move(who)].push_back(grant);
      } else if (kind == "User") {
        owner_.users_[std::move(who)].push_back(grant);
      } else if (kind == "ServiceAccount") {
        const std::string_view stated = subject["namespace"].str();
        const std::string_view account_home = stated.empty() ? home : stated;
        if (account_home.empty()) continue;
        owner_.users_[StrCat("system:serviceaccount:", account_home, ":", who)].push_back(grant);
      }
    }
  }

  std::shared_ptr<const Role> NamespacedRole(const std::string& key) {
    auto [found, is_new] = roles_.try_emplace(key);
    if (is_new) {
      if (api::ObjectPtr object = owner_.roles_->Find(key)) {
        auto role = std::make_shared<Role>();
        AddRules(*object, *role);
        found->second = std::move(role);
      }
    }
    return found->second;
  }

  std::shared_ptr<const Role> ClusterRole(std::string_view name) {
    auto [found, is_new] = cluster_roles_.try_emplace(std::string(name));
    if (is_new) {
      if (api::ObjectPtr object = owner_.cluster_roles_->Find(found->first)) {
        auto role = std::make_shared<Role>();
        std::set<std::string, std::less<>> visited;
        AddClusterRules(*object, *role, visited);
        found->second = std::move(role);
      }
    }
    return found->second;
  }

  static void AddRules(const api::Object& object, Role& role) {
    for (api::Value rule : object["rules"].elements()) {
      role.rules.emplace_back(rule);
      role.sources.push_back(api::CopyTree(rule));
    }
  }

  // An aggregating role has the rules of the roles that its selectors match, which may aggregate
  // too.
  void AddClusterRules(const api::Object& object, Role& role,
                       std::set<std::string, std::less<>>& visited) {
    if (!visited.emplace(object.name()).second) return;
    const api::Value selectors = object["aggregationRule"]["clusterRoleSelectors"];
    if (selectors.empty()) return AddRules(object, role);
    for (api::Value each : selectors.elements()) {
      const Result<api::LabelSelector> selector = api::LabelSelector::FromObject(each);
      if (!selector.ok()) continue;
      for (const auto& [name, candidate] : owner_.cluster_roles_->objects()) {
        if (selector->Matches((*candidate)["metadata"]["labels"])) {
          AddClusterRules(*candidate, role, visited);
        }
      }
    }
  }

  RbacAuthorizer& owner_;
  std::map<std::string, std::shared_ptr<const Role>> roles_;
  std::map<std::string, std::shared_ptr<const Role>> cluster_roles_;
};

RbacAuthorizer::RbacAuthorizer() = default;
RbacAuthorizer::~RbacAuthorizer() = default;

void RbacAuthorizer::Attach(const Core& core) {
  Detach();
  roles_ = core.FindCache(kGroup, "roles");
  cluster_roles_ = core.FindCache(kGroup, "clusterroles");
  bindings_ = core.FindCache(kGroup, "rolebindings");
  cluster_bindings_ = core.FindCache(kGroup, "clusterrolebindings");
}

void RbacAuthorizer::Detach() {
  roles_ = cluster_roles_ = bindings_ = cluster_bindings_ = nullptr;
  std::ranges::fill(seen_, -1);
  users_.clear();
  groups_.clear();
}

void RbacAuthorizer::Refresh() {
  if (roles_ == nullptr) return;
  const storage::Revision now[4] = {roles_->last_change(), cluster_roles_->last_change(),
                                    bindings_->last_change(), cluster_bindings_->last_change()};
  if (std::ranges::equal(now, seen_)) return;
  std::ranges::copy(now, seen_);
  Builder(*this).Build();
}

template <typename Visit>
bool RbacAuthorizer::ForEachGrant(const UserInfo& user, Visit visit) const {
  const auto look = [&](const BySubject& subjects, std::string_view who) {
    const auto found = subjects.find(who);
    return found != subjects.end() && std::ranges::any_of(found->second, visit);
  };
  if (look(users_, user.name)) return true;
  return std::ranges::any_of(user.groups,
                             [&](const std::string& group) { return look(groups_, group); });
}

Decision RbacAuthorizer::Check(const Attributes& asked) {
  if (IsMaster(asked.user)) return Decision::Allow();
  Refresh();
  Attributes attributes = asked;
  // Permission to read one object by name includes listing and watching just that one.
  if (asked.name.empty() && (asked.verb == "list" || asked.verb == "watch")) {
    attributes.name = DemandedValue(asked.field_selector, "metadata.name");
  }
  const std::uint32_t bit = PolicyRule::BitOf(attributes.verb);
  // A namespace counts as being in itself: permission to read in it includes reading it.
  const std::string_view home = attributes.namespace_.empty() && attributes.group.empty() &&
                                        attributes.resource == "namespaces"
                                    ? attributes.name
                                    : attributes.namespace_;
  std::string reason;
  const bool allowed = ForEachGrant(attributes.user, [&](const Grant& grant) {
    if (!grant.namespace_.empty() && grant.namespace_ != home) return false;
    if (grant.role == nullptr) {
      reason += StrCat(reason.empty() ? "RBAC: " : ", ", grant.missing);
      return false;
    }
    return std::ranges::any_of(
        grant.role->rules, [&](const PolicyRule& rule) { return rule.Allows(attributes, bit); });
  });
  return allowed ? Decision::Allow() : Decision::Deny(std::move(reason));
}

Decision RbacAuthorizer::CheckPath(const UserInfo& user, std::string_view verb,
                                   std::string_view path) {
  if (IsMaster(user)) return Decision::Allow();
  Refresh();
  const std::uint32_t bit = PolicyRule::BitOf(verb);
  const bool allowed = ForEachGrant(user, [&](const Grant& grant) {
    if (!grant.namespace_.empty() || grant.role == nullptr) return false;
    return std::ranges::any_of(grant.role->rules, [&](const PolicyRule& rule) {
      return rule.AllowsPath(verb, bit, path);
    });
  });
  return allowed ? Decision::Allow() : Decision::Deny();
}

std::vector<api::TreePtr> RbacAuthorizer::RulesFor(const UserInfo& user,
                                                   std::string_view namespace_) {
  std::vector<api::TreePtr> rules;
  if (IsMaster(user)) {
    const api::Draft all = api::Draft::Array({"*"});
    rules.push_back(api::Draft{{"verbs", all}, {"apiGroups", all}, {"resources", all}}.Freeze());
    rules.push_back(api::Draft{{"verbs", all}, {"nonResourceURLs", all}}.Freeze());
    return rules;
  }
  Refresh();
  ForEachGrant(user, [&](const Grant& grant) {
    if (grant.role != nullptr && (grant.namespace_.empty() || grant.namespace_ == namespace_)) {
      rules.insert(rules.end(), grant.role->sources.begin(), grant.role->sources.end());
    }
    return false;
  });
  return rules;
}

std::vector<api::TreePtr> RbacAuthorizer::RulesOfRole(bool cluster, std::string_view namespace_,
                                                      const std::string& name) const {
  if (roles_ == nullptr) return {};
  Builder builder(const_cast<RbacAuthorizer&>(*this));
  const std::shared_ptr<const Role> role =
      builder.Find(cluster, cluster ? name : StrCat(namespace_, "/", name));
  return role == nullptr ? std::vector<api::TreePtr>() : role->sources;
}

bool RbacAuthorizer::HasRole(bool cluster, std::string_view namespace_,
                             const std::string& name) const {
  const WatchCache* cache = cluster ? cluster_roles_ : roles_;
  return cache != nullptr && cache->Find(cluster ? name : StrCat(namespace_, "/", name)) != nullptr;
}

bool RbacAuthorizer::Covers(const UserInfo& user, std::string_view namespace_, api::Value rule) {
  // The user must have every single permission of the rule.
  for (api::Value verb : rule["verbs"].elements()) {
    for (api::Value path : rule["nonResourceURLs"].elements()) {
      if (!CheckPath(user, verb.str(), path.str()).allowed) return false;
    }
    for (api::Value group : rule["apiGroups"].elements()) {
      for (api::Value each : rule["resources"].elements()) {
        const std::string_view text = each.str();
        const std::size_t slash = text.find('/');
        Attributes wanted{.user = user,
                          .verb = verb.str(),
                          .group = group.str(),
                          .resource = text.substr(0, slash),
                          .subresource = slash == std::string_view::npos ? std::string_view()
                                                                         : text.substr(slash + 1),
                          .namespace_ = namespace_,
                          .name = {},
                          .field_selector = {}};
        if (rule["resourceNames"].empty()) {
          if (!Check(wanted).allowed) return false;
          continue;
        }
        for (api::Value name : rule["resourceNames"].elements()) {
          wanted.name = name.str();
          if (!Check(wanted).allowed) return false;
        }
      }
    }
  }
  return true;
}

}  // namespace drakkar::apiserver
