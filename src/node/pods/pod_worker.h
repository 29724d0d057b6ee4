#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "api/meta/object.h"
#include "base/exec/event_loop.h"
#include "client/client.h"
#include "node/pods/container_config.h"
#include "node/pods/container_probes.h"
#include "node/pods/pod_facts.h"
#include "node/pods/pod_sources.h"
#include "node/pods/pod_status.h"
#include "node/pods/volumes.h"

namespace drakkar {
class DeviceNodeProbe;
class Metrics;
namespace cdi {
class Cache;
}
namespace client {
class EventRecorder;
class Informer;
}  // namespace client
}  // namespace drakkar

namespace drakkar::node {

class BlockingWork;
class DraManager;
class NodeFeatures;

// What all workers of a node share.
struct PodContext {
  EventLoop& loop;
  FileSystem& files;
  BlockingWork& work;  // for what would hold up the loop
  client::Client& client;
  Runtime& runtime;
  DraManager& dra;
  cdi::Cache& cdi;
  DeviceNodeProbe& device_probe;
  VolumeHost& volume_host;
  client::EventRecorder& events;
  std::string node_name;
  std::string root_directory;  // volumes are below <root>/pods/<uid>
  std::string log_root;        // "/var/log/pods"
  std::string host_ip;
  std::string runtime_name = "drakkar";
  std::map<std::string, std::string> service_variables;  // where the API server is
  const client::Informer* services = nullptr;  // null: pods are told of the API server only
  std::int64_t machine_memory_bytes = 0;
  std::int64_t machine_cpu_milli = 0;
  // What the other pods of the node ask for. May be empty: then a resize never waits for them.
  std::function<PodRequests(const std::string& uid)> others_requests;
  std::int64_t pod_pids_limit = 0;  // of each pod; 0: none
  bool seccomp_default = false;
  Metrics* metrics = nullptr;
  NetworkProber* prober = nullptr;      // null: probes over the network are reported, not run
  bool container_rules = false;         // gate ContainerRestartRules
  bool restart_all_containers = false;  // gate RestartAllContainersOnContainerExits
  // Says no to a pod, at first sight in this process, before anything of it is adopted. Null: all
  // are taken.
  const NodeFeatures* features = nullptr;
  // allocatedResourcesStatus of a container. Empty with ResourceHealthStatus disabled.
  std::function<api::Draft(api::Value pod, api::Value container)> resource_health;
};

// One pod on this node, from the first sight to the last.
//
// It compares what the API says with what the runtime has, and does the next step: one asynchronous
// operation at a time, then it looks again. What it must remember over a restart is in the runtime
// and in the claim checkpoint, so a new worker for a running pod adopts it.
// Order it keeps: volumes, claims prepared, sandbox, init containers one after the other, sidecars,
// containers; at the end containers stopped (sidecars last, in reverse), sandbox stopped, claims
// unprepared, final status written, remains removed, API object deleted.
// Loop-bound.
class PodWorker {
 public:
  static constexpr Duration kFirstCrashBackoff = std::chrono::seconds(10);
  static constexpr Duration kLongestCrashBackoff = std::chrono::minutes(5);
  static constexpr Duration kCrashBackoffReset = std::chrono::minutes(10);
  static constexpr Duration kFirstRetry = std::chrono::seconds(1);
  static constexpr Duration kResizeRetry = std::chrono::seconds(10);
  static constexpr Duration kLongestRetry = std::chrono::seconds(60);
  static constexpr Duration kLongestHook = std::chrono::hours(24);
  // How long ConfigMaps, Secrets and tokens in volumes may be behind.
  static constexpr Duration kRefreshEvery = std::chrono::seconds(60);
  // How long a volume may have been beyond its limit. A volume whose measuring takes long is
  // measured less often.
  static constexpr Duration kMeasureEvery = std::chrono::seconds(10);
  static constexpr Duration kEvictionGrace = std::chrono::seconds(1);
  static constexpr Duration kFirstStatusDelay = std::chrono::milliseconds(100);

  PodWorker(PodContext& context, std::string uid, std::function<void()> on_finished);
  ~PodWorker();

  // A version from the API. Older ones than known are ignored.
  void Update(const api::ObjectPtr& pod);
  // The API has it no more (or never had): everything is taken down.
  void ObjectGone();
  // Something happened in the runtime, or the device health of the pod changed.
  void Sync();
  // A driver has come, or is waited for no longer: what waits for one is tried at once.
  void DriverUsable();

  const std::string& uid() const { return uid_; }
  const api::ObjectPtr& pod() const { return pod_; }
  bool finished() const { return finished_; }

 private:
  struct CrashBackoff {
    Duration delay{};
    std::string for_id;  // the ended attempt it was computed for
    MonotonicTime start_at{};
  };

  bool IsDeleted() const { return gone_ || (pod_ && pod_->is_being_deleted()); }
  bool IsOverInApi() const;
  void Step();
  void DecideStop(const PodPlan& plan);
  void FetchAdmissionClaims();
  bool AdmissionWantsClaims() const;
  // What the runtime has of this pod.
  PodFacts LookAtRuntime() const;
  RestartSettings Restart() const;
  // True once nothing of a run that is over is left running.
  bool StopSupersededContainers();
  void SyncProbes();

  // Resizing. False: something was begun.
  bool StepResize();
  std::optional<ResizeState> ResizeRefusal() const;
  void UpdateResources(const ContainerFacts& container, const std::string& resources);
  void SetResize(std::optional<ResizeState> state);

  // Running.
  void StepRun(const PodPlan& plan);
  void SetUpVolumes();
  void OnSources(Result<PodSources> sources);
  void PrepareClaims();
  void RecoverDevices();
  void RunSandbox();
  MonotonicTime StartTime(const ContainerFacts& container);
  void StartContainer(const ContainerFacts& container);
  void CreateContainer(const std::string& name, std::uint32_t attempt, const PodSources& sources);
  Result<ContainerConfig> BuildConfig(api::Value spec, std::uint32_t attempt,
                                      const PodSources& sources);
  void StartCreated(const std::string& name, const std::string& id);
  void FailContainer(const std::string& name, const char* reason, const std::string& message);
  void RetryPod();
  void RemoveStale();

  // Hooks.
  void RunPostStart(const std::string& name, const std::string& id);
  // Answers once, never inside the call; not after this is gone.
  void RunHook(const std::string& id, api::Value container, api::Value action, Duration timeout,
               std::function<void(Result<void>)> done);
  void FailHook(std::string why, std::function<void(Result<void>)> done);

  // Volumes that follow what they were made from.
  void RefreshVolumes();
  void MeasureVolumes();

  // Stopping.
  void StepStop();
  bool StopContainers();
  void StopOne(const std::string& id, const std::string& name, Duration grace);
  bool StopSandboxes();
  void Unprepare();
  void TakeDownVolumes();
  void RemoveRemains();
  void DeleteObject();

  void Begin() { busy_ = true; }
  void End();
  void ArmTimer(MonotonicTime when);
  void RetryStop();

  // Status. True if the API has it already.
  bool WriteStatus();
  // allocatedResourcesStatus of a container. A container that has ended keeps the last known health
  // of devices whose claims are unprepared: remediation controllers read failed pods.
  api::Draft ResourceHealth(const ContainerFacts& container);
  // Called before claims are unprepared, while the health of their devices is still known.
  void KeepHealth();
  bool WaitsWithFirstStatus();
  void OnStatusWritten(client::Reply reply);
  void RefreshObject();
  void ReadTerminationMessages();
  std::string ReadTerminationMessage(const ContainerFacts& facts, const ContainerStatus& status);

  api::Value root() const { return pod_ ? pod_->root() : api::Value(); }
  api::Value FindSpec(const std::string& name) const;
  DownwardInput Downward() const;
  VolumeInput Volumes(const PodSources& sources) const;
  std::string PodDirectory() const;
  client::ResourceRef Ref(std::string subresource = "") const;
  // For what others read. Whatever is waited for goes by the other clock, which nobody sets back.
  WallTime Now() const { return context_.loop.clock().Now(); }
  MonotonicTime Tick() const { return context_.loop.clock().Monotonic(); }
  std::weak_ptr<int> Alive() const { return alive_; }

  PodContext& context_;
  const std::string uid_;
  std::function<void()> on_finished_;

  api::ObjectPtr pod_;
  PodFacts facts_;
  bool gone_ = false;
  bool admitted_ = false;
  bool claims_fetched_ = false;
  MonotonicTime fetch_claims_at_{};
  Duration fetch_claims_delay_ = kFirstRetry;
  std::vector<api::ObjectPtr> admission_claims_;  // until admitted
  std::optional<PodVerdict> verdict_;

  bool busy_ = false;
  bool again_ = false;
  bool stepping_ = false;
  TimerHandle timer_;
  MonotonicTime timer_at_{};

  std::optional<PreparedVolumes> volumes_;
  PodSources::Tokens tokens_;  // as they are in the volumes
  MonotonicTime refresh_at_{};
  bool refreshing_ = false;
  MonotonicTime measure_at_{};
  bool measuring_ = false;
  std::optional<PodVerdict> eviction_;
  bool initialized_ = false;
  bool waits_for_driver_ = false;
  bool driver_came_ = false;  // while a call that needs one was under way
  bool devices_known_ = false;
  bool recovering_ = false;  // a call to prepare is under way, beside everything else
  MonotonicTime recover_at_{};
  Duration recover_delay_ = kFirstRetry;
  MonotonicTime retry_at_{};
  Duration retry_delay_ = kFirstRetry;
  std::map<std::string, CrashBackoff> crash_;
  std::map<std::string, std::pair<MonotonicTime, Duration>> container_retry_;
  std::map<std::string, WaitingReason> waiting_;
  std::map<std::string, std::unique_ptr<ContainerProbes>> probes_;  // by container, while it runs
  std::map<std::string, std::string> termination_messages_;
  std::map<std::string, api::TreePtr> kept_health_;  // allocatedResourcesStatus by container

  std::optional<ResizeState> resize_;
  MonotonicTime resize_retry_at_{};

  bool stopping_ = false;
  MonotonicTime stop_started_{};
  std::map<std::string, MonotonicTime> stops_;      // container id -> the kill time it was told
  std::set<std::string> hooked_;                    // container ids whose preStop hook was begun
  std::set<std::string> post_starting_;             // container ids whose postStart hook runs
  std::map<std::string, TimerHandle> hook_timers_;  // of hooks that sleep, by container id
  bool unprepared_ = false;
  bool volumes_removed_ = false;
  bool terminated_ = false;
  bool removed_ = false;
  bool object_deleted_ = false;
  bool finished_ = false;

  bool writing_status_ = false;
  MonotonicTime first_status_at_{};
  api::TreePtr asked_;       // what was written last, and
  api::ObjectPtr answered_;  // what the server made of it
  Duration status_retry_ = kFirstRetry;
  MonotonicTime status_retry_at_{};

  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace drakkar::node
