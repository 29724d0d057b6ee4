#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/testing/simple_expressions.h"
#include "apiserver/rest/core.h"
#include "base/testing/seeded_loop.h"
#include "client/client.h"
#include "features/gates/feature_gates.h"
#include "scheduler/scheduler.h"
#include "storage/memory/memory_store.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::scheduler {

// For CreateSlice: devices that must be attached first, which can fail.
inline constexpr char kConditions[] =
    R"(,"bindingConditions":["d.example.com/attached"],"bindingFailureConditions":["d.example.com/failed"])";
inline constexpr char kAttached[] = "d.example.com/attached";
inline constexpr char kFailed[] = "d.example.com/failed";

// An API server and a scheduler on one seeded loop, with helpers to create objects and check the
// results. For tests and benchmarks.
class TestCluster {
 public:
  explicit TestCluster(FeatureGates gates = FeatureGates(), std::uint64_t seed = 1);
  static FeatureGates ServerGates() {
    return FeatureGates()
        .With(Gate::kDRAOptionalNodePreparation, true)
        .With(Gate::kUserNamespacesHostNetworkSupport, true);
  }
  ~TestCluster();

  // Keeps the stored data and changes the gates. No scheduler may be running.
  void RestartServer(FeatureGates server_gates);
  void StartScheduler();
  void KillScheduler() { scheduler_.reset(); }
  // Gates for the next StartScheduler.
  void SetGates(FeatureGates gates) { gates_ = gates; }
  Scheduler& scheduler() { return *scheduler_; }
  SeededLoop& loop() { return loop_; }
  client::Client& client() { return *client_; }
  apiserver::Core& core() { return *core_; }
  Metrics& metrics() { return metrics_; }

  // Runs everything that is ready. Time advances only by the tick in which the disk is synced.
  void Settle();
  // Advances past the shortest backoff after a failure.
  void LetPauseEnd();

  // `json` is the whole object; namespaced kinds go to "default" unless it says otherwise.
  api::ObjectPtr Create(std::string_view kind, std::string_view json);
  // Null if there is no such object.
  api::ObjectPtr Find(std::string_view kind, std::string name);
  void Delete(std::string_view kind, std::string name);
  // Applies `change` to the newest version and writes it.
  template <typename Change>
  void Update(std::string_view kind, std::string name, std::string subresource, Change change) {
    api::Draft draft(Find(kind, name)->tree());
    change(draft);
    Write(kind, std::move(name), std::move(subresource), draft.Freeze());
  }

  // A node with 4 cpu, 32Gi and 110 pods. `labels` and `spec` are JSON.
  void CreateNode(std::string name, std::string labels = "{}", std::string spec = "{}");
  // A node-local slice with `count` devices dev-0...; `device_extra` are more members of each
  // device.
  void CreateSlice(std::string node, int count, std::string device_extra = "");
  void CreateClass(std::string name = "gpu");
  void CreateClaim(std::string name, int count = 1, std::string class_name = "gpu");
  // `spec` holds more members of the spec, each preceded by a comma.
  void CreatePod(std::string name, std::string spec = "");
  // A pod that uses the named claims.
  void CreatePodWithClaims(std::string name, std::vector<std::string> claims,
                           std::string spec = "");

  // spec.nodeName; empty if the pod is not bound.
  std::string NodeOf(std::string pod);
  // Advances until delayed rejections have been reported.
  void LetRefusalsBeTold();
  std::string ConditionMessage(std::string pod);  // reports delayed rejections first
  // "driver/pool/device" of each allocation result.
  std::vector<std::string> DevicesOf(std::string claim);
  std::vector<std::string> ReservedFor(std::string claim);  // pod names
  // Messages of events with this reason about the object. Reports delayed rejections first.
  std::vector<std::string> Events(std::string object, std::string reason);
  // Sets a condition of one allocated device as a binding controller would.
  void SetDeviceCondition(std::string claim, std::string type, std::string status);

  Scheduler::Options SchedulerOptions();
  // Settings for the next StartScheduler.
  std::vector<ProfileConfig> profiles = {ProfileConfig{}};
  Duration binding_timeout = std::chrono::minutes(10);
  client::Client* scheduler_client = nullptr;  // null: client()
  const features::Framework* declared_features = nullptr;

 private:
  void StartServer(FeatureGates server_gates);
  void Write(std::string_view kind, std::string name, std::string subresource, api::TreePtr body);
  client::ResourceRef Ref(std::string_view kind, std::string name, std::string subresource = "");

  SeededLoop loop_;
  storage::MemoryDisk disk_;
  FeatureGates gates_;  // the scheduler's
  FeatureGates server_gates_;
  Metrics metrics_;
  allocator::SimpleExpressions expressions_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<apiserver::Core> core_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace drakkar::scheduler
