#include "answers/why/waits.h"

#include <algorithm>
#include <set>

#include "answers/cluster/device_table.h"
#include "api/meta/time.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "device/from_api.h"

namespace drakkar::answers {
namespace {

using api::Value;

constexpr std::string_view kPrepareFailed = "FailedPrepareDynamicResources";

// The condition of a device in a claim's status; absent if there is none.
Value FindCondition(const api::Object& claim, const device::DeviceResult& result,
                    std::string_view type) {
  const Value device = claims::FindDeviceStatus(claim.root(), result.id.driver, result.id.pool,
                                                result.id.device, result.share_id);
  for (Value condition : device["conditions"].elements()) {
    if (condition["type"].str() == type) return condition;
  }
  return {};
}

std::string MessageOf(Value condition) {
  const std::string_view reason = condition["reason"].str();
  const std::string_view message = condition["message"].str();
  if (message.empty()) return std::string(reason);
  return reason.empty() ? std::string(message) : StrCat(reason, ": ", message);
}

// Who removes a finalizer, and when.
std::string FinalizerOwner(std::string_view finalizer, const api::Object& object) {
  if (finalizer == claims::kFinalizer) {
    const Value reserved = object["status"]["reservedFor"];
    if (!reserved.empty()) {
      return StrCat("the resource claim controller, when pod ", object.namespace_(), "/",
                    reserved.at(0)["name"].str(), " has ended",
                    reserved.size() > 1 ? StrCat(" (and ", reserved.size() - 1, " more)") : "");
    }
    return "the resource claim controller, when the allocation is released";
  }
  if (finalizer == "foregroundDeletion") {
    return "the garbage collector, when everything the object owns is gone";
  }
  if (finalizer == "orphan") return "the garbage collector";
  if (finalizer == "batch.kubernetes.io/job-tracking") return "the Job controller";
  const std::size_t slash = finalizer.find('/');
  if (slash == std::string_view::npos) return "whoever set it";
  return StrCat("the controller of ", finalizer.substr(0, slash));
}

// When the deletion was requested: the timestamp says when it is due.
std::string DeletedSince(const api::Object& object) {
  const Value metadata = object["metadata"];
  const Result<WallTime> due = api::ParseTime(metadata["deletionTimestamp"].str());
  if (!due.ok()) return std::string(metadata["deletionTimestamp"].str());
  return api::FormatTime(*due - std::chrono::seconds(std::max<std::int64_t>(
                                    metadata["deletionGracePeriodSeconds"].integer(), 0)));
}

std::string NodeState(std::string_view name, const Snapshot& snapshot) {
  if (!snapshot.has_nodes) return {};
  const auto find = [&](const Objects& objects) -> const api::Object* {
    for (const api::ObjectPtr& object : objects) {
      if (object->name() == name) return object.get();
    }
    return nullptr;
  };
  const api::Object* node = find(snapshot.nodes);
  if (node == nullptr) return "the node no longer exists";
  return DescribeNodeProblem(*node, find(snapshot.leases), snapshot.now);
}

}  // namespace

std::vector<ConditionWait> FindConditionWaits(const api::Object& claim, Duration timeout) {
  std::vector<ConditionWait> waits;
  const Result<device::AllocationResult> allocation =
      device::AllocationFromApi(claim["status"]["allocation"]);
  if (!allocation.ok()) return waits;
  const Result<WallTime> since = api::ParseTime(allocation->allocation_timestamp);
  for (const device::DeviceResult& result : allocation->results) {
    const auto add = [&](const std::string& type, Value condition, bool failed) {
      ConditionWait wait;
      wait.claim = claim.qualified_name();
      wait.device = result.id.ToString();
      wait.condition = type;
      wait.message = MessageOf(condition);
      wait.failed = failed;
      wait.since = allocation->allocation_timestamp;
      if (since.ok()) wait.deadline = api::FormatTime(*since + timeout);
      waits.push_back(std::move(wait));
    };
    for (const std::string& type : result.binding_failure_conditions) {
      const Value condition = FindCondition(claim, result, type);
      if (condition["status"].str() == "True") add(type, condition, true);
    }
    for (const std::string& type : result.binding_conditions) {
      const Value condition = FindCondition(claim, result, type);
      if (condition["status"].str() != "True") add(type, condition, false);
    }
  }
  return waits;
}

std::vector<DeletionWait> FindDeletionWaits(std::string_view what, const api::Object& object,
                                            const Snapshot& snapshot) {
  std::vector<DeletionWait> waits;
  if (!object.is_being_deleted()) return waits;
  const std::string name = StrCat(what, " ", object.qualified_name());
  const std::string since = DeletedSince(object);
  for (Value finalizer : object["metadata"]["finalizers"].elements()) {
    waits.push_back(
        {name, since, std::string(finalizer.str()), FinalizerOwner(finalizer.str(), object)});
  }
  if (!waits.empty()) return waits;
  const std::string_view node = object["spec"]["nodeName"].str();
  if (node.empty()) {
    waits.push_back({name, since, "", "nothing is left to wait for"});
    return waits;
  }
  const std::string state = NodeState(node, snapshot);
  waits.push_back({name, since, "",
                   StrCat("node ", node,
                          ", when the containers have stopped and its claims are "
                          "unprepared",
                          state.empty() ? "" : "; ", state)});
  return waits;
}

std::vector<PreparationWait> FindPreparationWaits(const api::Object& pod, const Objects& claims,
                                                  const Objects& events) {
  std::vector<PreparationWait> waits;
  const Value status = pod["status"];
  const std::string_view phase = status["phase"].str("Pending");
  if (pod["spec"]["nodeName"].str().empty() || phase != "Pending") return waits;
  for (Value container : status["containerStatuses"].elements()) {
    if (!container["state"]["waiting"].exists() && container["state"].is_object()) return waits;
  }
  std::string error, error_at;
  for (const api::ObjectPtr& event : events) {
    if ((*event)["reason"].str() != kPrepareFailed) continue;
    std::string_view at = (*event)["lastTimestamp"].str();
    if (at.empty()) at = (*event)["series"]["lastObservedTime"].str();
    if (at.empty()) at = (*event)["eventTime"].str();
    if (!error.empty() && at < error_at) continue;
    error = (*event)["message"].str();
    error_at = at;
  }
  std::string since(status["startTime"].str());
  for (Value condition : status["conditions"].elements()) {
    if (condition["type"].str() == "PodScheduled" && since.empty()) {
      since = condition["lastTransitionTime"].str();
    }
  }
  for (const api::ObjectPtr& claim : claims) {
    std::set<std::string> drivers;
    for (Value result : (*claim)["status"]["allocation"]["devices"]["results"].elements()) {
      drivers.emplace(result["driver"].str());
    }
    if (drivers.empty()) continue;
    PreparationWait wait;
    wait.claim = claim->qualified_name();
    wait.node = pod["spec"]["nodeName"].str();
    wait.drivers.assign(drivers.begin(), drivers.end());
    wait.since = since;
    // The event is about the whole pod. It concerns this claim if it names the claim or if there is
    // only one.
    if (claims.size() == 1 || error.find(claim->name()) != std::string::npos) {
      wait.error = error;
      wait.error_at = error_at;
    }
    waits.push_back(std::move(wait));
  }
  return waits;
}

}  // namespace drakkar::answers
