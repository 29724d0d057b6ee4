#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "api/meta/object.h"
#include "base/exec/backoff.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"
#include "node/admission/pod_fit.h"
#include "node/pods/container_config.h"
#include "node/pods/container_probes.h"
#include "node/pods/pod_dns.h"
#include "node/pods/pod_facts.h"
#include "node/pods/pod_side_states.h"
#include "node/pods/pod_sources.h"
#include "node/pods/pod_stage.h"
#include "node/pods/pod_status.h"
#include "node/pods/source_watch.h"
#include "node/pods/volumes.h"
#include "node/resources/pod_amounts.h"
#include "node/resources/pod_limits.h"

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
class CpuPool;
class DraManager;
class ImagePullQueue;
class NodeFeatures;
class PodNetwork;

// Shared by all workers of a node.
struct PodContext {
  EventLoop& loop;
  FileSystem& files;
  BlockingWork& work;  // for work that would block the loop
  client::Client& client;
  Runtime& runtime;
  DraManager& dra;
  cdi::Cache& cdi;
  DeviceNodeProbe& device_probe;
  VolumeHost& volume_host;
  client::EventRecorder& events;
  std::string node_name;
  std::string root_directory;  // volumes are in <root>/pods/<uid>
  std::string log_root;        // "/var/log/pods"
  std::string host_ip;
  std::string runtime_name = "drakkar";
  std::map<std::string, std::string> service_variables;  // address of the API server
  // The same for pods with a network of their own, which may not reach that address. Empty: they
  // get service_variables.
  std::map<std::string, std::string> pod_network_variables;
  DnsSettings dns;
  const PodNetwork* network = nullptr;         // null: pods share the host's network
  const client::Informer* services = nullptr;  // null: pods get only the API server's variables
  std::int64_t machine_memory_bytes = 0;
  std::int64_t machine_cpu_milli = 0;
  // The requests of all other pods on the node. May be empty: then a resize is never deferred.
  std::function<PodRequests(const std::string& uid)> others_requests;
  // What pods can have, and what those that were admitted before this one take. Null: anything
  // fits.
  NodeAmounts allocatable;
  std::function<NodeAmounts(const std::string& uid)> admitted_requests;
  AllowedSysctls sysctls;
  LimitRules limits;
  CpuPool* cpus = nullptr;  // null: all containers share all CPUs
  // The cgroup for a pod that starts; null: the runtime chooses.
  std::function<std::string(api::Value pod)> pod_cgroup = nullptr;
  bool seccomp_default = false;
  Metrics* metrics = nullptr;
  // Null: images are pulled at once, however many there are.
  ImagePullQueue* pulls = nullptr;
  Duration longest_crash_backoff = std::chrono::minutes(5);
  NetworkProber* prober = nullptr;      // null: network probes are reported as unsupported
  bool container_rules = false;         // gate ContainerRestartRules
  bool restart_all_containers = false;  // gate RestartAllContainersOnContainerExits
  // Admits or rejects each pod once per process, before the pod is started or adopted. Null: all
  // pods are admitted.
  const NodeFeatures* features = nullptr;
  // Why a pod that is new on the node must not start now, such as pressure. Null: nothing.
  std::function<std::optional<PodVerdict>(api::Value pod)> refuse_new = nullptr;
  // Says when a volume's content has changed. Null: volumes are only refreshed periodically.
  SourceWatch* sources = nullptr;
  // Computes allocatedResourcesStatus of a container. Empty with ResourceHealthStatus disabled.
  std::function<api::Draft(api::Value pod, api::Value container)> resource_health;
};

// One pod on this node, from admission to removal.
//
// Compares the API object with what the runtime reports and takes the next step: one asynchronous
// operation at a time, then it compares again. Everything it must remember across a restart is in
// the runtime and in the claim checkpoint, so a new worker adopts a running pod. Stages and
// transitions are in pod_stage.h; each transition is logged at debug level.
//
// Start order: volumes, claims, sandbox, init containers one by one, sidecars, containers. Stop
// order: containers (sidecars last, in reverse), sandbox, claims, volumes, final status, sandboxes
// and files, API object. Loop-bound.
class PodWorker {
 public:
  static constexpr Duration kFirstCrashBackoff = std::chrono::seconds(10);
  static constexpr Duration kLongestCrashBackoff = std::chrono::minutes(5);
  static constexpr Duration kCrashBackoffReset = std::chrono::minutes(10);
  static constexpr Duration kFirstRetry = std::chrono::seconds(1);
  static constexpr Duration kResizeRetry = std::chrono::seconds(10);
  static constexpr Duration kLongestRetry = std::chrono::seconds(60);
  static constexpr Backoff::Options kRetryBackoff{.initial = kFirstRetry, .max = kLongestRetry};
  static constexpr Backoff::Options kPullBackoff{.initial = kFirstCrashBackoff,
                                                 .max = kLongestCrashBackoff};
  static constexpr Duration kShowPullError = std::chrono::seconds(3);
  static constexpr Duration kLongestTime = std::chrono::hours(24 * 365);
  static constexpr Duration kLongestHook = std::chrono::hours(24);
  // How stale tokens in volumes may be, and ConfigMaps and Secrets that are not watched.
  static constexpr Duration kRefreshEvery = std::chrono::seconds(60);
  // A source that keeps changing refreshes the volumes no more often than this.
  static constexpr Duration kRefreshPause = std::chrono::seconds(1);
  // How long a volume may exceed its limit unnoticed. A volume that takes long to measure is
  // measured less often.
  static constexpr Duration kMeasureEvery = std::chrono::seconds(10);
  static constexpr Duration kEvictionGrace = std::chrono::seconds(1);
  static constexpr Duration kFirstStatusDelay = std::chrono::milliseconds(100);

  PodWorker(PodContext& context, std::string uid, std::function<void()> on_finished);
  ~PodWorker();

  // A new version from the API. Stale versions are ignored.
  void Update(const api::ObjectPtr& pod);
  // The API object does not exist (any more): the pod is taken down.
  void ObjectGone();
  // Something happened in the runtime, or the device health of the pod changed.
  void Sync();
  // A driver registered, or was declared gone: calls waiting for one are retried at once.
  void DriverUsable();
  // A ConfigMap or Secret in one of its volumes has changed.
  void VolumesChanged();
  // Ends the pod as failed, with at most this grace period. The first call counts.
  void Evict(PodVerdict verdict, Duration grace);

  const std::string& uid() const { return uid_; }
  const api::ObjectPtr& pod() const { return pod_; }
  PodStage stage() const { return stage_.state(); }

 private:
  struct CrashBackoff {
    Duration delay{};
    std::string for_id;  // the attempt whose exit it was computed for
    MonotonicTime start_at{};
  };

  // Why a pod is being taken down.
  enum class StopReason { kDeleted, kEndedInApi, kRejected, kCompleted, kDeadline, kEvicted };
  static std::string_view Name(StopReason reason);

  bool IsStopping() const { return node::IsStopping(stage()); }
  bool IsBusy() const { return operation_ != PodOperation::kNone; }
  bool IsFinished() const { return stage() == PodStage::kFinished; }
  void Advance(PodEvent event, std::string_view reason = "");

  struct ContainerRetry {
    MonotonicTime at{};
    Backoff backoff{kRetryBackoff};
  };

  struct ImagePull {
    std::string image;
    bool in_flight = false;
    bool is_fresh = false;  // pulled for the container that starts next
    MonotonicTime begun{};
    std::string error;            // of the last one
    MonotonicTime back_off_at{};  // when to show that the node backs off; zero: shown
    Backoff backoff{kPullBackoff};
  };

  bool IsDeleted() const { return object_gone_ || (pod_ && pod_->is_being_deleted()); }
  bool IsOverInApi() const;
  void Step();
  // Admits the pod, or returns why it must stop.
  std::optional<StopReason> DecideStop(const PodPlan& plan);
  std::optional<StopReason> Admit();
  std::optional<StopReason> CheckDeadline();
  void FetchAdmissionClaims();
  bool NeedsAdmissionClaims() const;
  bool NeedsRuntimeClass() const;
  void FetchRuntimeClass();
  // Reads the pod's RuntimeClass; null: it does not exist.
  void GetRuntimeClass(std::function<void(Result<api::ObjectPtr>)> done);
  // Finds the handler for the pod, or returns why it has none.
  std::optional<PodVerdict> ChooseHandler();
  // What the runtime reports about this pod.
  PodFacts LookAtRuntime() const;
  RestartSettings Restart() const;
  // True once no container of a previous run is running.
  bool StopSupersededContainers();
  // Containers whose image was changed start again with the new one.
  void StopChangedContainers();
  void SyncProbes();

  // Resizing. False: an operation was started.
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
  void CreateSandbox();
  void FailSandbox(const std::string& message);
  MonotonicTime StartTime(const ContainerFacts& container);
  void StartContainer(const ContainerFacts& container);

  // Images. A pull runs in parallel with everything else.
  // A pull is for a container's own image or for one of its image volumes; both have a key.
  bool HasImages(const ContainerFacts& container);
  bool HasImage(const std::string& key, const std::string& image, std::string_view policy);
  bool IsPulling(const std::string& container) const;
  void StartPull(const std::string& key, const std::string& image);
  std::vector<RegistryCredential> ImageCredentials(const PodSources& sources,
                                                   const std::string& image);
  void OnPulled(const std::string& key, const std::string& image, Result<Image> pulled);
  void ShowPullBackOff();

  void CreateContainer(const std::string& name, std::uint32_t attempt, const PodSources& sources);
  Result<ContainerConfig> BuildConfig(api::Value spec, std::uint32_t attempt,
                                      const PodSources& sources);
  void StartCreated(const std::string& name, const std::string& id);
  void FailContainer(const std::string& name, const char* reason, const std::string& message);
  void RemoveStale();

  // Hooks.
  void RunPostStart(const std::string& name, const std::string& id);
  // `done` runs once, never inside the call, and not after this object is destroyed.
  void RunHook(const std::string& id, api::Value container, api::Value action, Duration timeout,
               TimerHandle ContainerAttempt::*timer, std::function<void(Result<void>)> done);
  bool IsPostStarting(const std::string& id) const;
  void FailHook(std::string why, std::function<void(Result<void>)> done);

  // Periodic work on volumes.
  void RefreshVolumes();
  // The next refresh comes soon.
  void RefreshSoon();
  // Remembers what the volumes show, so that changes of it are noticed.
  void NoteSources(const PodSources& sources);
  void WatchSources();
  void MeasureVolumes();

  // Stopping.
  void StepStop();
  // Does the work of the current stage. Returns the event that ends the stage, or nothing while the
  // work is in progress.
  std::optional<PodEvent> TakeDown();
  bool FoundRunning() const;
  bool StopContainers();
  // Whether a stop of this attempt was requested.
  bool IsStopRequested(const std::string& id) const;
  // Runs the preStop hook once, then asks the runtime. A repeated request only has an effect if its
  // deadline is earlier.
  void StopContainer(const std::string& id, const std::string& name, Duration grace);
  void AskRuntimeToStop(const std::string& id, const std::string& name, Duration grace);
  void RetryFailedStops();
  bool StopSandboxes();
  void Unprepare();
  void TakeDownVolumes();
  void RemoveRemains();
  void Finish();
  void DeleteObject();

  // A duration from a spec, clamped to [0, kLongestTime] so that it cannot overflow.
  static Duration BoundedSeconds(std::int64_t seconds);
  // terminationGracePeriodSeconds.
  Duration GracePeriod() const;

  void Begin(PodOperation operation);
  void End();
  // Requests another Step after the current one.
  void StepAgain();
  void ArmTimer(MonotonicTime when);
  // Delays the retry of what failed.
  void BackOff();

  // Status. True if the API already has it.
  bool WriteStatus();
  // allocatedResourcesStatus of a container. A terminated container keeps the last known health of
  // devices whose claims are unprepared, because remediation controllers read failed pods.
  api::Draft ResourceHealth(const ContainerFacts& container);
  // Called before claims are unprepared, while the health of their devices is still known.
  void KeepHealth();
  bool WaitsWithFirstStatus();
  bool IsWritingStatus() const { return status_.state() != StatusWrite::kIdle; }
  bool IsInitialized() const;
  void OnStatusWritten(client::Reply reply);
  void RefreshObject();
  void ReadTerminationMessages();
  std::string ReadTerminationMessage(const ContainerFacts& facts, const ContainerStatus& status);

  api::Value root() const { return pod_ ? pod_->root() : api::Value(); }
  api::Value FindSpec(const std::string& name) const;
  DownwardInput Downward() const;
  // The pod's own addresses, or the host's if it shares its network; none before there is a
  // sandbox.
  std::vector<std::string> PodIps() const;
  // For probes and hooks.
  std::string PodIp() const;
  bool HasOwnNetwork() const;
  Result<PodSandboxConfig> SandboxConfig();
  CgroupResources LimitsOf(api::Value container) const;
  bool HasExclusiveCpus() const;
  VolumeInput Volumes(const PodSources& sources) const;
  std::string PodDirectory() const;
  client::ResourceRef Ref(std::string subresource = "") const;
  // Wall time, for timestamps that others read. All waiting uses the monotonic clock, which nobody
  // can set back.
  WallTime Now() const { return context_.loop.clock().Now(); }
  MonotonicTime Tick() const { return context_.loop.clock().Monotonic(); }

  PodContext& context_;
  const std::string uid_;
  std::function<void()> on_finished_;

  api::ObjectPtr pod_;
  PodFacts facts_;
  StateMachine<kPodTable> stage_{PodStage::kAdmitting};
  PodOperation operation_ = PodOperation::kNone;
  // The API object is gone. Can become true at any stage and never reverts.
  bool object_gone_ = false;

  // A Step may request another one, which must not run inside it.
  enum class Stepping { kIdle, kStepping, kAgain };
  Stepping stepping_ = Stepping::kIdle;
  TimerHandle timer_;
  MonotonicTime timer_at_{};
  MonotonicTime retry_at_{};
  Backoff retry_backoff_{kRetryBackoff};

  // Admission.
  MonotonicTime fetch_at_{};
  Backoff fetch_backoff_{kRetryBackoff};
  std::optional<std::vector<api::ObjectPtr>> admission_claims_;  // set between fetch and admission
  // Set between fetch and admission; null: it does not exist.
  std::optional<api::ObjectPtr> runtime_class_;
  std::optional<std::string> handler_;  // of the RuntimeClass, once known
  std::optional<PodVerdict> verdict_;

  // Volumes.
  std::optional<PreparedVolumes> volumes_;
  PodSources::Tokens tokens_;  // as written to the volumes
  Chore refresh_;
  MonotonicTime refreshed_at_{};
  bool refresh_again_ = false;  // something changed during the refresh in flight
  std::optional<ShownSources> unwatched_sources_;
  Chore measure_;
  std::optional<PodVerdict> eviction_;
  Duration eviction_grace_ = kEvictionGrace;

  // Claims. At most one of these two is in flight.
  StateMachine<kDriverTable> claims_call_{DriverCall::kIdle};  // prepare or unprepare
  StateMachine<kDriverTable> recovery_{DriverCall::kIdle};     // in parallel with other operations
  MonotonicTime recover_at_{};
  Backoff recover_backoff_{kRetryBackoff};

  // Containers.
  std::map<std::string, ContainerAttempt> attempts_;  // by container id
  std::map<std::string, CrashBackoff> crash_;
  std::map<std::string, ContainerRetry> container_retry_;
  std::map<std::string, ImagePull> pulls_;  // by key: "container", "container/volume"
  std::map<std::string, WaitingReason> waiting_;
  std::map<std::string, std::unique_ptr<ContainerProbes>>
      probes_;  // by container name, while it runs
  std::map<std::string, std::string> termination_messages_;
  std::map<std::string, api::TreePtr> kept_health_;  // allocatedResourcesStatus by container
  std::optional<ResizeState> resize_;
  MonotonicTime resize_retry_at_{};
  MonotonicTime stop_started_{};

  // Status.
  StateMachine<kStatusTable> status_{StatusWrite::kIdle};
  MonotonicTime first_status_at_{};
  api::TreePtr asked_;       // what was written last, and
  api::ObjectPtr answered_;  // what the server made of it
  Backoff status_backoff_{kRetryBackoff};
  MonotonicTime status_retry_at_{};

  Lifetime lifetime_;
};

}  // namespace drakkar::node
