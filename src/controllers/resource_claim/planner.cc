#include "controllers/resource_claim/planner.h"

#include <algorithm>
#include <map>

#include "api/meta/finalizers.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "claims/pod_claims.h"

namespace drakkar::controllers {

namespace {

using api::Value;

// The longest generateName that leaves room for the random suffix of five characters.
constexpr std::size_t kMaxGenerateName = 57;

std::string ClaimKey(const api::Object& pod, std::string_view claim) {
  return StrCat(pod.namespace_(), "/", claim);
}

}  // namespace

bool IsPodTerminal(const api::Object& pod) {
  const std::string_view phase = pod["status"]["phase"].str();
  return phase == "Succeeded" || phase == "Failed";
}

std::string ClaimGenerateName(std::string_view pod, std::string_view entry) {
  std::string name = StrCat(pod, "-", entry, "-");
  if (name.size() <= kMaxGenerateName) return name;
  const std::size_t pod_part = pod.size() * kMaxGenerateName / name.size();
  const std::size_t entry_part = entry.size() * kMaxGenerateName / name.size();
  return StrCat(pod.substr(0, pod_part), "-", entry.substr(0, entry_part));
}

PodPlan PlanPod(const api::Object& pod, const Lookup& find_claim,
                const std::vector<api::ObjectPtr>& owned,
                const std::vector<std::pair<std::string, std::string>>& made) {
  PodPlan plan;
  if (pod.is_being_deleted() || IsPodTerminal(pod)) return plan;
  std::map<std::string, std::string> current;
  for (Value status : pod["status"]["resourceClaimStatuses"].elements()) {
    current[std::string(status["name"].str())] = status["resourceClaimName"].str();
  }
  std::map<std::string, std::string> wanted;
  bool complete = true;
  for (Value reference : pod["spec"]["resourceClaims"].elements()) {
    const claims::PodClaim resolved = claims::ResolvePodClaim(pod.root(), reference);
    const std::string& entry = resolved.entry;
    std::string name = resolved.claim_name;
    if (resolved.from_template) {
      if (resolved.state == claims::PodClaim::State::kNotNeeded) {
        wanted[entry] = "";
        continue;
      }
      if (!name.empty()) {
        const api::ObjectPtr claim = find_claim(ClaimKey(pod, name));
        if (claim == nullptr || !claims::IsMadeFor(claim->root(), pod.uid())) name.clear();
      }
      if (name.empty()) {
        // A claim that we created but could not record in the pod status.
        for (const api::ObjectPtr& claim : owned) {
          const Value annotations = claim->root()["metadata"]["annotations"];
          if (annotations.Entry(claims::kPodClaimAnnotation).str() == entry &&
              !claim->is_being_deleted()) {
            name = claim->name();
          }
        }
      }
      if (name.empty()) {
        for (const auto& [made_entry, made_name] : made) {
          if (made_entry == entry) name = made_name;
        }
      }
      if (name.empty()) {
        plan.create.push_back({entry, std::string(reference["resourceClaimTemplateName"].str())});
        complete = false;
        continue;
      }
      wanted[entry] = name;
    }
    if (name.empty()) continue;
    api::ObjectPtr claim = find_claim(ClaimKey(pod, name));
    if (!pod["spec"]["nodeName"].str().empty() && claim != nullptr && !claim->is_being_deleted() &&
        claims::IsAllocated(claim->root()) && !claims::IsReservedFor(claim->root(), pod.uid())) {
      plan.reserve.push_back(ClaimKey(pod, name));
    }
  }
  if (complete && wanted != current) {
    plan.statuses.emplace(wanted.begin(), wanted.end());
  }
  return plan;
}

api::TreePtr ClaimFromTemplate(const api::Object& pod, std::string_view entry,
                               const api::Object& claim_template) {
  const Value spec = claim_template["spec"];
  api::Draft claim = api::Draft::Object();
  claim.KeepAlive(claim_template.tree());
  api::Draft& metadata = claim["metadata"];
  metadata["generateName"] = ClaimGenerateName(pod.name(), entry);
  metadata["namespace"] = pod.namespace_();
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
  metadata["ownerReferences"].Append(claims::OwnerReference(pod.name(), pod.uid()));
  claim["spec"] = api::Draft(spec["spec"]);
  claim["spec"].KeepAlive(claim_template.tree());
  return claim.Freeze();
}

ClaimPlan PlanClaim(const api::Object& claim, const Lookup& pods,
                    const std::function<Confirmed(const std::string& pod)>& confirmed) {
  ClaimPlan plan;
  const Value status = claim["status"];
  std::size_t kept = 0;
  for (Value consumer : status["reservedFor"].elements()) {
    if (!claims::IsPod(consumer)) {
      ++kept;  // another kind of consumer, not ours to judge
      continue;
    }
    const std::string pod_name = StrCat(claim.namespace_(), "/", consumer["name"].str());
    api::ObjectPtr pod = pods(pod_name);
    if (pod == nullptr && confirmed(pod_name) == Confirmed::kUnknown) {
      plan.unknown_pods.push_back(pod_name);
      ++kept;
      continue;
    }
    const bool over = pod == nullptr || pod->uid() != consumer["uid"].str() ||
                      IsPodTerminal(*pod) ||
                      (pod->is_being_deleted() && pod->root()["spec"]["nodeName"].str().empty());
    if (over) {
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
    if (std::optional<claims::OwnerPod> owner = claims::FindOwnerPod(claim.root())) {
      api::ObjectPtr pod = pods(owner->key);
      if (pod == nullptr && confirmed(owner->key) == Confirmed::kUnknown) {
        plan.unknown_pods.push_back(owner->key);
      } else {
        plan.delete_claim = pod == nullptr || pod->uid() != owner->uid || IsPodTerminal(*pod);
      }
    }
  }
  if (kept == 0 && plan.unknown_pods.empty() &&
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
