#include "node/nri/hooked_runtime.h"

#include <utility>

#include "base/exec/lifetime.h"
#include "node/nri/adjustment.h"
#include "node/runtime/container_id.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.nri");

class HookedRuntime final : public Runtime {
 public:
  HookedRuntime(std::unique_ptr<Runtime> beneath, PodHooks& hooks, Random& random)
      : beneath_(std::move(beneath)), hooks_(hooks), random_(random) {}

  void Open(RuntimeCallback<void> done) override { beneath_->Open(std::move(done)); }
  features::RuntimeFeatures Features() const override { return beneath_->Features(); }
  std::vector<std::string> CdiDirectories() const override { return beneath_->CdiDirectories(); }
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
    const std::optional<PodSandbox> sandbox =
        hooks_.Wants(Event::kCreateContainer) || hooks_.Wants(Event::kPostCreateContainer)
            ? Find(sandbox_id)
            : std::nullopt;
    if (!sandbox) return beneath_->CreateContainer(sandbox_id, std::move(config), std::move(done));
    // Plugins need the id before the container exists.
    if (config.id.empty()) config.id = NewContainerId(random_);
    auto described = DescribeContainer(sandbox_id, config);
    hooks_.DeliverContainer(
        Event::kCreateContainer, DescribeSandbox(*sandbox), std::move(described),
        [this, self = lifetime_.Observe(), sandbox_id, config = std::move(config),
         done = std::move(done)](Result<rpc::NriContainerAdjustment> changes) mutable {
          if (!changes.ok()) return done(std::move(changes).error());
          if (!self.alive()) return done(Unavailable("the node is stopping"));
          ApplyAdjustment(*changes, config);
          described_[config.id] = DescribeContainer(sandbox_id, config);
          beneath_->CreateContainer(sandbox_id, config,
                                    [this, self, id = config.id,
                                     done = std::move(done)](Result<std::string> created) mutable {
                                      if (!self.alive()) return done(std::move(created));
                                      if (!created.ok()) {
                                        described_.erase(id);
                                        return done(std::move(created));
                                      }
                                      TellContainer(
                                          Event::kPostCreateContainer, id,
                                          [id, done = std::move(done)]() mutable { done(id); });
                                    });
        });
  }

  void StartContainer(const std::string& id, RuntimeCallback<void> done) override {
    const auto told = Describe(Event::kStartContainer, id);
    if (!told) return StartBeneath(id, std::move(done));
    hooks_.DeliverContainer(Event::kStartContainer, told->first, told->second,
                            [this, self = lifetime_.Observe(), id, done = std::move(done)](
                                Result<rpc::NriContainerAdjustment> answer) mutable {
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
    beneath_->UpdateContainer(id, std::move(update), std::move(done));
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

 private:
  using Event = rpc::NriEvent;

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
        rpc::NriEvent::kRunPodSandbox, DescribeSandbox(*sandbox),
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
        event, DescribeSandbox(*sandbox),
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
    // A container created before the agent restarted is known only by its status.
    auto known = described_.find(id);
    if (known == described_.end()) known = described_.emplace(id, DescribeContainer(*status)).first;
    UpdateDescription(*status, known->second);
    return std::pair(DescribeSandbox(*sandbox), known->second);
  }

  // For events whose errors change nothing.
  void TellContainer(Event event, const std::string& id, absl::AnyInvocable<void()> then) {
    const auto told = Describe(event, id);
    if (!told) return then();
    hooks_.DeliverContainer(event, told->first, told->second,
                            [self = lifetime_.Observe(), then = std::move(then)](
                                Result<rpc::NriContainerAdjustment> answer) mutable {
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
  // Descriptions by id, while the containers exist: they hold what a status does not.
  std::map<std::string, rpc::NriContainer> described_;
  Lifetime lifetime_;
};

std::map<std::string, std::string> Namespaces(const PodSandbox& sandbox) {
  if (sandbox.network_namespace.empty()) return {};
  return {{"network", sandbox.network_namespace}};
}

}  // namespace

rpc::NriPodSandbox DescribeSandbox(const PodSandbox& sandbox) {
  return {.id = sandbox.id,
          .name = sandbox.name,
          .uid = sandbox.uid,
          .namespace_name = sandbox.namespace_name,
          .labels = sandbox.labels,
          .annotations = sandbox.annotations,
          .ips = sandbox.ips,
          .linux_namespaces = Namespaces(sandbox)};
}

std::unique_ptr<Runtime> MakeHookedRuntime(std::unique_ptr<Runtime> beneath, PodHooks& hooks,
                                           Random& random) {
  return std::make_unique<HookedRuntime>(std::move(beneath), hooks, random);
}

}  // namespace drakkar::node
