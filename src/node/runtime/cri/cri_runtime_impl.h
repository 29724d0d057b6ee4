#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/exec/backoff.h"
#include "base/exec/lifetime.h"
#include "node/runtime/cri/cri_messages.h"
#include "node/runtime/cri/cri_runtime.h"

namespace drakkar::node {

// Private to node/runtime/cri.
class CriRuntimeImpl final : public CriRuntime {
 public:
  explicit CriRuntimeImpl(CriRuntimeOptions options);

  void Open(RuntimeCallback<void> done) override;
  features::RuntimeFeatures Features() const override { return status_.features; }
  bool HasGroupsPolicy() const override { return status_.has_groups_policy; }
  std::optional<std::vector<RuntimeHandler>> Handlers() const override { return status_.handlers; }
  std::vector<std::string> CdiDirectories() const override { return status_.cdi_directories; }
  bool UsesSystemdCgroups() const override;
  std::string WhyNotReady() const override;
  std::string RuntimeVersion() const override;
  void OnExit(std::function<void(const ContainerStatus&)> listener) override {
    listener_ = std::move(listener);
  }

  void RunPodSandbox(PodSandboxConfig config, RuntimeCallback<std::string> done) override;
  void StopPodSandbox(const std::string& id, RuntimeCallback<void> done) override;
  void RemovePodSandbox(const std::string& id, RuntimeCallback<void> done) override;
  std::vector<PodSandbox> ListPodSandboxes() const override;

  void CreateContainer(const std::string& sandbox_id, ContainerConfig config,
                       RuntimeCallback<std::string> done) override;
  void StartContainer(const std::string& id, RuntimeCallback<void> done) override;
  void StopContainer(const std::string& id, Duration grace, RuntimeCallback<void> done) override;
  void RemoveContainer(const std::string& id, RuntimeCallback<void> done) override;
  void ChangeCgroup(const std::string& id, CgroupChanges changes,
                    RuntimeCallback<void> done) override;
  void UpdateContainer(const std::string& id, ResourceUpdate update,
                       RuntimeCallback<void> done) override;
  std::vector<ContainerStatus> ListContainers() const override;
  Result<ContainerStatus> GetContainerStatus(const std::string& id) const override;

  void ExecSync(const std::string& id, std::vector<std::string> command, Duration timeout,
                RuntimeCallback<ExecResult> done) override;
  Result<std::unique_ptr<ProcessStreams>> Exec(const std::string& id,
                                               std::vector<std::string> command,
                                               const StreamOptions& options,
                                               ProcessStreams::Events& events) override;
  Result<std::unique_ptr<ProcessStreams>> Attach(const std::string& id,
                                                 const StreamOptions& options,
                                                 ProcessStreams::Events& events) override;
  Result<std::unique_ptr<PortConnection>> ConnectPort(const std::string& sandbox_id,
                                                      std::uint16_t port,
                                                      PortConnection::Events& events) override;
  void ReopenLog(const std::string& id, RuntimeCallback<void> done) override;

  Result<Image> ImageStatus(const std::string& name) const override;
  std::vector<Image> ListImages() const override;
  void PullImage(PullRequest request, RuntimeCallback<Image> done) override;
  bool IsImported(const std::string& name) const override;
  std::vector<std::string> SandboxesLoggingBelow(const std::string& directory) const override;
  void RemoveImage(const std::string& id, RuntimeCallback<void> done) override;
  void ReadUsage(UsageScope scope, RuntimeCallback<RuntimeUsage> done) override;

 private:
  using Answer = absl::AnyInvocable<void(Result<std::string>)>;
  struct KnownSandbox {
    cri::Sandbox details;
    std::uint64_t sequence = 0;
  };
  struct KnownContainer {
    ContainerStatus status;
    std::uint64_t sequence = 0;
    // Changed by an update. The runtime does not keep them.
    std::map<std::string, std::string> updated_annotations = {};
  };
  struct Relisting;

  // cri_runtime.cc: the connection and the calls.
  void Ask(const char* method, std::string message, Duration timeout, Answer done);
  template <typename T>
  void Reply(RuntimeCallback<T> done, Result<T> result) {
    loop_.Post(lifetime_.Guard([done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    }));
  }
  std::optional<Error> Refuse() const;
  void OnConnection(bool connected);
  void Greet();
  void Greeted();
  void FinishOpening(Result<void> result);
  void Log(const std::string& line) const;
  void CreatePodCgroup(const PodSandboxConfig& config);
  void RemovePodCgroup(const std::string& path, int attempts_left);

  // cri_state.cc: the cache.
  void Relist(absl::AnyInvocable<void(Result<void>)> done);
  void ApplyLists(const std::shared_ptr<Relisting>& relisting);
  void StepDone(const std::shared_ptr<Relisting>& relisting);
  void ScheduleRelist();
  void RelistSoon();
  void WatchEvents();
  void OnEvent(const std::string& message);
  void RefreshSandbox(const std::string& id, absl::AnyInvocable<void(Result<void>)> done);
  // Reads a container's status into the cache, and reports its exit.
  void RefreshContainer(const std::string& id, const std::string& sandbox_id,
                        absl::AnyInvocable<void(Result<void>)> done);
  void RefreshContainersOf(const std::string& sandbox_id, absl::AnyInvocable<void()> done);
  void Absorb(ContainerStatus fresh);
  void Forget(const std::string& container_id);
  void RefreshImages(absl::AnyInvocable<void(Result<void>)> done);
  void ReadReported();
  void WriteReported();

  // cri_usage.cc
  RuntimeUsage PodsOf(std::vector<ContainerUsage> containers) const;
  void CompleteUsage(RuntimeUsage& usage) const;

  void PullWith(const std::string& key, std::shared_ptr<PullRequest> request, std::size_t next,
                std::string errors);
  void FinishPull(const std::string& key, const Result<Image>& result);
  Result<std::unique_ptr<ProcessStreams>> Stream(const std::string& id, const char* method,
                                                 std::string message, const StreamOptions& options,
                                                 ProcessStreams::Events& events);

  const CriRuntimeOptions options_;
  EventLoop& loop_;
  std::optional<Cgroups> cgroups_;
  RuntimeCallback<void> opening_;
  TimerHandle open_timeout_;
  bool greeting_ = false;
  bool is_open_ = false;
  bool connected_ = false;
  cri::Version version_;
  cri::RuntimeStatus status_;
  std::function<void(const ContainerStatus&)> listener_;

  std::map<std::string, KnownSandbox> sandboxes_;
  std::map<std::string, KnownContainer> containers_;
  std::vector<cri::CriImage> images_;
  std::set<std::string> reported_;  // containers whose exit has been reported
  std::set<std::string> removing_;  // containers being removed: no answer brings them back
  std::uint64_t next_sequence_ = 1;
  // Incremented by every change made through us. A list that was requested before such a change
  // cannot show what has appeared or disappeared.
  std::uint64_t generation_ = 0;
  bool relisting_ = false;
  bool relist_again_ = false;
  bool has_events_ = false;
  bool events_unimplemented_ = false;
  Backoff events_backoff_{{.initial = std::chrono::seconds(1), .max = std::chrono::seconds(30)}};
  std::map<std::string, std::vector<RuntimeCallback<Image>>> pulls_;
  mutable MonotonicTime images_wanted_at_{};

  TimerHandle relist_timer_;
  TimerHandle events_timer_;
  std::map<std::string, TimerHandle> cgroup_timers_;  // by path
  std::unique_ptr<rpc::Channel> channel_;
  std::unique_ptr<rpc::ClientStream> events_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
