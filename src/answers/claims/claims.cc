#include "answers/claims/claims.h"

#include <algorithm>
#include <unordered_map>

#include "answers/why/waits.h"
#include "base/text/text.h"
#include "claims/pod_claims.h"

namespace drakkar::answers {
namespace {

using api::Value;
using Kind = TimelineEntry::Kind;
using State = ClaimSummary::State;

std::string OwnerPod(const api::Object& claim) {
  for (Value owner : claim["metadata"]["ownerReferences"].elements()) {
    if (owner["kind"].str() == "Pod") {
      return StrCat(claim.namespace_(), "/", owner["name"].str());
    }
  }
  return {};
}

bool IsOver(const api::Object& pod) {
  const std::string_view phase = pod["status"]["phase"].str();
  return phase == "Succeeded" || phase == "Failed";
}

// The pods that refer to each claim, by the claim's "namespace/name". Never iterated.
using PodsByClaim = std::unordered_map<std::string, std::vector<std::string>>;

PodsByClaim IndexPodsByClaim(const Objects& pods) {
  PodsByClaim index;
  for (const api::ObjectPtr& pod : pods) {
    if (IsOver(*pod)) continue;
    for (const std::string& claim : claims::ListClaimNames(pod->root())) {
      index[StrCat(pod->namespace_(), "/", claim)].push_back(pod->qualified_name());
    }
  }
  return index;
}

// The pods for which a claim without devices was created or which name it. A claim made from a
// template names its pod, even if the pod does not name the claim yet.
std::vector<std::string> PodsWaitingFor(const api::Object& claim, const PodsByClaim& index) {
  const auto found = index.find(claim.qualified_name());
  if (found != index.end()) return found->second;
  std::string owner = OwnerPod(claim);
  return owner.empty() ? std::vector<std::string>() : std::vector{std::move(owner)};
}

Value FindCondition(Value conditions, std::string_view type) {
  for (Value condition : conditions.elements()) {
    if (condition["type"].str() == type) return condition;
  }
  return {};
}

std::string ReasonAndMessage(Value value) {
  const std::string_view reason = value["reason"].str();
  const std::string_view message = value["message"].str();
  if (message.empty()) return std::string(reason);
  return reason.empty() ? std::string(message) : StrCat(reason, ": ", message);
}

class Timeline {
 public:
  Timeline(const Snapshot& snapshot, const api::ObjectPtr& claim)
      : snapshot_(snapshot), claim_(claim) {}

  std::vector<TimelineEntry> Take() {
    AddCreation();
    if ((*claim_)["status"]["allocation"].is_object()) {
      AddAllocation();
    } else if (!claim_->is_being_deleted()) {
      const std::vector<std::string> pods =
          PodsWaitingFor(*claim_, IndexPodsByClaim(snapshot_.pods));
      Add("", Kind::kWaiting, pods.empty() ? "waits for a pod that uses it" : "waits for devices",
          Join(pods, ", "));
    }
    AddDeviceConditions();
    AddDeletion();
    AddEvents();
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const TimelineEntry& a, const TimelineEntry& b) {
                       if (a.at.empty() != b.at.empty()) return b.at.empty();
                       return a.at < b.at;
                     });
    return std::move(entries_);
  }

 private:
  void Add(std::string_view at, Kind kind, std::string what, std::string detail = {}) {
    entries_.push_back({std::string(at), kind, std::move(what), std::move(detail)});
  }

  void AddCreation() {
    const std::string pod = OwnerPod(*claim_);
    Add((*claim_)["metadata"]["creationTimestamp"].str(), Kind::kDone, "created",
        pod.empty() ? "" : StrCat("for pod ", pod));
  }

  void AddAllocation() {
    const Result<ClaimUse> use = ReadClaimUse(claim_, IndexPods(snapshot_.pods));
    if (!use.ok()) {
      Add("", Kind::kFailed, "allocation cannot be read", use.error().message);
      return;
    }
    std::vector<std::string> devices;
    for (const device::DeviceResult& result : use->allocation.results) {
      devices.push_back(result.id.ToString());
    }
    Add(use->since, Kind::kDone, "allocated", Join(devices, ", "));
    for (const ConditionWait& wait : FindConditionWaits(*claim_, Duration::zero())) {
      Add("", wait.failed ? Kind::kFailed : Kind::kWaiting,
          StrCat(wait.failed ? "binding failed: " : "waits for condition ", wait.condition),
          wait.message.empty() ? wait.device : StrCat(wait.device, ": ", wait.message));
    }
    for (const Consumer& consumer : use->consumers) AddConsumer(consumer);
    if (use->consumers.empty() && !claim_->is_being_deleted()) {
      Add("", Kind::kWaiting, "no pod uses it");
    }
  }

  void AddConsumer(const Consumer& consumer) {
    const std::string name = StrCat(consumer.is_pod ? "pod " : "", consumer.qualified_name());
    if (consumer.pod == nullptr) {
      Add("", Kind::kDone, StrCat("reserved for ", name));
      return;
    }
    const api::Object& pod = *consumer.pod;
    const Value status = pod["status"];
    const std::string_view node = pod["spec"]["nodeName"].str();
    const Value scheduled = FindCondition(status["conditions"], "PodScheduled");
    if (!node.empty()) {
      Add(scheduled["lastTransitionTime"].str(status["startTime"].str()), Kind::kDone,
          StrCat(name, " bound"), StrCat("to node ", node));
    }
    const Value ready = FindCondition(status["conditions"], "Ready");
    const std::string_view phase = status["phase"].str();
    if (ready["status"].str() == "True") {
      Add(ready["lastTransitionTime"].str(), Kind::kDone, StrCat(name, " ready"));
    } else if (phase == "Pending" && !node.empty()) {
      Add("", Kind::kWaiting, StrCat(name, " is starting"), ReasonAndMessage(ready));
    }
    if (phase == "Succeeded" || phase == "Failed") {
      Add(ready["lastTransitionTime"].str(), phase == "Failed" ? Kind::kFailed : Kind::kDone,
          StrCat(name, phase == "Failed" ? " failed" : " finished"), ReasonAndMessage(status));
    }
    for (const DeletionWait& wait : FindDeletionWaits("pod", pod, snapshot_)) {
      Add(wait.since, Kind::kWaiting, StrCat(name, " is being deleted"),
          StrCat("waits for ", wait.owner));
    }
  }

  void AddDeviceConditions() {
    for (Value device : (*claim_)["status"]["devices"].elements()) {
      for (Value condition : device["conditions"].elements()) {
        const bool is_true = condition["status"].str() == "True";
        Add(condition["lastTransitionTime"].str(), Kind::kDone,
            StrCat(condition["type"].str(), is_true ? "" : " is ",
                   is_true ? "" : condition["status"].str("Unknown")),
            StrCat(device["driver"].str(), "/", device["pool"].str(), "/", device["device"].str(),
                   ReasonAndMessage(condition).empty() ? "" : ": ", ReasonAndMessage(condition)));
      }
    }
  }

  void AddDeletion() {
    for (const DeletionWait& wait : FindDeletionWaits("claim", *claim_, snapshot_)) {
      Add(wait.since, Kind::kWaiting, "is being deleted", StrCat("waits for ", wait.owner));
    }
  }

  void AddEvents() {
    for (const api::ObjectPtr& event : snapshot_.events) {
      std::string_view at = (*event)["lastTimestamp"].str();
      if (at.empty()) at = (*event)["eventTime"].str();
      if (at.empty()) at = (*event)["metadata"]["creationTimestamp"].str();
      const bool warning = (*event)["type"].str() == "Warning";
      Add(at, warning ? Kind::kFailed : Kind::kDone, std::string((*event)["reason"].str()),
          std::string((*event)["message"].str()));
    }
  }

  const Snapshot& snapshot_;
  const api::ObjectPtr& claim_;
  std::vector<TimelineEntry> entries_;
};

}  // namespace

std::string_view StateName(State state) {
  switch (state) {
    case State::kPending:
      return "Pending";
    case State::kWaiting:
      return "Waiting";
    case State::kAllocated:
      return "Allocated";
    case State::kInUse:
      return "InUse";
    case State::kDeleting:
      return "Deleting";
  }
  return "";
}

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kDone:
      return "done";
    case Kind::kWaiting:
      return "waiting";
    case Kind::kFailed:
      return "failed";
  }
  return "";
}

std::vector<ClaimSummary> ListClaims(const Snapshot& snapshot, const DeviceTable& table) {
  std::unordered_map<const api::Object*, const ClaimUse*> uses;
  for (const auto& use : table.claims()) uses[use->claim.get()] = use.get();
  std::vector<ClaimSummary> claims;
  claims.reserve(snapshot.claims.size());
  const PodsByClaim pods = IndexPodsByClaim(snapshot.pods);
  for (const api::ObjectPtr& claim : snapshot.claims) {
    ClaimSummary summary{.claim = claim};
    summary.since = (*claim)["metadata"]["creationTimestamp"].str();
    if (const auto found = uses.find(claim.get()); found != uses.end()) {
      const ClaimUse& use = *found->second;
      summary.devices = use.allocation.results.size();
      summary.since = use.since;
      summary.state = use.waiting             ? State::kWaiting
                      : use.consumers.empty() ? State::kAllocated
                                              : State::kInUse;
      for (const Consumer& consumer : use.consumers) {
        summary.pods.push_back(consumer.qualified_name());
      }
    } else {
      summary.pods = PodsWaitingFor(*claim, pods);
    }
    if (claim->is_being_deleted()) {
      summary.state = State::kDeleting;
      summary.since = (*claim)["metadata"]["deletionTimestamp"].str();
    }
    claims.push_back(std::move(summary));
  }
  std::sort(claims.begin(), claims.end(), [](const ClaimSummary& a, const ClaimSummary& b) {
    return a.claim->qualified_name() < b.claim->qualified_name();
  });
  return claims;
}

std::vector<TimelineEntry> ClaimTimeline(const Snapshot& snapshot, const api::ObjectPtr& claim) {
  return Timeline(snapshot, claim).Take();
}

}  // namespace drakkar::answers
