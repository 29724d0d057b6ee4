#include "node/nri/hooked_runtime.h"

#include <utility>

#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.nri");

class HookedRuntime final : public Runtime {
 public:
  HookedRuntime(std::unique_ptr<Runtime> beneath, PodHooks& hooks)
      : beneath_(std::move(beneath)), hooks_(hooks) {}
  ~HookedRuntime() override { *alive_ = false; }

  void Open(RuntimeCallback<void> done) override { beneath_->Open(std::move(done)); }
  void OnExit(std::function<void(const ContainerStatus&)> listener) override {
    beneath_->OnExit(std::move(listener));
  }

  void RunPodSandbox(PodSandboxConfig config, RuntimeCallback<std::string> done) override {
    beneath_->RunPodSandbox(std::move(config), [this, alive = alive_, done = std::move(done)](
                                                   Result<std::string> id) mutable {
      if (!*alive || !id.ok()) return done(std::move(id));
      RunHooks(*std::move(id), std::move(done));
    });
  }

  void StopPodSandbox(const std::string& id, RuntimeCallback<void> done) override {
    Tell(rpc::NriEvent::kStopPodSandbox, id, [this, id, done = std::move(done)]() mutable {
      beneath_->StopPodSandbox(id, std::move(done));
    });
  }
  void RemovePodSandbox(const std::string& id, RuntimeCallback<void> done) override {
    Tell(rpc::NriEvent::kRemovePodSandbox, id, [this, id, done = std::move(done)]() mutable {
      beneath_->RemovePodSandbox(id, std::move(done));
    });
  }
  std::vector<PodSandbox> ListPodSandboxes() const override { return beneath_->ListPodSandboxes(); }

  void CreateContainer(const std::string& sandbox_id, ContainerConfig config,
                       RuntimeCallback<std::string> done) override {
    beneath_->CreateContainer(sandbox_id, std::move(config), std::move(done));
  }
  void StartContainer(const std::string& id, RuntimeCallback<void> done) override {
    beneath_->StartContainer(id, std::move(done));
  }
  void StopContainer(const std::string& id, Duration grace, RuntimeCallback<void> done) override {
    beneath_->StopContainer(id, grace, std::move(done));
  }
  void RemoveContainer(const std::string& id, RuntimeCallback<void> done) override {
    beneath_->RemoveContainer(id, std::move(done));
  }
  std::vector<ContainerStatus> ListContainers() const override { return beneath_->ListContainers(); }
  Result<ContainerStatus> GetContainerStatus(const std::string& id) const override {
    return beneath_->GetContainerStatus(id);
  }
  void ExecSync(const std::string& id, std::vector<std::string> command, Duration timeout,
                RuntimeCallback<ExecResult> done) override {
    beneath_->ExecSync(id, std::move(command), timeout, std::move(done));
  }
  void ReopenLog(const std::string& id, RuntimeCallback<void> done) override {
    beneath_->ReopenLog(id, std::move(done));
  }
  Result<Image> ImageStatus(const std::string& name) const override {
    return beneath_->ImageStatus(name);
  }
  std::vector<Image> ListImages() const override { return beneath_->ListImages(); }

 private:
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
        [this, alive = alive_, id, done = std::move(done)](Result<void> result) mutable {
          if (result.ok()) return done(id);
          if (!*alive) return done(result.error());
          // A sandbox whose hooks failed must not be taken for a good one.
          beneath_->RemovePodSandbox(
              id, [error = result.error(), done = std::move(done)](Result<void> removed) mutable {
                if (!removed.ok()) {
                  kLog.Warning("cannot remove a sandbox whose hook failed",
                               {{"err", removed.error().message}});
                }
                done(std::move(error));
              });
        });
  }

  void Tell(rpc::NriEvent event, const std::string& id, absl::AnyInvocable<void()> then) {
    const std::optional<PodSandbox> sandbox = Find(id);
    // What is stopped already was told of.
    if (!sandbox || (event == rpc::NriEvent::kStopPodSandbox &&
                     sandbox->state != SandboxState::kReady)) {
      return then();
    }
    hooks_.Deliver(event, DescribeSandbox(*sandbox),
                   [alive = alive_, then = std::move(then)](Result<void> result) mutable {
                     if (!result.ok()) kLog.Warning("a hook failed", {{"err", result.error().message}});
                     if (*alive) then();
                   });
  }

  std::unique_ptr<Runtime> beneath_;
  PodHooks& hooks_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

rpc::NriPodSandbox DescribeSandbox(const PodSandbox& sandbox) {
  return {.id = sandbox.id,
          .name = sandbox.name,
          .uid = sandbox.uid,
          .namespace_name = sandbox.namespace_name,
          .labels = sandbox.labels,
          .annotations = sandbox.annotations};
}

std::unique_ptr<Runtime> MakeHookedRuntime(std::unique_ptr<Runtime> beneath, PodHooks& hooks) {
  return std::make_unique<HookedRuntime>(std::move(beneath), hooks);
}

}  // namespace drakkar::node
