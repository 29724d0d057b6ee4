#include "controllers/resource_claim/planner.h"

#include <algorithm>
#include <map>

#include "api/meta/finalizers.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "claims/pod_claims.h"
#include "claims/pod_group.h"

namespace drakkar::controllers {

namespace {

using api::Value;

// The longest generateName that leaves room for the random suffix of five characters.
constexpr std::size_t kMaxGenerateName = 57;

std::string ClaimKey(const api::Object& owner, std::string_view claim) {
  return StrCat(owner.namespace_(), "/", claim);
}

// The claims in the owner's status, by entry.
std::map<std::string, std::string> RecordedClaims(const api::Object& owner) {
  std::map<std::string, std::string> recorded;
  for (Value status : owner["status"]["resourceClaimStatuses"].elements()) {
    recorded[std::string(status["name"].str())] = status["resourceClaimName"].str();
  }
  return recorded;
}

}  // namespace

bool IsPodTerminal(const api::Object& pod) {
  const std::string_view phase = pod["status"]["phase"].str();
  return phase == "Succeeded" || phase == "Failed";
}

std::string ClaimGenerateName(std::string_view owner, std::string_view entry) {
  std::string name = StrCat(owner, "-", entry, "-");
  if (name.size() <= kMaxGenerateName) return name;
  const std::size_t owner_part = owner.size() * kMaxGenerateName / name.size();
  const std::size_t entry_part = entry.size() * kMaxGenerateName / name.size();
  return StrCat(owner.substr(0, owner_part), "-", entry.substr(0, entry_part));
}

namespace {

// The claim that was made for an entry of the owner; "" if there is none. `recorded` is the one in
// the owner's status.
std::string FindMade(const api::Object& owner, const std::string& entry, std::string_view recorded,
                     const KnownClaims& known) {
  if (!recorded.empty()) {
    const api::ObjectPtr claim = known.find(ClaimKey(owner, recorded));
    if (claim != nullptr && claims::IsMadeFor(claim->root(), owner.uid())) {
      return std::string(recorded);
    }
  }
  // A claim that we created but could not record in the status.
  std::string name;
  for (const api::ObjectPtr& claim : known.owned) {
    const Value annotations = claim->root()["metadata"]["annotations"];
    if (annotations.Entry(claims::kPodClaimAnnotation).str() == entry &&
        !claim->is_being_deleted()) {
      name = claim->name();
    }
  }
  for (const auto& [made_entry, made_name] : known.made) {
    if (name.empty() && made_entry == entry) name = made_name;
  }
  return name;
}

// The claim that the group's status names for its entry; "" if there is none yet.
std::string FindOfGroup(const api::Object& group, const std::string& entry,
                        const KnownClaims& known) {
  const std::map<std::string, std::string> recorded = RecordedClaims(group);
  const auto found = recorded.find(entry);
  const std::string name = found == recorded.end() ? std::string() : found->second;
  const api::ObjectPtr claim = name.empty() ? nullptr : known.find(ClaimKey(group, name));
  return claim != nullptr && claims::IsMadeFor(claim->root(), group.uid()) ? name : std::string();
}

}  // namespace

OwnerPlan PlanPod(const api::Object& pod, const api::ObjectPtr& group, const KnownClaims& known) {
  OwnerPlan plan;
  if (pod.is_being_deleted() || IsPodTerminal(pod)) return plan;
  std::map<std::string, std::string> wanted;
  bool complete = true;
  for (Value reference : pod["spec"]["resourceClaims"].elements()) {
    const claims::PodClaim resolved = claims::ResolvePodClaim(pod.root(), reference);
    const std::string& entry = resolved.entry;
    const bool is_shared = group != nullptr && claims::IsEntryOfGroup(group->root(), reference);
    std::string name = resolved.claim_name;
    if (resolved.from_template) {
      if (resolved.state == claims::PodClaim::State::kNotNeeded) {
        wanted[entry] = "";
        continue;
      }
      name = is_shared ? FindOfGroup(*group, entry, known) : FindMade(pod, entry, name, known);
      if (name.empty()) {
        complete = false;
        if (is_shared) continue;  // made for the group, whose change queues its pods
        plan.create.push_back({entry, std::string(reference["resourceClaimTemplateName"].str())});
        continue;
      }
      wanted[entry] = name;
    }
    if (name.empty()) continue;
    api::ObjectPtr claim = known.find(ClaimKey(pod, name));
    if (!pod["spec"]["nodeName"].str().empty() && claim != nullptr && !claim->is_being_deleted() &&
        claims::IsAllocated(claim->root()) && !claims::IsReservedFor(claim->root(), pod.uid()) &&
        !(group != nullptr && claims::IsReservedForGroup(claim->root(), group->name()))) {
      const api::Object& consumer = is_shared ? *group : pod;
      plan.reserve.push_back(
          {ClaimKey(pod, name),
           {std::string(consumer.name()), std::string(consumer.uid()), is_shared}});
    }
  }
  if (complete && wanted != RecordedClaims(pod)) {
    plan.statuses.emplace(wanted.begin(), wanted.end());
  }
  return plan;
}

OwnerPlan PlanPodGroup(const api::Object& group, const KnownClaims& known) {
  OwnerPlan plan;
  if (group.is_being_deleted()) return plan;
  const std::map<std::string, std::string> recorded = RecordedClaims(group);
  std::map<std::string, std::string> wanted;
  for (Value reference : group["spec"]["resourceClaims"].elements()) {
    const std::string_view claim_template = reference["resourceClaimTemplateName"].str();
    if (claim_template.empty()) continue;
    const std::string entry(reference["name"].str());
    const auto found = recorded.find(entry);
    std::string name =
        FindMade(group, entry, found == recorded.end() ? std::string_view() : found->second, known);
    if (name.empty()) {
      plan.create.push_back({entry, std::string(claim_template)});
    } else {
      wanted[entry] = std::move(name);
    }
  }
  if (plan.create.empty() && wanted != recorded) {
    plan.statuses.emplace(wanted.begin(), wanted.end());
  }
  return plan;
}

api::TreePtr ClaimFromTemplate(const api::Object& owner, std::string_view entry,
                               const api::Object& claim_template) {
  const Value spec = claim_template["spec"];
  api::Draft claim = api::Draft::Object();
  claim.KeepAlive(claim_template.tree());
  api::Draft& metadata = claim["metadata"];
  metadata["generateName"] = ClaimGenerateName(owner.name(), entry);
  metadata["namespace"] = owner.namespace_();
  if (spec["metadata"]["labels"].has_value()) {
    metadata["labels"] = api::Draft(spec["metadata"]["labels"]);
  }
  if (spec["metadata"]["annotations"].has_value()) {
    metadata["annotations"] = api::Draft(spec["metadata"]["annotations"]);
  }
  metadata["annotations"].Entry(claims::kPodClaimAnnotation) = entry;
  // The scheduler requires the finalizer before it allocates. Setting it here saves one write per
  // pod.
  api::AddFinalizer(metadata, claims::kFinalizer);
  api::Draft reference = claims::OwnerReference(owner.name(), owner.uid());
  reference["apiVersion"] = owner["apiVersion"].str();
  reference["kind"] = owner.kind();
  metadata["ownerReferences"].Append(std::move(reference));
  claim["spec"] = api::Draft(spec["spec"]);
  claim["spec"].KeepAlive(claim_template.tree());
  return claim.Freeze();
}

ClaimPlan PlanClaim(const api::Object& claim,
                    const std::function<api::ObjectPtr(const OwnerKey&)>& find,
                    const std::function<Confirmed(const OwnerKey&)>& confirmed,
                    GroupConsumers groups) {
  ClaimPlan plan;
  const Value status = claim["status"];
  std::size_t kept = 0;
  for (Value consumer : status["reservedFor"].elements()) {
    const bool is_group = claims::IsPodGroup(consumer);
    if (!claims::IsPod(consumer) && !(is_group && groups == GroupConsumers::kChecked)) {
      ++kept;  // another kind of consumer, not ours to judge
      continue;
    }
    const OwnerKey key{is_group, ClaimKey(claim, consumer["name"].str())};
    const api::ObjectPtr object = find(key);
    if (object == nullptr && confirmed(key) == Confirmed::kUnknown) {
      plan.unknown.push_back(key);
      ++kept;
      continue;
    }
    // The pods of a group may come and go.
    const bool is_done =
        !is_group && object != nullptr &&
        (IsPodTerminal(*object) ||
         (object->is_being_deleted() && object->root()["spec"]["nodeName"].str().empty()));
    if (object == nullptr || object->uid() != consumer["uid"].str() || is_done) {
      plan.drop_uids.emplace_back(consumer["uid"].str());
    } else {
      ++kept;
    }
  }
  const bool allocated = claims::IsAllocated(claim.root());
  const bool has_finalizer = api::HasFinalizer(claim["metadata"], claims::kFinalizer);
  const bool last_one_leaves = kept == 0 && !plan.drop_uids.empty();
  plan.deallocate = allocated && kept == 0 && (last_one_leaves || claim.is_being_deleted());
  // A claim with the finalizer but without an allocation may be about to be allocated by the
  // scheduler. So only claims that we deallocate, or that are being deleted, lose the finalizer.
  plan.remove_finalizer = has_finalizer && kept == 0 && (plan.deallocate || !allocated) &&
                          (last_one_leaves || claim.is_being_deleted());
  if (kept == 0 && !claim.is_being_deleted()) {
    if (std::optional<claims::Owner> owner = claims::FindOwnerPod(claim.root())) {
      const OwnerKey key{false, owner->key};
      api::ObjectPtr pod = find(key);
      if (pod == nullptr && confirmed(key) == Confirmed::kUnknown) {
        plan.unknown.push_back(key);
      } else {
        plan.delete_claim = pod == nullptr || pod->uid() != owner->uid || IsPodTerminal(*pod);
      }
    }
  }
  if (kept == 0 && plan.unknown.empty() &&
      !api::HasFinalizerOtherThan(claim["metadata"], claims::kFinalizer) &&
      (plan.delete_claim || claim.is_being_deleted())) {
    // The claim is deleted together with its allocation, so there is no need to deallocate it
    // first.
    plan.drop_uids.clear();
    plan.deallocate = false;
    plan.remove_finalizer = has_finalizer;
  }
  return plan;
}

}  // namespace drakkar::controllers
