#include "answers/cluster/claim_use.h"

#include "base/text/text.h"
#include "claims/claim.h"
#include "device/from_api.h"
#include "scheduler/binding/binding_conditions.h"

namespace drakkar::answers {
namespace {

using api::Value;

// When the claim was allocated. Newer servers record it in the allocation. Otherwise use the time
// at which the pod was scheduled, or else the creation time of the claim, which is a lower bound.
std::string SinceOf(const ClaimUse& use) {
  if (!use.allocation.allocation_timestamp.empty()) return use.allocation.allocation_timestamp;
  std::string first;
  for (const Consumer& consumer : use.consumers) {
    if (consumer.pod == nullptr) continue;
    const Value status = (*consumer.pod)["status"];
    std::string since(status["startTime"].str());
    for (Value condition : status["conditions"].elements()) {
      if (condition["type"].str() != "PodScheduled" || condition["status"].str() != "True")
        continue;
      since = condition["lastTransitionTime"].str(since);
    }
    if (!since.empty() && (first.empty() || since < first)) first = since;
  }
  if (!first.empty()) return first;
  return std::string((*use.claim)["metadata"]["creationTimestamp"].str());
}

}  // namespace

std::string Consumer::qualified_name() const {
  return StrCat(namespace_, "/", name);
}

std::string OwnerOf(const api::Object& object) {
  for (Value owner : object["metadata"]["ownerReferences"].elements()) {
    if (!owner["controller"].boolean()) continue;
    std::string_view name = owner["name"].str();
    // A Deployment names its ReplicaSets after itself and the hash that it puts on their pods.
    const std::string_view hash = object["metadata"]["labels"].Entry("pod-template-hash").str();
    if (owner["kind"].str() == "ReplicaSet" && !hash.empty() && name.size() > hash.size() + 1 &&
        name.ends_with(hash) && name[name.size() - hash.size() - 1] == '-') {
      return StrCat("Deployment/", name.substr(0, name.size() - hash.size() - 1));
    }
    return StrCat(owner["kind"].str(), "/", name);
  }
  return {};
}

PodsByUid IndexPods(const Objects& pods) {
  PodsByUid index;
  index.reserve(pods.size());
  for (const api::ObjectPtr& pod : pods) index[std::string(pod->uid())] = pod;
  return index;
}

Result<ClaimUse> ReadClaimUse(const api::ObjectPtr& claim, const PodsByUid& pods) {
  const Value status = (*claim)["status"];
  ClaimUse use;
  use.claim = claim;
  ASSIGN_OR_RETURN(use.allocation, device::AllocationFromApi(status["allocation"]));
  for (Value each : status["reservedFor"].elements()) {
    Consumer consumer;
    consumer.namespace_ = claim->namespace_();
    consumer.name = each["name"].str();
    consumer.uid = each["uid"].str();
    consumer.is_pod = claims::IsPod(each);
    if (const auto pod = pods.find(consumer.uid); pod != pods.end()) {
      consumer.pod = pod->second;
      consumer.owner = OwnerOf(*consumer.pod);
    }
    use.consumers.push_back(std::move(consumer));
  }
  use.since = SinceOf(use);
  using Kind = scheduler::BindingState::Kind;
  const scheduler::BindingState state = scheduler::EvaluateBinding(*claim, use.allocation);
  use.waiting = state.kind == Kind::kWaiting || state.kind == Kind::kFailed;
  return use;
}

}  // namespace drakkar::answers
