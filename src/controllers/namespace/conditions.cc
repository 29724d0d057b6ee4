#include "controllers/namespace/conditions.h"

#include <vector>

#include "api/meta/time.h"
#include "base/text/text.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

namespace {

struct Condition {
  std::string_view type;
  bool holds = false;
  std::string_view reason;  // if it holds
  std::string_view otherwise;
  std::string message;
};

// "pods. has 2 resource instances, secrets. has 1 resource instances"
std::string Enumerate(const std::map<std::string, std::size_t>& counts, std::string_view verb) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) {
    parts.push_back(StrCat(name, " ", verb, " ", count, " resource instances"));
  }
  return Join(parts, ", ");
}

}  // namespace

std::optional<api::Draft> PlanNamespaceStatus(const api::Object& name_space,
                                              const NamespaceObstacles& obstacles, WallTime now) {
  const auto choose = [](bool holds, std::string text, std::string_view otherwise) {
    return holds ? std::move(text) : std::string(otherwise);
  };
  const bool undiscovered = !obstacles.unreachable.empty();
  const bool undeleted = !obstacles.undeletable.empty();
  const bool remains = !obstacles.content.empty();
  const bool finalizers = !obstacles.finalizers.empty();
  const Condition conditions[] = {
      {"NamespaceDeletionDiscoveryFailure", undiscovered, "DiscoveryFailed", "ResourcesDiscovered",
       choose(undiscovered,
              StrCat("Discovery failed for some groups, 1 failing: unable to retrieve the complete "
                     "list of server APIs: ",
                     obstacles.unreachable),
              "All resources successfully discovered")},
      {"NamespaceDeletionGroupVersionParsingFailure", false, "GroupVersionParsingFailed",
       "ParsedGroupVersions", "All legacy kube types successfully parsed"},
      {"NamespaceDeletionContentFailure", undeleted, "ContentDeletionFailed", "ContentDeleted",
       choose(undeleted,
              StrCat("Failed to delete all resource types, ", obstacles.undeletable.size(),
                     " remaining: ", Join(obstacles.undeletable, ", ")),
              "All content successfully deleted, may be waiting on finalization")},
      {"NamespaceContentRemaining", remains, "SomeResourcesRemain", "ContentRemoved",
       choose(remains,
              StrCat("Some resources are remaining: ", Enumerate(obstacles.content, "has")),
              "All content successfully removed")},
      {"NamespaceFinalizersRemaining", finalizers, "SomeFinalizersRemain", "ContentHasNoFinalizers",
       choose(finalizers,
              StrCat("Some content in the namespace has finalizers remaining: ",
                     Enumerate(obstacles.finalizers, "in")),
              "All content-preserving finalizers finished")},
  };
  const api::Value before = name_space["status"];
  api::Draft list = api::Draft::Array();
  bool changed = false;
  for (const Condition& each : conditions) {
    const api::Value old = FindCondition(before, each.type);
    const std::string_view status = each.holds ? "True" : "False";
    const std::string_view reason = each.holds ? each.reason : each.otherwise;
    const bool same_status = old["status"].str() == status;
    changed = changed || !same_status || old["reason"].str() != reason ||
              old["message"].str() != each.message;
    list.Append({{"type", each.type},
                 {"status", status},
                 {"lastTransitionTime", same_status ? std::string(old["lastTransitionTime"].str())
                                                    : api::FormatTime(now)},
                 {"reason", reason},
                 {"message", each.message}});
  }
  if (!changed) return std::nullopt;
  api::Draft status(before);
  status.KeepAlive(name_space.tree());
  status["conditions"] = std::move(list);
  return status;
}

}  // namespace drakkar::controllers
