#include "scheduler/plugins/unsupported_fields/unsupported_fields.h"

#include <utility>

#include "base/text/text.h"
#include "claims/pod_group.h"
#include "features/gates/feature_gates.h"

namespace drakkar::scheduler {

using api::Value;

namespace {

// Limits for what is compared with every node, or with every other pod. A manifest has room for
// hundreds of thousands, which would stop the scheduler for minutes.
constexpr std::size_t kMaxEntries = 1'000;           // of a list
constexpr std::size_t kMaxNodeRequirements = 1'000;  // of node affinity
constexpr std::size_t kMaxNodeValues = 10'000;       // of all of them
constexpr std::size_t kMaxSpreadConstraints = 64;

struct NodeAffinitySize {
  std::size_t requirements = 0;
  std::size_t values = 0;

  void Add(Value term) {
    ++requirements;
    for (const api::FieldName list : api::FieldNames{"matchExpressions", "matchFields"}) {
      for (const Value each : term[list].elements()) {
        ++requirements;
        values += each["values"].size();
      }
    }
  }
};

std::string TooMany(std::string_view path, std::size_t count, std::size_t limit) {
  return StrCat(path, " with more than ", limit, " entries (it has ", count, ")");
}

}  // namespace

std::string FindOversizedField(const PodInfo& pod) {
  const Value spec = pod.spec();
  if (const std::size_t count = spec["tolerations"].size(); count > kMaxEntries) {
    return TooMany("spec.tolerations", count, kMaxEntries);
  }
  if (const std::size_t count = spec["nodeSelector"].size(); count > kMaxEntries) {
    return TooMany("spec.nodeSelector", count, kMaxEntries);
  }
  if (const std::size_t count = spec["topologySpreadConstraints"].size();
      count > kMaxSpreadConstraints) {
    return TooMany("spec.topologySpreadConstraints", count, kMaxSpreadConstraints);
  }
  const Value affinity = spec["affinity"]["nodeAffinity"];
  if (!affinity.has_value()) return {};
  NodeAffinitySize size;
  const Value required = affinity["requiredDuringSchedulingIgnoredDuringExecution"];
  for (const Value each : required["nodeSelectorTerms"].elements()) size.Add(each);
  for (const Value each : affinity["preferredDuringSchedulingIgnoredDuringExecution"].elements()) {
    size.Add(each["preference"]);
  }
  if (size.requirements > kMaxNodeRequirements) {
    return TooMany("spec.affinity.nodeAffinity", size.requirements, kMaxNodeRequirements);
  }
  if (size.values > kMaxNodeValues) {
    return TooMany("spec.affinity.nodeAffinity", size.values, kMaxNodeValues);
  }
  return {};
}

std::string FindUnsupportedField(const PodInfo& pod) {
  const Value spec = pod.spec();
  std::size_t index = 0;
  for (Value volume : spec["volumes"].elements()) {
    // The first two need volume binding; the others must not be attached to two nodes.
    for (const api::FieldName kind :
         api::FieldNames{"persistentVolumeClaim", "ephemeral", "awsElasticBlockStore",
                         "gcePersistentDisk", "iscsi", "rbd"}) {
      if (volume[kind].has_value()) return StrCat("spec.volumes[", index, "].", kind);
    }
    ++index;
  }
  return {};
}

std::string UnsupportedFields::FindGroupProblem(const PodInfo& pod) const {
  constexpr std::string_view kUnsupported = " is not supported by this scheduler";
  const Value reference = pod.spec()["schedulingGroup"];
  if (!reference.has_value()) return {};
  const std::string_view name = claims::PodGroupOf(pod.pod->root());
  if (!context_.gates.Enabled(Gate::kGenericWorkload) || name.empty()) {
    return StrCat("spec.schedulingGroup", kUnsupported);
  }
  const std::string group_key = StrCat(pod.ns(), "/", name);
  const api::ObjectPtr group = context_.pod_groups.Find(group_key);
  if (group == nullptr) return StrCat("waiting for PodGroup ", group_key, " to be created");
  const Value spec = (*group)["spec"];
  std::string_view field;
  if (spec["schedulingPolicy"]["gang"].has_value()) field = "spec.schedulingPolicy.gang";
  if (!spec["schedulingConstraints"]["topology"].empty()) field = "spec.schedulingConstraints";
  if (!spec["parentCompositePodGroupName"].str().empty()) {
    field = "spec.parentCompositePodGroupName";
  }
  if (field.empty()) return {};
  return StrCat(field, " of PodGroup ", group_key, kUnsupported);
}

Status UnsupportedFields::PreFilter(Cycle& cycle) {
  std::string field = FindUnsupportedField(*cycle.pod);
  if (field.empty()) field = FindOversizedField(*cycle.pod);
  if (!field.empty()) {
    return Status::Unresolvable(StrCat(field, " is not supported by this scheduler"));
  }
  std::string problem = FindGroupProblem(*cycle.pod);
  if (problem.empty()) return Status::Skip();
  return Status::Unresolvable(std::move(problem));
}

}  // namespace drakkar::scheduler
