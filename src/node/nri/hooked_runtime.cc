#include "node/nri/hooked_runtime.h"

#include <utility>

#include "base/exec/lifetime.h"
#include "base/text/text.h"
#include "node/nri/describe.h"
#include "node/nri/required_plugins.h"
#include "node/runtime/container_id.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.nri");

// How long an evicted container has to end.
constexpr Duration kEvictionGrace = std::chrono::seconds(30);

class HookedRuntime final : public Runtime, public HookedObjects {
 public:
  HookedRuntime(std::unique_ptr<Runtime> beneath, PodHooks& hooks, Random& random,
                CdiInjector injector)
      : beneath_(std::move(beneath)),
        hooks_(hooks),
        random_(random),
        injector_(std::move(injector)) {
    hooks_.Connect(this);
  }
  ~HookedRuntime() override { hooks_.Connect(nullptr); }

  void Open(RuntimeCallback<void> done) override { beneath_->Open(std::move(done)); }
  features::RuntimeFeatures Features() const override { return beneath_->Features(); }
  std::optional<std::vector<RuntimeHandler>> Handlers() const override {
    return beneath_->Handlers();
  }
  bool HasGroupsPolicy() const override { return beneath_->HasGroupsPolicy(); }
  std::vector<std::string> CdiDirectories() const override { return beneath_->CdiDirectories(); }
  bool UsesSystemdCgroups() const override { return beneath_->UsesSystemdCgroups(); }
  std::string WhyNotReady() const override { return beneath_->WhyNotReady(); }
  std::string RuntimeVersion() const override { return beneath_->RuntimeVersion(); }
  void OnExit(std::function<void(const ContainerStatus&)> listener) override {
    // Nothing waits for the hooks of a stop.
    beneath_->OnExit([this, listener = std::move(listener)](const ContainerStatus& status) {
      TellContainer(rpc::NriEvent::kStopContainer, status.id, [] {});
      listener(status);
    });
  }

  void RunPodSandbox(PodSandboxConfig config, RuntimeCallback<std::string> done) override {
    beneath_->RunPodSandbox(
        std::move(config),
        [this, self = lifetime_.Observe(), done = std::move(done)](Result<std::string> id) mutable {
          if (!self.alive() || !id.ok()) return done(std::move(id));
          RunHooks(*std::move(id), std::move(done));
        });
  }

  void StopPodSandbox(const std::string& id, RuntimeCallback<void> done) override {
    Tell(rpc::NriEvent::kStopPodSandbox, id, [this, id, done = std::move(done)]() mutable {
      beneath_->StopPodSandbox(id, std::move(done));
    });
  }
  void RemovePodSandbox(const std::string& id, RuntimeCallback<void> done) override {
    // Its containers are removed with it.
    for (const ContainerStatus& status : beneath_->ListContainers()) {
      if (status.sandbox_id == id) TellRemoval(status.id, [] {});
    }
    Tell(rpc::NriEvent::kRemovePodSandbox, id, [this, id, done = std::move(done)]() mutable {
      beneath_->RemovePodSandbox(id, std::move(done));
    });
  }
  std::vector<PodSandbox> ListPodSandboxes() const override { return beneath_->ListPodSandboxes(); }

  void CreateContainer(const std::string& sandbox_id, ContainerConfig config,
                       RuntimeCallback<std::string> done) override {
    std::optional<PodSandbox> sandbox = Find(sandbox_id);
    const bool wanted = hooks_.Wants(Event::kCreateContainer) ||
                        hooks_.Wants(Event::kPostCreateContainer) ||
                        (sandbox && RequiresPlugins(sandbox->annotations));
    if (!wanted || !sandbox) {
      return beneath_->CreateContainer(sandbox_id, std::move(config), std::move(done));
    }
    // Plugins need the id before the container exists.
    if (config.id.empty()) config.id = NewContainerId(random_);
    auto described = DescribeContainer(*sandbox, config);
    hooks_.DeliverContainer(
        Event::kCreateContainer, DescribeSandbox(*sandbox), std::move(described), {},
        [this, self = lifetime_.Observe(), sandbox = *sandbox, config = std::move(config),
         done = std::move(done)](Result<PodHooks::Changes> changes) mutable {
          if (!self.alive()) return done(Unavailable("the node is stopping"));
          if (!changes.ok()) return done(std::move(changes).error());
          if (auto applied = ApplyAdjustment(changes->adjustment, injector_, config);
              !applied.ok()) {
            return done(std::move(applied).error().Prefixed(
                StrCat("changes of NRI plugins to container ", config.name)));
          }
          CreateBeneath(sandbox, std::move(config), changes->adjustment.resources, std::move(done));
        });
  }

  void StartContainer(const std::string& id, RuntimeCallback<void> done) override {
    const auto told = Describe(Event::kStartContainer, id);
    if (!told) return StartBeneath(id, std::move(done));
    hooks_.DeliverContainer(Event::kStartContainer, told->first, told->second, {},
                            [this, self = lifetime_.Observe(), id,
                             done = std::move(done)](Result<PodHooks::Changes> answer) mutable {
                              if (!answer.ok()) return done(std::move(answer).error());
                              if (!self.alive()) return done(Unavailable("the node is stopping"));
                              StartBeneath(id, std::move(done));
                            });
  }
  void StopContainer(const std::string& id, Duration grace, RuntimeCallback<void> done) override {
    beneath_->StopContainer(id, grace, std::move(done));
  }
  void RemoveContainer(const std::string& id, RuntimeCallback<void> done) override {
    TellRemoval(id, [this, id, done = std::move(done)]() mutable {
      beneath_->RemoveContainer(id, std::move(done));
    });
  }
  void UpdateContainer(const std::string& id, ResourceUpdate update,
                       RuntimeCallback<void> done) override {
    const Result<ContainerStatus> status = beneath_->GetContainerStatus(id);
    const auto sandbox = status.ok() ? Find(status->sandbox_id) : std::nullopt;
    if (!sandbox || !hooks_.Wants(Event::kUpdatePodSandbox)) {
      return UpdateWithHooks(id, std::move(update), std::move(done));
    }
    auto resources = DescribeResources(update.pod);
    hooks_.Deliver(Event::kUpdatePodSandbox, DescribeSandbox(*sandbox), std::move(resources),
                   [this, self = lifetime_.Observe(), id, update = std::move(update),
                    done = std::move(done)](Result<void> answer) mutable {
                     if (!answer.ok()) return done(std::move(answer));
                     if (!self.alive()) return done(Unavailable("the node is stopping"));
                     UpdateWithHooks(id, std::move(update), std::move(done));
                   });
  }
  void ChangeCgroup(const std::string& id, CgroupChanges changes,
                    RuntimeCallback<void> done) override {
    beneath_->ChangeCgroup(id, std::move(changes), std::move(done));
  }
  Result<std::string> ContainerSpec(const std::string& id) const override {
    return beneath_->ContainerSpec(id);
  }
  std::vector<ContainerStatus> ListContainers() const override {
    return beneath_->ListContainers();
  }
  Result<ContainerStatus> GetContainerStatus(const std::string& id) const override {
    return beneath_->GetContainerStatus(id);
  }
  void ExecSync(const std::string& id, std::vector<std::string> command, Duration timeout,
                RuntimeCallback<ExecResult> done) override {
    beneath_->ExecSync(id, std::move(command), timeout, std::move(done));
  }
  Result<std::unique_ptr<ProcessStreams>> Exec(const std::string& id,
                                               std::vector<std::string> command,
                                               const StreamOptions& options,
                                               ProcessStreams::Events& events) override {
    return beneath_->Exec(id, std::move(command), options, events);
  }
  Result<std::unique_ptr<ProcessStreams>> Attach(const std::string& id,
                                                 const StreamOptions& options,
                                                 ProcessStreams::Events& events) override {
    return beneath_->Attach(id, options, events);
  }
  Result<std::unique_ptr<PortConnection>> ConnectPort(const std::string& sandbox_id,
                                                      std::uint16_t port,
                                                      PortConnection::Events& events) override {
    return beneath_->ConnectPort(sandbox_id, port, events);
  }
  void ReopenLog(const std::string& id, RuntimeCallback<void> done) override {
    beneath_->ReopenLog(id, std::move(done));
  }
  Result<Image> ImageStatus(const std::string& name) const override {
    return beneath_->ImageStatus(name);
  }
  std::vector<Image> ListImages() const override { return beneath_->ListImages(); }
  void PullImage(PullRequest request, RuntimeCallback<Image> done) override {
    beneath_->PullImage(std::move(request), std::move(done));
  }
  bool IsImported(const std::string& name) const override { return beneath_->IsImported(name); }
  void RemoveImage(const std::string& id, RuntimeCallback<void> done) override {
    beneath_->RemoveImage(id, std::move(done));
  }
  void ReadUsage(UsageScope scope, RuntimeCallback<RuntimeUsage> done) override {
    beneath_->ReadUsage(scope, std::move(done));
  }

  // HookedObjects. What has ended is not described: nothing about it can change.
  std::vector<rpc::NriPodSandbox> DescribePods() override {
    std::vector<rpc::NriPodSandbox> pods;
    for (const PodSandbox& sandbox : beneath_->ListPodSandboxes()) {
      if (sandbox.state == SandboxState::kReady) pods.push_back(DescribeSandbox(sandbox));
    }
    return pods;
  }
  std::vector<rpc::NriContainer> DescribeContainers() override {
    std::vector<rpc::NriContainer> containers;
    for (const ContainerStatus& status : beneath_->ListContainers()) {
      if (status.state == ContainerState::kExited) continue;
      Known(status);
    }
    for (const auto& [id, container] : described_) {
      if (container.state != rpc::NriContainerState::kStopped) containers.push_back(container);
    }
    return containers;
  }
  void Update(std::vector<rpc::NriContainerUpdate> updates,
              absl::AnyInvocable<void(std::vector<FailedUpdate>)> done) override {
    struct Progress {
      std::size_t open = 0;
      std::vector<FailedUpdate> failed;
      absl::AnyInvocable<void(std::vector<FailedUpdate>)> done;
    };
    auto progress = std::make_shared<Progress>();
    progress->open = updates.size() + 1;
    progress->done = std::move(done);
    const auto finish = [progress] {
      if (--progress->open == 0) progress->done(std::move(progress->failed));
    };
    for (const rpc::NriContainerUpdate& update : updates) {
      Change(update, [progress, finish, update](Result<void> changed) {
        if (!changed.ok()) progress->failed.push_back({update, std::move(changed).error()});
        finish();
      });
    }
    finish();
  }
  void Evict(const rpc::NriEviction& eviction) override {
    const Result<ContainerStatus> status = beneath_->GetContainerStatus(eviction.container_id);
    if (!status.ok()) return;
    kLog.Warning("NRI plugin evicts a container",
                 {{"container", status->name}, {"reason", eviction.reason}});
    beneath_->StopContainer(eviction.container_id, kEvictionGrace, [](Result<void> stopped) {
      if (!stopped.ok()) {
        kLog.Warning("could not stop an evicted container", {{"err", stopped.error().message}});
      }
    });
  }

 private:
  using Event = rpc::NriEvent;

  // The description of a container. One that was created before the agent restarted is known only
  // by its status and its bundle.
  rpc::NriContainer& Known(const ContainerStatus& status) {
    auto known = described_.find(status.id);
    if (known == described_.end()) {
      const Result<std::string> spec = beneath_->ContainerSpec(status.id);
      known = described_
                  .emplace(status.id, DescribeContainer(status, spec.ok() ? *spec : std::string()))
                  .first;
    }
    UpdateDescription(status, known->second);
    return known->second;
  }

  void Change(const rpc::NriContainerUpdate& update, RuntimeCallback<void> done) {
    const std::string& id = update.container_id;
    Result<CgroupChanges> changes = ChangesFrom(update.resources);
    if (!changes.ok()) return done(std::move(changes).error());
    const auto known = described_.find(id);
    if (known != described_.end()) MergeResources(update.resources, known->second.resources);
    const Result<ContainerStatus> status = beneath_->GetContainerStatus(id);
    if (!status.ok() && known != described_.end()) {
      // Its creation is under way.
      Merge(*changes, early_changes_[id]);
      return done(Ok());
    }
    if (!status.ok() || status->state == ContainerState::kExited) return done(Ok());
    beneath_->ChangeCgroup(id, *std::move(changes),
                           [this, self = lifetime_.Observe(), id,
                            done = std::move(done)](Result<void> changed) mutable {
                             if (changed.ok() || !self.alive()) return done(std::move(changed));
                             // It may have ended meanwhile.
                             const auto now = beneath_->GetContainerStatus(id);
                             const bool runs = now.ok() && now->state != ContainerState::kExited;
                             done(runs ? std::move(changed) : Ok());
                           });
  }

  void CreateBeneath(const PodSandbox& sandbox, ContainerConfig config,
                     const rpc::NriResources& resources, RuntimeCallback<std::string> done) {
    const std::string id = config.id;
    rpc::NriContainer described = DescribeContainer(sandbox, config);
    MergeResources(resources, described.resources);
    described_[id] = std::move(described);
    beneath_->CreateContainer(
        sandbox.id, std::move(config),
        [this, self = lifetime_.Observe(), id,
         done = std::move(done)](Result<std::string> created) mutable {
          if (!self.alive()) return done(std::move(created));
          auto early = early_changes_.extract(id);
          if (!created.ok()) {
            described_.erase(id);
            return done(std::move(created));
          }
          auto tell = [this, id, done = std::move(done)]() mutable {
            TellContainer(Event::kPostCreateContainer, id,
                          [id, done = std::move(done)]() mutable { done(id); });
          };
          if (early.empty()) return tell();
          beneath_->ChangeCgroup(id, std::move(early.mapped()),
                                 [self, tell = std::move(tell)](Result<void> changed) mutable {
                                   if (!changed.ok()) {
                                     kLog.Warning(
                                         "could not update a new container for an NRI plugin",
                                         {{"err", changed.error().message}});
                                   }
                                   if (self.alive()) tell();
                                 });
        });
  }

  void UpdateWithHooks(const std::string& id, ResourceUpdate update, RuntimeCallback<void> done) {
    const auto told = Describe(Event::kUpdateContainer, id);
    if (!told) return UpdateBeneath(id, std::move(update), {}, std::move(done));
    auto resources = DescribeResources(update.container);
    hooks_.DeliverContainer(
        Event::kUpdateContainer, told->first, told->second, std::move(resources),
        [this, self = lifetime_.Observe(), id, update = std::move(update),
         done = std::move(done)](Result<PodHooks::Changes> answer) mutable {
          if (!answer.ok()) return done(std::move(answer).error());
          if (!self.alive()) return done(Unavailable("the node is stopping"));
          UpdateBeneath(id, std::move(update), answer->resources, std::move(done));
        });
  }

  void UpdateBeneath(const std::string& id, ResourceUpdate update, const rpc::NriResources& wanted,
                     RuntimeCallback<void> done) {
    Result<CgroupChanges> changes = ChangesFrom(wanted);
    if (!changes.ok()) return done(std::move(changes).error());
    if (const auto known = described_.find(id); known != described_.end()) {
      MergeResources(DescribeResources(update.container), known->second.resources);
      MergeResources(wanted, known->second.resources);
    }
    auto finish = [this, self = lifetime_.Observe(), id,
                   done = std::move(done)](Result<void> updated) mutable {
      if (!self.alive() || !updated.ok()) return done(std::move(updated));
      TellContainer(Event::kPostUpdateContainer, id, [this, id, done = std::move(done)]() mutable {
        const Result<ContainerStatus> status = beneath_->GetContainerStatus(id);
        if (!status.ok()) return done(Ok());
        Tell(Event::kPostUpdatePodSandbox, status->sandbox_id,
             [done = std::move(done)]() mutable { done(Ok()); });
      });
    };
    beneath_->UpdateContainer(id, std::move(update),
                              [this, self = lifetime_.Observe(), id, changes = *std::move(changes),
                               finish = std::move(finish)](Result<void> updated) mutable {
                                if (!self.alive() || !updated.ok() || changes.empty())
                                  return finish(std::move(updated));
                                beneath_->ChangeCgroup(id, std::move(changes), std::move(finish));
                              });
  }

  std::optional<PodSandbox> Find(const std::string& id) const {
    for (PodSandbox& sandbox : beneath_->ListPodSandboxes()) {
      if (sandbox.id == id) return std::move(sandbox);
    }
    return std::nullopt;
  }

  void RunHooks(std::string id, RuntimeCallback<std::string> done) {
    const std::optional<PodSandbox> sandbox = Find(id);
    if (!sandbox) return done(std::move(id));
    hooks_.Deliver(
        rpc::NriEvent::kRunPodSandbox, DescribeSandbox(*sandbox), {},
        [this, self = lifetime_.Observe(), id,
         done = std::move(done)](Result<void> result) mutable {
          if (result.ok()) return done(id);
          if (!self.alive()) return done(result.error());
          // A sandbox whose hooks failed must not be mistaken for a good one.
          beneath_->RemovePodSandbox(
              id, [error = result.error(), done = std::move(done)](Result<void> removed) mutable {
                if (!removed.ok()) {
                  kLog.Warning("could not remove sandbox after an NRI hook failed",
                               {{"err", removed.error().message}});
                }
                done(std::move(error));
              });
        });
  }

  void Tell(rpc::NriEvent event, const std::string& id, absl::AnyInvocable<void()> then) {
    const std::optional<PodSandbox> sandbox = Find(id);
    // Plugins were already notified of what has stopped.
    if (!sandbox ||
        (event == rpc::NriEvent::kStopPodSandbox && sandbox->state != SandboxState::kReady)) {
      return then();
    }
    hooks_.Deliver(
        event, DescribeSandbox(*sandbox), {},
        [self = lifetime_.Observe(), then = std::move(then)](Result<void> result) mutable {
          if (!result.ok()) kLog.Warning("NRI hook failed", {{"err", result.error().message}});
          if (self.alive()) then();
        });
  }

  void StartBeneath(const std::string& id, RuntimeCallback<void> done) {
    beneath_->StartContainer(id, [this, self = lifetime_.Observe(), id,
                                  done = std::move(done)](Result<void> started) mutable {
      if (!self.alive() || !started.ok()) return done(std::move(started));
      TellContainer(Event::kPostStartContainer, id,
                    [done = std::move(done)]() mutable { done(Ok()); });
    });
  }

  // The description of a container for plugins; nothing if no plugin wants the event or the
  // container is unknown.
  std::optional<std::pair<rpc::NriPodSandbox, rpc::NriContainer>> Describe(Event event,
                                                                           const std::string& id) {
    if (!hooks_.Wants(event)) return std::nullopt;
    const Result<ContainerStatus> status = beneath_->GetContainerStatus(id);
    if (!status.ok()) return std::nullopt;
    const std::optional<PodSandbox> sandbox = Find(status->sandbox_id);
    if (!sandbox) return std::nullopt;
    return std::pair(DescribeSandbox(*sandbox), Known(*status));
  }

  // For events whose errors change nothing.
  void TellContainer(Event event, const std::string& id, absl::AnyInvocable<void()> then) {
    const auto told = Describe(event, id);
    if (!told) return then();
    hooks_.DeliverContainer(event, told->first, told->second, {},
                            [self = lifetime_.Observe(),
                             then = std::move(then)](Result<PodHooks::Changes> answer) mutable {
                              if (!answer.ok())
                                kLog.Warning("NRI hook failed", {{"err", answer.error().message}});
                              if (self.alive()) then();
                            });
  }

  void TellRemoval(const std::string& id, absl::AnyInvocable<void()> then) {
    TellContainer(Event::kRemoveContainer, id, std::move(then));
    described_.erase(id);
  }

  std::unique_ptr<Runtime> beneath_;
  PodHooks& hooks_;
  Random& random_;
  const CdiInjector injector_;
  // Descriptions by id, while the containers exist: they contain what a status does not.
  std::map<std::string, rpc::NriContainer> described_;
  // Changes of containers whose creation is under way.
  std::map<std::string, CgroupChanges> early_changes_;
  Lifetime lifetime_;
};

}  // namespace

std::unique_ptr<Runtime> MakeHookedRuntime(std::unique_ptr<Runtime> beneath, PodHooks& hooks,
                                           Random& random, CdiInjector injector) {
  return std::make_unique<HookedRuntime>(std::move(beneath), hooks, random, std::move(injector));
}

}  // namespace drakkar::node
