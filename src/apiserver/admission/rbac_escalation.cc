#include "apiserver/admission/rbac_escalation.h"

#include <algorithm>
#include <cstdint>

#include "api/scheme/scheme.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
// Limit for permission checks per request. A rule with four long lists would need billions.
constexpr double kMaxRights = 100'000;

std::string ListText(api::Value list) {
  std::vector<std::string> parts;
  for (api::Value each : list.elements()) parts.push_back(Quote(each.str()));
  return StrCat("[", Join(parts, ", "), "]");
}

// {APIGroups:[""], Resources:["pods"], Verbs:["get"]}
std::string RuleText(api::Value rule) {
  std::vector<std::string> parts;
  for (const auto& [field, name] : {std::pair(api::FieldName("apiGroups"), "APIGroups"),
                                    std::pair(api::FieldName("resources"), "Resources"),
                                    std::pair(api::FieldName("resourceNames"), "ResourceNames"),
                                    std::pair(api::FieldName("nonResourceURLs"), "NonResourceURLs"),
                                    std::pair(api::FieldName("verbs"), "Verbs")}) {
    if (!rule[field].empty()) parts.push_back(StrCat(name, ":", ListText(rule[field])));
  }
  return StrCat("{", Join(parts, ", "), "}");
}

// The number of single permissions in a rule: every verb with every resource, and so on.
double RightsIn(api::Value rule) {
  const auto count = [&](api::FieldName list) { return static_cast<double>(rule[list].size()); };
  return count("verbs") * (count("nonResourceURLs") + count("apiGroups") * count("resources") *
                                                          std::max(1.0, count("resourceNames")));
}

}  // namespace

bool RbacEscalation::Concerns(const Request& request) const {
  return request.kind->group == kGroup;
}

std::optional<Failure> RbacEscalation::Admit(const Request& request, api::Draft* object,
                                             api::Value before, const StrategyContext& context) {
  const api::KindSchema& kind = *request.kind;
  if (kind.group != kGroup || object == nullptr) return std::nullopt;
  const bool is_binding = kind.kind == "RoleBinding" || kind.kind == "ClusterRoleBinding";
  const api::TreePtr frozen = object->Freeze();
  const api::Value after = frozen->root();
  std::vector<api::TreePtr> granted;
  if (is_binding) {
    if (api::Equal(after["roleRef"], before["roleRef"]) &&
        api::Equal(after["subjects"], before["subjects"])) {
      return std::nullopt;
    }
    const std::string_view role_kind = after["roleRef"]["kind"].str();
    const std::string role(after["roleRef"]["name"].str());
    const bool cluster = role_kind == "ClusterRole";
    if (context
            .authorize("bind", kGroup, cluster ? "clusterroles" : "roles", "", request.namespace_,
                       role)
            .allowed) {
      return std::nullopt;
    }
    // The role does not exist yet, so its rules are unknown.
    if (!rbac_.HasRole(cluster, request.namespace_, role)) {
      return NotFoundFailure(*api::FindKind(kGroup, "v1", cluster ? "ClusterRole" : "Role"), role);
    }
    granted = rbac_.RulesOfRole(cluster, request.namespace_, role);
  } else {
    if (api::Equal(after["rules"], before["rules"]) &&
        api::Equal(after["aggregationRule"], before["aggregationRule"])) {
      return std::nullopt;
    }
    if (context.authorize("escalate", kGroup, kind.plural, "", request.namespace_, request.name)
            .allowed) {
      return std::nullopt;
    }
    for (api::Value rule : after["rules"].elements()) granted.push_back(api::CopyTree(rule));
    if (!after["aggregationRule"]["clusterRoleSelectors"].empty()) {
      // An aggregating role may come to contain any rule.
      granted.push_back(api::Draft{{"verbs", api::Draft::Array({"*"})},
                                   {"apiGroups", api::Draft::Array({"*"})},
                                   {"resources", api::Draft::Array({"*"})}}
                            .Freeze());
    }
  }
  double rights = 0;
  for (const api::TreePtr& rule : granted) rights += RightsIn(rule->root());
  if (rights > kMaxRights) {
    return ForbiddenFailure(
        kind, request.name,
        StrCat("the rules grant more than ", static_cast<std::int64_t>(kMaxRights),
               " permissions, too many to check against those of user ", Quote(request.user.name),
               "; grant fewer at once"));
  }
  std::string missing;
  for (const api::TreePtr& rule : granted) {
    if (!rbac_.Covers(request.user, request.namespace_, rule->root())) {
      missing += StrCat("\n", RuleText(rule->root()));
    }
  }
  if (missing.empty()) return std::nullopt;
  std::vector<std::string> groups;
  for (const std::string& group : request.user.groups) groups.push_back(Quote(group));
  return ForbiddenFailure(
      kind, request.name,
      StrCat("user ", Quote(request.user.name), " (groups=[", Join(groups, " "),
             "]) is attempting to grant RBAC permissions not currently held:", missing));
}

}  // namespace drakkar::apiserver
