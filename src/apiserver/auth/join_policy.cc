#include "apiserver/auth/join_policy.h"

#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

struct Rule {
  std::string_view verbs;
  std::string_view resource;
  std::string_view name = "";
};

Draft Metadata(std::string_view name, std::string_view name_space) {
  return Draft(
      {{"name", name},
       {"namespace", name_space},
       {"labels", Draft::Map({{"kubernetes.io/bootstrapping", "rbac-defaults"}})},
       {"annotations", Draft::Map({{"rbac.authorization.kubernetes.io/autoupdate", "true"}})}});
}

Draft Only(Draft element) {
  Draft array = Draft::Array();
  array.Append(std::move(element));
  return array;
}

Draft Subject(std::string_view kind, std::string_view name) {
  return Draft({{"kind", kind}, {"apiGroup", kGroup}, {"name", name}});
}

// A role and its binding of the same name. Objects are created from last to first, so the binding
// comes first.
void Add(std::vector<api::TreePtr>& objects, std::string_view name, std::string_view name_space,
         const std::vector<Rule>& rules, Draft subjects) {
  objects.push_back(
      Draft({{"apiVersion", "rbac.authorization.k8s.io/v1"},
             {"kind", "RoleBinding"},
             {"metadata", Metadata(name, name_space)},
             {"subjects", std::move(subjects)},
             {"roleRef", Draft({{"apiGroup", kGroup}, {"kind", "Role"}, {"name", name}})}})
          .Freeze());
  Draft list = Draft::Array();
  for (const Rule& rule : rules) {
    Draft verbs = Draft::Array();
    for (const std::string_view verb : Split(rule.verbs, ' ')) verbs.Append(verb);
    Draft made(
        {{"verbs", std::move(verbs)}, {"apiGroups", Only("")}, {"resources", Only(rule.resource)}});
    if (!rule.name.empty()) made["resourceNames"] = Only(rule.name);
    list.Append(std::move(made));
  }
  objects.push_back(Draft({{"apiVersion", "rbac.authorization.k8s.io/v1"},
                           {"kind", "Role"},
                           {"metadata", Metadata(name, name_space)},
                           {"rules", std::move(list)}})
                        .Freeze());
}

// A controller's own account, and the user that runs all controllers in one process.
Draft Controller(std::string_view account) {
  Draft subjects = Draft::Array();
  subjects.Append(
      Draft({{"kind", "ServiceAccount"}, {"name", account}, {"namespace", "kube-system"}}));
  subjects.Append(Subject("User", "system:kube-controller-manager"));
  return subjects;
}

}  // namespace

std::vector<api::TreePtr> JoinPolicy() {
  constexpr std::string_view kRead = "get list watch";
  constexpr std::string_view kEvents = "create patch update";
  std::vector<api::TreePtr> objects;
  Add(objects, "system:controller:bootstrap-signer", "kube-system", {{kRead, "secrets"}},
      Controller("bootstrap-signer"));
  Add(objects, "system:controller:bootstrap-signer", "kube-public",
      {{kRead, "configmaps"}, {"update", "configmaps", "cluster-info"}, {kEvents, "events"}},
      Controller("bootstrap-signer"));
  Add(objects, "system:controller:token-cleaner", "kube-system",
      {{"delete get list watch", "secrets"}, {kEvents, "events"}}, Controller("token-cleaner"));
  Draft everybody = Draft::Array();
  everybody.Append(Subject("Group", "system:unauthenticated"));
  everybody.Append(Subject("Group", "system:authenticated"));
  Add(objects, "drakkar:cluster-info", "kube-public", {{"get", "configmaps", "cluster-info"}},
      std::move(everybody));
  return objects;
}

}  // namespace drakkar::apiserver
