#include "examples/fabric/fabric_controller.h"

#include <algorithm>

#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::fabric {
namespace {

constexpr Logger kLog("fabric");
constexpr char kSlice[] = "";  // the slice's key in the work queue

client::ResourceRef Claims(const std::string& ns = "", const std::string& name = "",
                           const std::string& subresource = "") {
  return {api::FindKind("resource.k8s.io", "v1", "ResourceClaim"), ns, name, subresource};
}

client::ResourceRef Slices(const std::string& name = "") {
  return {api::FindKind("resource.k8s.io", "v1", "ResourceSlice"), "", name, ""};
}

// The node an allocation is bound to; with bindsToNode it is the only one in the selector.
std::string NodeOf(api::Value allocation) {
  const api::Value field =
      allocation["nodeSelector"]["nodeSelectorTerms"].at(0)["matchFields"].at(0);
  return std::string(field["values"].at(0).str());
}

bool IsFor(api::Value status, api::Value result) {
  return status["driver"].str() == result["driver"].str() &&
         status["pool"].str() == result["pool"].str() &&
         status["device"].str() == result["device"].str() &&
         status["shareID"].str() == result["shareID"].str();
}

// Distinguishes the allocations of a claim.
std::string DescribeAllocation(const api::Object& claim) {
  const api::Value allocation = claim.root()["status"]["allocation"];
  std::string text = StrCat(allocation["allocationTimestamp"].str(), " ", NodeOf(allocation));
  for (api::Value result : allocation["devices"]["results"].elements()) {
    text += StrCat(" ", result["driver"].str(), "/", result["pool"].str(), "/",
                   result["device"].str(), "/", result["shareID"].str());
  }
  return text;
}

}  // namespace

FabricController::FabricController(Options options)
    : options_(std::move(options)),
      client_(options_.client),
      claims_(options_.loop, options_.random, client_, {.collection = Claims()}),
      work_(options_.loop, options_.random, {.name = "fabric", .max_in_flight = 16},
            [this](const std::string& key, client::WorkQueue::Done done) {
              if (key == kSlice) {
                Publish(std::move(done));
              } else {
                AttachFor(key, std::move(done));
              }
            }) {
  claims_.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& claim) { OnClaim(claim); },
       .on_update = [this](const api::ObjectPtr&, const api::ObjectPtr& claim) { OnClaim(claim); },
       .on_delete =
           [this](const api::ObjectPtr& claim) { attaching_.erase(std::string(claim->uid())); }});
}

void FabricController::Start() {
  work_.Add(kSlice);
  claims_.Start();
}

Behaviour FabricController::BehaviourOf(const std::string& device) const {
  for (const FabricDevice& each : options_.devices) {
    if (each.name == device) return each.behaviour;
  }
  return Behaviour::kHangs;  // no longer ours
}

std::vector<FabricController::Pending> FabricController::FindPending(
    const api::Object& claim) const {
  std::vector<Pending> pending;
  const api::Value status = claim.root()["status"];
  for (api::Value result : status["allocation"]["devices"]["results"].elements()) {
    if (result["driver"].str() != options_.driver) continue;
    bool told = false;
    for (api::Value device : status["devices"].elements()) {
      if (!IsFor(device, result)) continue;
      for (api::Value condition : device["conditions"].elements()) {
        told = told || (condition["status"].str() == "True" &&
                        (condition["type"].str() == attached_condition() ||
                         condition["type"].str() == failed_condition()));
      }
    }
    if (!told) {
      pending.push_back({std::string(result["device"].str()), std::string(result["shareID"].str()),
                         NodeOf(status["allocation"])});
    }
  }
  return pending;
}

void FabricController::OnClaim(const api::ObjectPtr& claim) {
  const std::string uid(claim->uid());
  if (FindPending(*claim).empty()) {
    attaching_.erase(uid);
    return;
  }
  // The attach delay starts with each new allocation. The end of the previous one may have been
  // missed, because a watch that was interrupted shows only later changes.
  const auto [at, is_new] = attaching_.try_emplace(uid);
  std::string allocation = DescribeAllocation(*claim);
  if (!is_new && at->second.allocation == allocation) return;
  at->second = {std::move(allocation), options_.loop.clock().Monotonic()};
  work_.AddAfter(claim->qualified_name(), options_.attach_delay);
}

void FabricController::AttachFor(const std::string& key, client::WorkQueue::Done done) {
  const api::ObjectPtr claim = claims_.Find(key);
  if (claim == nullptr) return done(Ok());
  std::vector<Pending> pending = FindPending(*claim);
  std::erase_if(pending, [this](const Pending& each) {
    return BehaviourOf(each.device) == Behaviour::kHangs;
  });
  if (pending.empty()) return done(Ok());
  const auto began = attaching_.find(std::string(claim->uid()));
  const MonotonicTime now = options_.loop.clock().Monotonic();
  if (began != attaching_.end() && began->second.since + options_.attach_delay > now) {
    work_.AddAfter(key, began->second.since + options_.attach_delay - now);
    return done(Ok());
  }
  bool newly_broken = false;
  for (const Pending& each : pending) {
    if (BehaviourOf(each.device) == Behaviour::kFails) {
      newly_broken = broken_.insert(each.device).second || newly_broken;
    }
  }
  // Taint the device first, so that the scheduler does not choose it again when it sees the
  // failure.
  if (!newly_broken) return WriteConditions(claim, pending, std::move(done));
  Publish(lifetime_.Guard([this, claim, pending, done = std::move(done)](Result<void> published) {
    if (!published.ok()) work_.Add(kSlice);
    WriteConditions(claim, pending, done);
  }));
}

void FabricController::WriteConditions(const api::ObjectPtr& claim,
                                       const std::vector<Pending>& ready,
                                       client::WorkQueue::Done done) {
  api::Draft draft(claim->tree());
  const std::string now = api::FormatTime(options_.loop.clock().Now());
  for (const Pending& each : ready) {
    const bool fails = BehaviourOf(each.device) == Behaviour::kFails;
    api::Draft device{
        {"driver", options_.driver}, {"pool", options_.pool}, {"device", each.device}};
    if (!each.share.empty()) device["shareID"] = each.share;
    device["conditions"].Append(
        {{"type", fails ? failed_condition() : attached_condition()},
         {"status", "True"},
         {"reason", fails ? "FabricError" : "Attached"},
         {"message", fails ? StrCat("the fabric switch rejected ", each.device)
                           : StrCat("attached to ", each.node)},
         {"lastTransitionTime", now}});
    draft["status"]["devices"].Append(std::move(device));
    kLog.Info(fails ? "could not attach device" : "attached device",
              {{"device", each.device}, {"claim", claim->qualified_name()}, {"node", each.node}});
  }
  client_.Update(Claims(std::string(claim->namespace_()), std::string(claim->name()), "status"),
                 draft.Freeze(), {},
                 lifetime_.Guard([this, uid = std::string(claim->uid()),
                                  done = std::move(done)](client::Reply reply) {
                   if (reply.ok()) {
                     attaching_.erase(uid);
                     return done(Ok());
                   }
                   if (reply.error->code == ErrorCode::kNotFound) return done(Ok());
                   done(*reply.error);  // the queue retries with the newer object
                 }));
}

api::TreePtr FabricController::MakeSlice(const api::Object* old) const {
  api::Draft draft = old != nullptr ? api::Draft(old->tree()) : api::Draft::Object();
  draft["metadata"]["name"] = slice_name();
  api::Draft& spec = draft["spec"];
  spec["driver"] = options_.driver;
  spec["allNodes"] = true;
  api::Draft devices = api::Draft::Array();
  for (const FabricDevice& each : options_.devices) {
    api::Draft device{{"name", each.name}, {"bindsToNode", true}};
    device["bindingConditions"].Append(attached_condition());
    device["bindingFailureConditions"].Append(failed_condition());
    if (broken_.contains(each.name)) {
      device["taints"].Append({{"key", options_.driver + "/broken"}, {"effect", "NoSchedule"}});
    }
    devices.Append(std::move(device));
  }
  spec["devices"] = std::move(devices);
  const std::int64_t generation =
      old != nullptr ? old->root()["spec"]["pool"]["generation"].integer() + 1 : 1;
  spec["pool"] =
      api::Draft{{"name", options_.pool}, {"generation", generation}, {"resourceSliceCount", 1}};
  return draft.Freeze();
}

void FabricController::Publish(client::WorkQueue::Done done) {
  client_.Get(Slices(slice_name()), lifetime_.Guard([this,
                                                     done = std::move(done)](client::Reply reply) {
    if (!reply.ok() && reply.error->code != ErrorCode::kNotFound) return done(*reply.error);
    auto answered = lifetime_.Guard([done](client::Reply written) {
      done(written.ok() ? Result<void>(Ok()) : *written.error);
    });
    if (!reply.ok()) {
      client_.Create(Slices(), MakeSlice(nullptr), {}, std::move(answered));
      return;
    }
    // Keep taints of an earlier instance: someone has to check the device first.
    for (api::Value device : reply.object->root()["spec"]["devices"].elements()) {
      if (!device["taints"].empty()) broken_.insert(std::string(device["name"].str()));
    }
    client_.Update(Slices(slice_name()), MakeSlice(reply.object.get()), {}, std::move(answered));
  }));
}

}  // namespace drakkar::fabric
