// What must never happen (design, section 7), as far as it is visible from outside.
#include "api/meta/quantity.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "claims/pod_claims.h"
#include "tests/simulation/simulation.h"

namespace drakkar::simulation {
namespace {

constexpr char kGroup[] = "resource.k8s.io";

std::string DeviceKey(api::Value result) {
  return StrCat(result["driver"].str(), "/", result["pool"].str(), "/", result["device"].str());
}

bool HasEnded(const api::Object& pod) {
  const std::string_view phase = pod.root()["status"]["phase"].str();
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace

void Simulation::Violation(std::string sentence) {
  // A few are enough to fail the test.
  if (server_.violations.size() < 20) {
    server_.violations.push_back(StrCat("step ", step_, ": ", sentence));
  }
}

void Simulation::Check() {
  Referee& referee = server_.referee();
  referee.CheckWatches();
  for (std::string& sentence : std::exchange(referee.violations, {}))
    Violation(std::move(sentence));
  if (!server_.is_up()) {
    CheckNodes();
    return;
  }
  const std::vector<api::ObjectPtr> claims = server_.Objects(kGroup, "resourceclaims");
  const std::vector<api::ObjectPtr> pods = server_.Objects("", "pods");
  for (const api::ObjectPtr& claim : claims) {
    const auto known = known_claims_.find(std::string(claim->uid()));
    if (known != known_claims_.end() &&
        claim->resource_version() < known->second->resource_version()) {
      Violation(StrCat("the version of ", claim->qualified_name(), " went back"));
    }
    // What is not durable has not been shown to anyone, and a crash may revert it.
    if (claim->resource_version() <= server_.core().durable_revision()) {
      known_claims_[std::string(claim->uid())] = claim;
    }
  }
  for (const api::ObjectPtr& pod : pods) {
    if (!pod->root()["spec"]["nodeName"].str().empty()) bound_ever_.insert(std::string(pod->uid()));
  }
  CheckDevices(claims);
  CheckReservations(claims, pods);
  CheckNodes();
}

// No device is held twice, and no capacity or counter is overcommitted.
void Simulation::CheckDevices(const std::vector<api::ObjectPtr>& claims) {
  std::map<std::string, std::string> holders;
  std::map<std::string, std::int64_t> units;
  std::map<std::string, std::int64_t> counters;
  for (const api::ObjectPtr& claim : claims) {
    for (api::Value result :
         claim->root()["status"]["allocation"]["devices"]["results"].elements()) {
      const std::string device = DeviceKey(result);
      if (result["shareID"].has_value()) {
        const auto used = api::Quantity::Parse(result["consumedCapacity"].Entry("units").str());
        units[device] += used.ok() ? used->Value() : 1'000;
        if (units[device] > 10) Violation(StrCat(device, " is overcommitted"));
        continue;
      }
      const auto [at, is_new] = holders.emplace(device, claim->name());
      if (!is_new) {
        Violation(StrCat(device, " is held by ", at->second, " and ", claim->name()));
      }
      if (result["pool"].str().ends_with("-chip")) {
        std::int64_t& counter = counters[std::string(result["pool"].str())];
        counter += result["device"].str() == "whole" ? 4 : 2;
        if (counter > 4) Violation(StrCat(result["pool"].str(), " is overcommitted"));
      }
    }
  }
}

// Reservations refer to pods that existed, and a bound pod has its claims.
void Simulation::CheckReservations(const std::vector<api::ObjectPtr>& claims,
                                   const std::vector<api::ObjectPtr>& pods) {
  for (const api::ObjectPtr& claim : claims) {
    for (api::Value consumer : claim->root()["status"]["reservedFor"].elements()) {
      // The referee knows only durable changes.
      if (claim->resource_version() > server_.referee().up_to()) continue;
      if (!server_.referee().HasBeenPod(consumer["uid"].str())) {
        Violation(StrCat(claim->name(), " is reserved for a pod that never existed"));
      }
    }
  }
  for (const api::ObjectPtr& pod : pods) {
    if (pod->root()["spec"]["nodeName"].str().empty() || HasEnded(*pod)) continue;
    if (!uses_.contains(std::string(pod->uid()))) NoteUse(*pod);
    for (const std::string& name : claims::ListClaimNames(pod->root())) {
      const api::ObjectPtr claim = server_.Find(kGroup, "resourceclaims", "default/" + name);
      if (pod->is_being_deleted()) continue;
      if (claim == nullptr || !claim->root()["status"]["allocation"].has_value()) {
        Violation(StrCat(pod->name(), " is bound, but its claim ", name, " is not allocated"));
        continue;
      }
      if (!claims::IsReservedFor(claim->root(), pod->uid())) {
        Violation(StrCat(pod->name(), " is bound without a reservation of ", name));
      }
      const api::Value selector = claim->root()["status"]["allocation"]["nodeSelector"];
      const api::Value only = selector["nodeSelectorTerms"].at(0)["matchFields"].at(0)["values"];
      if (only.exists() && only.at(0).str() != pod->root()["spec"]["nodeName"].str()) {
        Violation(StrCat(pod->name(), " is bound to another node than its claim ", name));
      }
    }
  }
}

// What a pod's containers use, recorded when the pod is first seen bound: a claim may be deleted
// before they exit.
void Simulation::NoteUse(const api::Object& pod) {
  Use& use = uses_[std::string(pod.uid())];
  for (const std::string& name : claims::ListClaimNames(pod.root())) {
    const api::ObjectPtr claim = server_.Find(kGroup, "resourceclaims", "default/" + name);
    if (claim == nullptr || !claim->root()["status"]["allocation"].has_value()) {
      use.is_complete = false;
      continue;
    }
    std::set<std::string> requests;
    bool has_driver = false;
    for (api::Value result :
         claim->root()["status"]["allocation"]["devices"]["results"].elements()) {
      requests.emplace(result["request"].str());
      has_driver = has_driver || !result["skipNodeOperations"].has_value();
    }
    if (has_driver) use.claims.emplace_back(claim->uid());
    for (api::Value container : pod.root()["spec"]["containers"].elements()) {
      std::set<std::string>& seen = use.metadata[std::string(container["name"].str())];
      const api::Value only = container["resources"]["claims"].at(0)["request"];
      for (const std::string& request : requests) {
        if (!only.has_value() || only.str() == request) seen.insert(StrCat(name, "/", request));
      }
    }
  }
}

// Running containers have their claims prepared and see only the metadata of their own requests,
// and prepared claims are in the checkpoint.
void Simulation::CheckNodes() {
  for (const auto& node : nodes_) {
    for (const SimNode::Running& container : node->RunningContainers()) {
      const auto use = uses_.find(container.pod_uid);
      if (use == uses_.end()) continue;  // existed only between two checks
      const std::set<std::string>& own = use->second.metadata[container.container];
      for (const std::string& seen : container.metadata) {
        metadata_seen_.insert(StrCat(container.pod_uid, "/", container.container));
        if (use->second.is_complete && !own.contains(seen)) {
          Violation(StrCat("container ", container.container, " of ", container.pod_name,
                           " sees the metadata of ", seen));
        }
      }
      if (use->second.is_complete && use->second.claims.empty())
        driverless_.insert(container.pod_uid);
      for (const std::string& uid : use->second.claims) {
        bool prepared = false;
        for (const std::string& driver : node->driver_names()) {
          prepared = prepared || node->prepared(driver).contains(uid);
        }
        if (!prepared) {
          Violation(
              StrCat(container.pod_name, " runs on ", node->name(), " with an unprepared claim"));
        }
      }
    }
    std::string checkpoint;
    for (const std::string& driver : node->driver_names()) {
      for (const std::string& uid : node->prepared(driver)) {
        if (checkpoint.empty()) checkpoint = node->Checkpoint();
        if (checkpoint.find(uid) == checkpoint.npos) {
          Violation(StrCat("claim ", uid, " is prepared on ", node->name(),
                           " but not in the checkpoint"));
        }
      }
    }
  }
}

// Counts the rounds in which a pod waits for a device that is free.
void Simulation::CheckProgress() {
  if (!server_.is_up()) return;
  const std::vector<api::ObjectPtr> pods = server_.Objects("", "pods");
  std::set<std::string> held;
  for (const api::ObjectPtr& claim : server_.Objects(kGroup, "resourceclaims")) {
    for (api::Value result :
         claim->root()["status"]["allocation"]["devices"]["results"].elements()) {
      held.insert(DeviceKey(result));
    }
  }
  std::set<std::string> fabric;  // devices that could be attached
  for (const fabric::FabricDevice& device : fabric_devices_) {
    if (device.behaviour == fabric::Behaviour::kAttaches) {
      fabric.insert(StrCat("fabric.example.com/fabric/", device.name));
    }
  }
  for (const api::ObjectPtr& pod : pods) {
    if (!pod->root()["spec"]["nodeName"].str().empty() || HasEnded(*pod)) continue;
    for (const std::string& name : claims::ListClaimNames(pod->root())) {
      const api::ObjectPtr claim = server_.Find(kGroup, "resourceclaims", "default/" + name);
      if (claim == nullptr) continue;  // its creation was lost
      if (claim->root()["spec"]["devices"]["requests"].size() > 1)
        continue;  // both must be on one node
      const std::string wanted(
          claim->root()["spec"]["devices"]["requests"].at(0)["exactly"]["deviceClassName"].str());
      std::set<std::string> candidates = fabric;
      if (wanted == "plain") {
        candidates.clear();
        for (const char* node : {"n0", "n1"}) {
          for (const char* device : {"dev-0", "dev-1"}) {
            candidates.insert(StrCat("local.example.com/", node, "/", device));
          }
        }
      } else if (wanted != "fabric") {
        continue;
      }
      for (const std::string& device : candidates) {
        if (!held.contains(device)) ++in_vain_[StrCat(device, ", wanted by ", pod->name(), ",")];
      }
    }
  }
}

// After the faults: nothing waits for a free device, nothing is left over, copies are complete.
void Simulation::CheckSettled() {
  const std::vector<api::ObjectPtr> claims = server_.Objects(kGroup, "resourceclaims");
  const std::vector<api::ObjectPtr> pods = server_.Objects("", "pods");
  for (const api::ObjectPtr& claim : claims) {
    for (api::Value consumer : claim->root()["status"]["reservedFor"].elements()) {
      const api::ObjectPtr pod =
          server_.Find("", "pods", StrCat("default/", consumer["name"].str()));
      if (pod == nullptr || pod->uid() != consumer["uid"].str() || HasEnded(*pod)) {
        Violation(StrCat(claim->name(), " stays reserved for ", consumer["name"].str(), ", which ",
                         pod == nullptr                        ? "is gone"
                         : pod->uid() != consumer["uid"].str() ? "is another one now"
                                                               : "has ended"));
      }
    }
  }
  for (const api::ObjectPtr& pod : pods) {
    if (pod->is_being_deleted()) Violation(StrCat(pod->name(), " is stuck in Terminating"));
  }
  for (const auto& [waiting, turns] : in_vain_) {
    if (turns >= kPatience) Violation(StrCat(waiting, " is free, but a pod still waits for it"));
  }
  const auto compare = [&](const client::Informer& copy, const std::vector<api::ObjectPtr>& real) {
    if (copy.objects().size() != real.size()) Violation("a watcher's copy has another size");
    for (const api::ObjectPtr& object : real) {
      const api::ObjectPtr seen = copy.Find(object->qualified_name());
      if (seen == nullptr || seen->resource_version() != object->resource_version()) {
        Violation(StrCat("a watcher missed ", object->qualified_name()));
      }
    }
  };
  compare(*watched_pods_, pods);
  compare(*watched_claims_, claims);
  for (const auto& node : nodes_) {
    for (const std::string& driver : node->driver_names()) {
      for (const std::string& uid : node->prepared(driver)) {
        const auto claim = known_claims_.find(uid);
        const bool in_use =
            claim != known_claims_.end() &&
            server_.Find(kGroup, "resourceclaims", claim->second->qualified_name()) != nullptr &&
            !claim->second->root()["status"]["reservedFor"].empty();
        if (!in_use) Violation(StrCat("claim ", uid, " stays prepared on ", node->name()));
      }
    }
  }
}

}  // namespace drakkar::simulation
