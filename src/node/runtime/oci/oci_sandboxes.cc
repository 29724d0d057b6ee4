#include "node/runtime/oci/oci_runtime_impl.h"

#include <algorithm>

#include "base/text/text.h"
#include "node/runtime/container_id.h"
#include "node/runtime/oci/cgroups.h"

namespace drakkar::node {
namespace {

// Calls back once all `Expect`ed calls have been answered; the first error wins.
class Countdown {
 public:
  explicit Countdown(RuntimeCallback<void> done) : done_(std::move(done)) {}
  ~Countdown() { done_(std::move(result_)); }
  void Note(Result<void> result) {
    if (!result.ok() && result_.ok()) result_ = std::move(result);
  }

 private:
  RuntimeCallback<void> done_;
  Result<void> result_;
};

}  // namespace

void OciRuntime::RunPodSandbox(PodSandboxConfig config, RuntimeCallback<std::string> done) {
  loop_.AssertInLoop();
  if (auto refusal = Refusal(config)) return Answer(std::move(done), Result<std::string>(*refusal));
  auto sandbox = std::make_shared<Sandbox>();
  SandboxRecord& record = sandbox->record;
  record.id = NewContainerId(random_);
  record.name = config.name;
  record.namespace_name = config.namespace_name;
  record.uid = config.uid;
  record.attempt = config.attempt;
  record.hostname = config.hostname;
  record.log_directory = config.log_directory;
  record.cgroup_parent =
      config.cgroup_parent.empty() ? StrCat(kPodsCgroup, "/pod", config.uid) : config.cgroup_parent;
  record.host_pid = config.host_pid;
  record.host_ipc = config.host_ipc;
  record.shares_processes = config.share_process_namespace && !config.host_pid;
  if (!config.host_network && options_.network != nullptr &&
      options_.network->State().mode == PodNetworkMode::kOwn) {
    record.network_namespace = builder_->paths().NetworkNamespace(record.id);
  }
  record.created_at = loop_.clock().Now();
  record.labels = config.labels;
  record.annotations = config.annotations;
  record.sysctls = config.sysctls;
  record.runtime_handler = config.runtime_handler;
  if (!config.runtime_handler.empty()) {
    record.runtime_program = handlers_.at(config.runtime_handler);
  }
  record.cpu_shares = config.resources.cpu_shares;
  record.cpu_quota_us = config.resources.cpu_quota_us;
  record.cpu_period_us = config.resources.cpu_period_us;
  record.memory_limit_bytes = config.resources.memory_limit_bytes;
  sandbox->busy = true;
  sandboxes_[record.id] = sandbox;
  PodNetworkRequest request{.sandbox_id = record.id,
                            .namespace_path = record.network_namespace,
                            .pod_name = config.name,
                            .pod_namespace = config.namespace_name,
                            .pod_uid = config.uid,
                            .ports = config.ports,
                            .bandwidth = config.bandwidth,
                            .dns = config.dns,
                            .annotations = config.annotations};
  Blocking<SandboxRecord>(
      [builder = builder_, record, config = std::move(config)] {
        return builder->BuildSandbox(record, config);
      },
      [this, sandbox, request = std::move(request),
       done = std::move(done)](Result<SandboxRecord> built) mutable {
        if (!built.ok()) {
          sandboxes_.erase(sandbox->record.id);
          return done(
              std::move(built).error().Prefixed("run sandbox of pod " + sandbox->record.name));
        }
        sandbox->record = *std::move(built);
        if (!sandbox->record.network_namespace.empty()) {
          return Connect(sandbox, std::move(request), std::move(done));
        }
        sandbox->busy = false;
        done(sandbox->record.id);
      });
}

void OciRuntime::Connect(const std::shared_ptr<Sandbox>& sandbox, PodNetworkRequest request,
                         RuntimeCallback<std::string> done) {
  options_.network->SetUp(
      std::move(request), lifetime_.Guard([this, sandbox, done = std::move(done)](
                                              Result<std::vector<std::string>> ips) mutable {
        SandboxRecord& record = sandbox->record;
        Result<void> saved = Ok();
        if (ips.ok()) {
          record.ips = *ips;
          record.phase = Phase::kRunning;
          saved = builder_->Save(record);
        }
        if (ips.ok() && saved.ok()) {
          sandbox->busy = false;
          return done(record.id);
        }
        record.phase = Phase::kCreating;
        Error error = ips.ok() ? std::move(saved).error() : std::move(ips).error();
        Disconnect(sandbox, [this, sandbox, error = std::move(error),
                             done = std::move(done)](Result<void>) mutable {
          Blocking<bool>(
              [builder = builder_, record = Abandoned(*sandbox)]() -> Result<bool> {
                RETURN_IF_ERROR(builder->DestroySandbox(record));
                return true;
              },
              [this, sandbox, error = std::move(error),
               done = std::move(done)](Result<bool>) mutable {
                // If it could not be removed, the next start does it: it is still being created.
                sandboxes_.erase(sandbox->record.id);
                done(std::move(error).Prefixed("run sandbox of pod " + sandbox->record.name));
              });
        });
      }));
}

void OciRuntime::Disconnect(const std::shared_ptr<Sandbox>& sandbox, RuntimeCallback<void> done) {
  const SandboxRecord& record = sandbox->record;
  if (record.network_namespace.empty() || options_.network == nullptr) return done(Ok());
  const auto pinned = IsPinnedNamespace(record.network_namespace);
  options_.network->TearDown(
      {record.id, pinned.ok() && *pinned ? record.network_namespace : ""},
      lifetime_.Guard([done = std::move(done)](Result<void> deleted) mutable {
        done(deleted.ok() ? Ok() : Result<void>(std::move(deleted).error().Prefixed("network")));
      }));
}

// A newer sandbox of the same pod may use the cgroup: then it is kept.
SandboxRecord OciRuntime::Abandoned(const Sandbox& sandbox) const {
  SandboxRecord record = sandbox.record;
  for (const auto& [id, other] : sandboxes_) {
    if (id != record.id && other->record.cgroup_parent == record.cgroup_parent) {
      record.cgroup_parent.clear();
      break;
    }
  }
  return record;
}

void OciRuntime::StopPodSandbox(const std::string& id, RuntimeCallback<void> done) {
  loop_.AssertInLoop();
  auto found = sandboxes_.find(id);
  if (found == sandboxes_.end()) return Answer(std::move(done), Ok());
  auto sandbox = found->second;
  auto countdown = std::make_shared<Countdown>([this, sandbox, done = std::move(done)](
                                                   Result<void> stopped) mutable {
    if (!stopped.ok()) return done(std::move(stopped));
    if (sandbox->record.phase != Phase::kRunning) return done(Ok());
    Disconnect(sandbox, [this, sandbox, done = std::move(done)](Result<void> disconnected) mutable {
      // Addresses and host ports stay taken until this succeeds, so the next call retries.
      if (!disconnected.ok()) return done(std::move(disconnected));
      EndSandbox(sandbox, std::move(done));
    });
  });
  for (const auto& container : ContainersOf(id)) {
    StopContainer(container->record.id, Duration::zero(),
                  [countdown](Result<void> stopped) { countdown->Note(std::move(stopped)); });
  }
  // Even with nothing to wait for, the answer must come from the loop.
  loop_.Post([countdown] {});
}

void OciRuntime::EndSandbox(const std::shared_ptr<Sandbox>& sandbox, RuntimeCallback<void> done) {
  if (sandbox->record.phase != Phase::kRunning) return done(Ok());
  sandbox->record.phase = Phase::kExited;
  if (auto saved = builder_->Save(sandbox->record); !saved.ok()) {
    sandbox->record.phase = Phase::kRunning;  // so that the next call retries
    return done(std::move(saved));
  }
  Blocking<bool>(
      [builder = builder_, record = sandbox->record]() -> Result<bool> {
        RETURN_IF_ERROR(builder->ReleaseSandbox(record));
        return true;
      },
      [done = std::move(done)](Result<bool> released) mutable {
        done(released.ok() ? Ok() : Result<void>(released.error()));
      });
}

void OciRuntime::RemovePodSandbox(const std::string& id, RuntimeCallback<void> done) {
  loop_.AssertInLoop();
  auto found = sandboxes_.find(id);
  if (found == sandboxes_.end()) return Answer(std::move(done), Ok());
  auto sandbox = found->second;
  sandbox->remove_waiters.push_back(std::move(done));
  if (sandbox->remove_waiters.size() > 1) return;
  if (sandbox->busy) {
    return FinishSandboxRemoval(sandbox, FailedPrecondition("the sandbox is still being created"));
  }
  StopPodSandbox(id, [this, sandbox, id](Result<void> stopped) {
    if (!stopped.ok()) return FinishSandboxRemoval(sandbox, std::move(stopped));
    auto countdown = std::make_shared<Countdown>([this, sandbox](Result<void> removed) {
      if (!removed.ok()) return FinishSandboxRemoval(sandbox, std::move(removed));
      DestroySandbox(sandbox);
    });
    for (const auto& container : ContainersOf(id)) {
      RemoveContainer(container->record.id,
                      [countdown](Result<void> removed) { countdown->Note(std::move(removed)); });
    }
  });
}

void OciRuntime::DestroySandbox(const std::shared_ptr<Sandbox>& sandbox) {
  sandbox->record.phase = Phase::kRemoving;
  if (auto saved = builder_->Save(sandbox->record); !saved.ok()) {
    return FinishSandboxRemoval(sandbox, std::move(saved));
  }
  Retrying([builder = builder_,
            record = Abandoned(*sandbox)] { return builder->DestroySandbox(record); },
           kReleaseAttempts,
           [this, sandbox](Result<void> destroyed) {
             FinishSandboxRemoval(sandbox, std::move(destroyed));
           });
}

void OciRuntime::FinishSandboxRemoval(const std::shared_ptr<Sandbox>& sandbox,
                                      Result<void> result) {
  if (result.ok()) {
    sandboxes_.erase(sandbox->record.id);
    // On the loop, so that no new sandbox can be created in between.
    if (sandboxes_.empty()) builder_->ReleaseRoot();
  } else {
    result = std::move(result).error().Prefixed("remove sandbox of pod " + sandbox->record.name);
  }
  auto waiters = std::move(sandbox->remove_waiters);
  sandbox->remove_waiters.clear();
  loop_.Post([waiters = std::move(waiters), result]() mutable {
    for (auto& waiter : waiters) waiter(result);
  });
}

std::optional<Error> OciRuntime::Refusal(const PodSandboxConfig& config) const {
  if (!is_open_) return FailedPrecondition("the runtime is not open");
  if (config.uid.empty() || config.uid.find('/') != std::string::npos) {
    return InvalidArgument("run sandbox: the pod's uid is not valid");
  }
  if (!config.runtime_handler.empty() && !handlers_.contains(config.runtime_handler)) {
    return NotFound(StrCat("no runtime handler ", Quote(config.runtime_handler),
                           " is configured: add it with --runtime-handlers"));
  }
  if (!config.host_network && options_.network != nullptr) {
    const PodNetworkState state = options_.network->State();
    if (state.mode == PodNetworkMode::kNotReady) {
      return Unavailable(StrCat("network is not ready: ", state.message));
    }
  }
  return std::nullopt;
}

auto OciRuntime::ContainersOf(const std::string& sandbox_id) const
    -> std::vector<std::shared_ptr<Container>> {
  std::vector<std::shared_ptr<Container>> list;
  for (const auto& [id, container] : containers_) {
    if (container->record.sandbox_id == sandbox_id) list.push_back(container);
  }
  return list;
}

}  // namespace drakkar::node
