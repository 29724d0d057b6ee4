#include "node/runtime/cri/cri_runtime.h"

#include <algorithm>

#include "base/os/process.h"
#include "base/text/text.h"
#include "node/runtime/cri/cri_port.h"
#include "node/runtime/cri/cri_runtime_impl.h"
#include "node/runtime/cri/cri_streams.h"
#include "node/runtime/cri/systemd_slice.h"

namespace drakkar::node {
namespace {

constexpr Duration kQuick = std::chrono::minutes(2);
// Networks and snapshots take time; as in a kubelet, twice the timeout of other calls.
constexpr Duration kSlow = std::chrono::minutes(4);
constexpr Duration kPull = std::chrono::hours(1);
constexpr int kCgroupAttempts = 50;
constexpr Duration kCgroupRetry = std::chrono::milliseconds(100);

std::int64_t WholeSeconds(Duration duration) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(duration).count();
  return std::max<std::int64_t>(seconds, 0);
}

bool IsGone(const Error& error) {
  return error.code == ErrorCode::kNotFound;
}

}  // namespace

CriRuntimeImpl::CriRuntimeImpl(CriRuntimeOptions options)
    : options_(std::move(options)), loop_(options_.loop), cgroups_(options_.cgroups) {}

void CriRuntimeImpl::Log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

void CriRuntimeImpl::Ask(const char* method, std::string message, Duration timeout, Answer done) {
  channel_->Call(method, message, timeout, std::move(done));
}

std::optional<Error> CriRuntimeImpl::Refuse() const {
  if (is_open_) return std::nullopt;
  return FailedPrecondition("the runtime is not open");
}

std::string CriRuntimeImpl::RuntimeVersion() const {
  if (version_.runtime_name.empty()) return "";
  std::string_view number = version_.runtime_version;
  if (number.starts_with('v')) number.remove_prefix(1);
  return StrCat(version_.runtime_name, "://", number);
}

std::string CriRuntimeImpl::WhyNotReady() const {
  if (!connected_) return StrCat("container runtime is down: ", options_.socket_path);
  if (!status_.not_ready.empty()) {
    return StrCat("container runtime is not ready: ", status_.not_ready);
  }
  return "";
}

void CriRuntimeImpl::Open(RuntimeCallback<void> done) {
  opening_ = std::move(done);
  ReadReported();
  open_timeout_ = loop_.RunAfter(kConnectWithin, [this] {
    FinishOpening(Unavailable(StrCat("no container runtime answers at ", options_.socket_path,
                                     ": is it running, and is CRI enabled in it?")));
  });
  rpc::ChannelOptions channel;
  channel.socket_path = options_.socket_path;
  channel.max_message_bytes = kMaxListBytes;
  channel.initial_backoff = std::chrono::milliseconds(100);
  channel.max_backoff = std::chrono::seconds(3);
  channel.on_connection_change = [this](bool connected) { OnConnection(connected); };
  channel_ = options_.transport.OpenChannel(std::move(channel));
}

void CriRuntimeImpl::OnConnection(bool connected) {
  connected_ = connected;
  if (!connected) {
    greeting_ = false;
    events_.reset();
    has_events_ = false;
    if (is_open_) Log(StrCat("lost the container runtime at ", options_.socket_path));
    return;
  }
  if (opening_ || is_open_) Greet();
}

void CriRuntimeImpl::Greet() {
  if (std::exchange(greeting_, true)) return;
  // A runtime that has just started may refuse calls for a moment: the next connection or the timer
  // tries again.
  auto again = [this](const Error& error) {
    greeting_ = false;
    Log(StrCat("the container runtime does not answer yet: ", error.message));
    relist_timer_ = loop_.RunAfter(kPollEvery, [this] {
      if (connected_) Greet();
    });
  };
  Ask(cri::kVersion, cri::EncodeVersionRequest(), kQuick, [this, again](Result<std::string> bytes) {
    if (!bytes.ok()) {
      if (bytes.error().code == ErrorCode::kUnimplemented && opening_) {
        return FinishOpening(FailedPrecondition(
            StrCat(options_.socket_path, " does not serve CRI v1: ", bytes.error().message)));
      }
      return again(bytes.error());
    }
    auto version = cri::DecodeVersion(*bytes);
    if (!version.ok()) return again(version.error());
    version_ = *std::move(version);
    Ask(cri::kStatus, cri::EncodeStatusRequest(), kQuick,
        [this, again](Result<std::string> answer) {
          if (!answer.ok()) return again(answer.error());
          auto status = cri::DecodeStatus(*answer, version_);
          if (!status.ok()) return again(status.error());
          status_ = *std::move(status);
          Ask(cri::kRuntimeConfig, "", kQuick, [this](Result<std::string> config) {
            // Runtimes that do not implement it show their configuration in the status, or use the
            // file system.
            if (config.ok()) {
              if (auto systemd = cri::DecodeUsesSystemdCgroups(*config); systemd.ok()) {
                status_.systemd_cgroups = *systemd;
              }
            }
            Greeted();
          });
        });
  });
}

void CriRuntimeImpl::Greeted() {
  greeting_ = false;
  Log(StrCat("connected to ", version_.runtime_name, " ", version_.runtime_version,
             status_.cdi_directories.empty() ? ", which has no CDI" : ""));
  WatchEvents();
  Relist([this](Result<void> listed) {
    if (!listed.ok()) {
      Log(StrCat("could not list pods of the container runtime: ", listed.error().message));
      return;  // the timer lists again
    }
    RefreshImages([this](Result<void> images) { FinishOpening(std::move(images)); });
  });
}

void CriRuntimeImpl::FinishOpening(Result<void> result) {
  if (!opening_) return;
  open_timeout_.reset();
  is_open_ = result.ok();
  auto done = std::move(opening_);
  opening_ = nullptr;
  done(std::move(result));
}

// Slices are systemd's: it creates them with the pod's first process.
bool CriRuntimeImpl::UsesSystemdCgroups() const {
  return status_.systemd_cgroups.value_or(false);
}

void CriRuntimeImpl::CreatePodCgroup(const PodSandboxConfig& config) {
  if (!cgroups_ || UsesSystemdCgroups()) return;
  if (auto made = cgroups_->Create(config.cgroup_parent, config.resources); !made.ok()) {
    Log(StrCat("could not limit pod ", config.name, ": ", made.error().message));
  }
}

void CriRuntimeImpl::RemovePodCgroup(const std::string& path, int attempts_left) {
  // Remove only a pod's own cgroup: everything in it is killed.
  if (!cgroups_ || !BaseName(path).starts_with("pod")) return;
  const Result<void> removed = cgroups_->Remove(path);
  if (removed.ok()) return;
  if (removed.error().code != ErrorCode::kUnavailable || attempts_left == 0) {
    return Log(StrCat("could not remove cgroup ", path, ": ", removed.error().message));
  }
  cgroup_timers_[path] = loop_.RunAfter(kCgroupRetry, [this, path, attempts_left] {
    const TimerHandle own = std::move(cgroup_timers_[path]);
    cgroup_timers_.erase(path);
    RemovePodCgroup(path, attempts_left - 1);
  });
}

void CriRuntimeImpl::RunPodSandbox(PodSandboxConfig config, RuntimeCallback<std::string> done) {
  if (auto error = Refuse()) return Reply<std::string>(std::move(done), *error);
  if (config.cgroup_parent.empty()) {
    config.cgroup_parent = StrCat(kPodsCgroup, "/pod", config.uid);
  }
  CreatePodCgroup(config);
  std::string slice;
  if (UsesSystemdCgroups()) slice = config.cgroup_parent = SystemdSlice(config.cgroup_parent);
  Ask(cri::kRunPodSandbox, cri::EncodeRunPodSandbox(config).message, kSlow,
      [this, slice, name = config.name, resources = config.resources,
       done = std::move(done)](Result<std::string> bytes) mutable {
        ++generation_;
        if (!bytes.ok()) return done(std::move(bytes).error());
        auto id = cri::DecodeRunPodSandbox(*bytes);
        if (!id.ok()) return done(std::move(id).error());
        if (!slice.empty() && cgroups_) {
          if (auto limited = cgroups_->Update(slice, resources); !limited.ok()) {
            Log(StrCat("could not limit pod ", name, ": ", limited.error().message));
          }
        }
        RefreshSandbox(*id, [this, id = *id, done = std::move(done)](Result<void> read) mutable {
          if (!read.ok()) {
            RelistSoon();  // finds it
            return done(std::move(read).error());
          }
          done(std::move(id));
        });
      });
}

void CriRuntimeImpl::StopPodSandbox(const std::string& id, RuntimeCallback<void> done) {
  if (auto error = Refuse()) return Reply<void>(std::move(done), *error);
  Ask(cri::kStopPodSandbox, cri::EncodeSandboxId(id), kSlow,
      [this, id, done = std::move(done)](Result<std::string> bytes) mutable {
        ++generation_;
        if (!bytes.ok() && !IsGone(bytes.error())) return done(std::move(bytes).error());
        if (auto found = sandboxes_.find(id); found != sandboxes_.end()) {
          found->second.details.sandbox.state = SandboxState::kNotReady;
        }
        RefreshContainersOf(id, [done = std::move(done)]() mutable { done(Ok()); });
      });
}

void CriRuntimeImpl::RemovePodSandbox(const std::string& id, RuntimeCallback<void> done) {
  if (auto error = Refuse()) return Reply<void>(std::move(done), *error);
  // A runtime may refuse to remove a container that was not stopped.
  StopPodSandbox(id, [this, id, done = std::move(done)](Result<void> stopped) mutable {
    if (!stopped.ok()) return done(std::move(stopped));
    for (const auto& [container, known] : containers_) {
      if (known.status.sandbox_id == id) removing_.insert(container);
    }
    Ask(cri::kRemovePodSandbox, cri::EncodeSandboxId(id), kSlow,
        [this, id, done = std::move(done)](Result<std::string> bytes) mutable {
          ++generation_;
          std::vector<std::string> contained;
          for (const auto& [container, known] : containers_) {
            if (known.status.sandbox_id == id) contained.push_back(container);
          }
          const bool gone = bytes.ok() || IsGone(bytes.error());
          for (const std::string& container : contained) {
            if (gone) Forget(container);
            removing_.erase(container);
          }
          if (!gone) return done(std::move(bytes).error());
          if (auto found = sandboxes_.find(id); found != sandboxes_.end()) {
            const std::string parent = cri::CgroupParentOf(found->second.details.config);
            sandboxes_.erase(found);
            RemovePodCgroup(parent, kCgroupAttempts);
          }
          done(Ok());
        });
  });
}

void CriRuntimeImpl::CreateContainer(const std::string& sandbox_id, ContainerConfig config,
                                     RuntimeCallback<std::string> done) {
  const std::string what = "create container " + config.name;
  auto fail = [&](Error error) {
    Reply<std::string>(std::move(done), std::move(error).Prefixed(what));
  };
  if (auto error = Refuse()) return fail(*error);
  const auto sandbox = sandboxes_.find(sandbox_id);
  if (sandbox == sandboxes_.end() ||
      sandbox->second.details.sandbox.state != SandboxState::kReady) {
    return fail(FailedPrecondition("its sandbox is not ready"));
  }
  if (!config.id.empty()) {
    return fail(InvalidArgument("a container runtime chooses the ids of its containers"));
  }
  const auto image = ImageStatus(config.image);
  if (!image.ok()) return fail(image.error());
  std::string target;
  if (config.process_namespace_of != 0) {
    for (const auto& [id, known] : containers_) {
      if (known.status.pid == config.process_namespace_of) target = id;
    }
    if (target.empty()) return fail(FailedPrecondition("its target container is not running"));
  }
  auto message = cri::EncodeCreateContainer({.sandbox_id = sandbox_id,
                                             .sandbox_config = sandbox->second.details.config,
                                             .config = config,
                                             .image_id = image->id,
                                             .process_namespace_of = target});
  if (!message.ok()) return fail(message.error());
  Ask(cri::kCreateContainer, *message, kSlow,
      [this, sandbox_id, what, done = std::move(done)](Result<std::string> bytes) mutable {
        ++generation_;
        if (!bytes.ok()) return done(std::move(bytes).error().Prefixed(what));
        auto id = cri::DecodeCreateContainer(*bytes);
        if (!id.ok()) return done(std::move(id).error().Prefixed(what));
        RefreshContainer(*id, sandbox_id,
                         [this, id = *id, done = std::move(done)](Result<void> read) mutable {
                           if (!read.ok()) {
                             RelistSoon();  // finds it
                             return done(std::move(read).error());
                           }
                           done(std::move(id));
                         });
      });
}

void CriRuntimeImpl::StartContainer(const std::string& id, RuntimeCallback<void> done) {
  if (auto error = Refuse()) return Reply<void>(std::move(done), *error);
  const auto found = containers_.find(id);
  if (found == containers_.end())
    return Reply<void>(std::move(done), NotFound("no container " + id));
  const ContainerStatus& status = found->second.status;
  const std::string what = "start container " + status.name;
  if (status.state == ContainerState::kRunning) return Reply<void>(std::move(done), Ok());
  if (status.state != ContainerState::kCreated) {
    return Reply<void>(std::move(done),
                       FailedPrecondition("it is not in the created state").Prefixed(what));
  }
  Ask(cri::kStartContainer, cri::EncodeContainerId(id), kQuick,
      [this, id, what, done = std::move(done)](Result<std::string> bytes) mutable {
        // The answer says why it did not start; its exit is not reported as well.
        if (!bytes.ok() && connected_) reported_.insert(id);
        RefreshContainer(
            id, "", [what, bytes = std::move(bytes), done = std::move(done)](Result<void>) mutable {
              if (bytes.ok()) return done(Ok());
              done(std::move(bytes).error().Prefixed(what));
            });
      });
}

void CriRuntimeImpl::StopContainer(const std::string& id, Duration grace,
                                   RuntimeCallback<void> done) {
  if (auto error = Refuse()) return Reply<void>(std::move(done), *error);
  const auto found = containers_.find(id);
  if (found == containers_.end() || found->second.status.state != ContainerState::kRunning) {
    return Reply<void>(std::move(done), Ok());
  }
  const std::int64_t seconds = WholeSeconds(grace);
  Ask(cri::kStopContainer, cri::EncodeStopContainer(id, seconds),
      kQuick + std::chrono::seconds(std::min<std::int64_t>(seconds, 1'000'000)),
      [this, id, done = std::move(done)](Result<std::string> bytes) mutable {
        if (!bytes.ok() && !IsGone(bytes.error())) return done(std::move(bytes).error());
        RefreshContainer(
            id, "", [done = std::move(done)](Result<void> read) mutable { done(std::move(read)); });
      });
}

void CriRuntimeImpl::RemoveContainer(const std::string& id, RuntimeCallback<void> done) {
  if (auto error = Refuse()) return Reply<void>(std::move(done), *error);
  if (!containers_.contains(id)) return Reply<void>(std::move(done), Ok());
  StopContainer(id, Duration::zero(),
                [this, id, done = std::move(done)](Result<void> stopped) mutable {
                  if (!stopped.ok()) return done(std::move(stopped));
                  removing_.insert(id);
                  Ask(cri::kRemoveContainer, cri::EncodeContainerId(id), kQuick,
                      [this, id, done = std::move(done)](Result<std::string> bytes) mutable {
                        ++generation_;
                        removing_.erase(id);
                        if (!bytes.ok() && !IsGone(bytes.error()))
                          return done(std::move(bytes).error());
                        Forget(id);
                        done(Ok());
                      });
                });
}

void CriRuntimeImpl::UpdateContainer(const std::string& id, ResourceUpdate update,
                                     RuntimeCallback<void> done) {
  if (auto error = Refuse()) return Reply<void>(std::move(done), *error);
  const auto found = containers_.find(id);
  if (found == containers_.end() || found->second.status.state != ContainerState::kRunning) {
    return Reply<void>(std::move(done), FailedPrecondition("the container is not running"));
  }
  std::string parent;
  if (const auto sandbox = sandboxes_.find(found->second.status.sandbox_id);
      cgroups_ && sandbox != sandboxes_.end()) {
    parent = cri::CgroupParentOf(sandbox->second.details.config);
  }
  // A pod's limit must never be below its container's, so it is raised before and lowered after;
  // the attempt made at the wrong time fails.
  if (!parent.empty()) static_cast<void>(cgroups_->Update(parent, update.pod).ok());
  Ask(cri::kUpdateResources, cri::EncodeUpdateResources(id, update), kQuick,
      [this, id, parent, update, done = std::move(done)](Result<std::string> bytes) mutable {
        if (!bytes.ok()) return done(std::move(bytes).error());
        if (!parent.empty()) {
          if (auto pod = cgroups_->Update(parent, update.pod); !pod.ok()) {
            return done(std::move(pod));
          }
        }
        if (auto known = containers_.find(id); known != containers_.end()) {
          for (auto& [name, value] : update.annotations) {
            known->second.updated_annotations[name] = value;
            known->second.status.annotations[name] = value;
          }
        }
        done(Ok());
      });
}

void CriRuntimeImpl::ChangeCgroup(const std::string& id, CgroupChanges changes,
                                  RuntimeCallback<void> done) {
  if (auto error = Refuse()) return Reply<void>(std::move(done), *error);
  const auto found = containers_.find(id);
  if (found == containers_.end() || found->second.status.state == ContainerState::kExited) {
    return Reply<void>(std::move(done), FailedPrecondition("the container is not running"));
  }
  // Settings that CRI's message cannot express are left to the runtime's own plugins.
  ResourceUpdate update;
  update.container.cpu_shares = changes.cpu_shares.value_or(0);
  update.container.cpu_quota_us = changes.cpu_quota_us.value_or(0);
  update.container.cpu_period_us = changes.cpu_period_us.value_or(0);
  update.container.memory_limit_bytes = changes.memory_limit_bytes.value_or(0);
  update.container.cpuset_cpus = changes.cpuset_cpus;
  update.container.cpuset_mems = changes.cpuset_mems;
  CgroupChanges known;
  known.cpu_shares = changes.cpu_shares;
  known.cpu_quota_us = changes.cpu_quota_us;
  known.cpu_period_us = changes.cpu_period_us;
  known.memory_limit_bytes = changes.memory_limit_bytes;
  known.cpuset_cpus = changes.cpuset_cpus;
  known.cpuset_mems = changes.cpuset_mems;
  if (known != changes) {
    return Reply<void>(
        std::move(done),
        Error{ErrorCode::kUnimplemented,
              "the container runtime can change only CPU, memory and cpuset of a container"});
  }
  Ask(cri::kUpdateResources, cri::EncodeUpdateResources(id, update), kQuick,
      [done = std::move(done)](Result<std::string> bytes) mutable {
        if (!bytes.ok()) return done(std::move(bytes).error());
        done(Ok());
      });
}

void CriRuntimeImpl::ExecSync(const std::string& id, std::vector<std::string> command,
                              Duration timeout, RuntimeCallback<ExecResult> done) {
  if (auto error = Refuse()) return Reply<ExecResult>(std::move(done), *error);
  const auto found = containers_.find(id);
  if (found == containers_.end() || found->second.status.state != ContainerState::kRunning) {
    return Reply<ExecResult>(std::move(done),
                             FailedPrecondition("exec: the container is not running"));
  }
  const std::int64_t seconds = WholeSeconds(timeout);
  // The runtime enforces the time limit; ours is only for a runtime that does not answer.
  const Duration ours = seconds == 0 ? Duration(std::chrono::hours(24)) : timeout + kQuick;
  Ask(cri::kExecSync, cri::EncodeExecSync(id, command, seconds), ours,
      [done = std::move(done)](Result<std::string> bytes) mutable {
        if (!bytes.ok()) return done(std::move(bytes).error());
        done(cri::DecodeExecSync(*bytes, kMaxProcessOutput));
      });
}

Result<std::unique_ptr<ProcessStreams>> CriRuntimeImpl::Stream(const std::string& id,
                                                               const char* method,
                                                               std::string message,
                                                               const StreamOptions& options,
                                                               ProcessStreams::Events& events) {
  if (auto error = Refuse()) return *error;
  const auto found = containers_.find(id);
  if (found == containers_.end() || found->second.status.state != ContainerState::kRunning) {
    return FailedPrecondition("exec: the container is not running");
  }
  auto streams = std::make_unique<CriStreams>(loop_, options_.dial, options, events);
  channel_->Call(method, message, kQuick, streams->UrlCallback());
  return std::unique_ptr<ProcessStreams>(std::move(streams));
}

Result<std::unique_ptr<ProcessStreams>> CriRuntimeImpl::Exec(const std::string& id,
                                                             std::vector<std::string> command,
                                                             const StreamOptions& options,
                                                             ProcessStreams::Events& events) {
  return Stream(id, cri::kExec, cri::EncodeExec(id, command, options), options, events);
}

Result<std::unique_ptr<ProcessStreams>> CriRuntimeImpl::Attach(const std::string& id,
                                                               const StreamOptions& options,
                                                               ProcessStreams::Events& events) {
  return Stream(id, cri::kAttach, cri::EncodeAttach(id, options), options, events);
}

Result<std::unique_ptr<PortConnection>> CriRuntimeImpl::ConnectPort(
    const std::string& sandbox_id, std::uint16_t port, PortConnection::Events& events) {
  if (auto error = Refuse()) return *error;
  const auto found = sandboxes_.find(sandbox_id);
  if (found == sandboxes_.end() || found->second.details.sandbox.state != SandboxState::kReady) {
    return FailedPrecondition("the pod is not running");
  }
  auto connection = std::make_unique<CriPort>(loop_, options_.dial, port, events);
  channel_->Call(cri::kPortForward, cri::EncodePortForward(sandbox_id, port), kQuick,
                 connection->UrlCallback());
  return std::unique_ptr<PortConnection>(std::move(connection));
}

void CriRuntimeImpl::ReopenLog(const std::string& id, RuntimeCallback<void> done) {
  if (auto error = Refuse()) return Reply<void>(std::move(done), *error);
  Ask(cri::kReopenLog, cri::EncodeContainerId(id), kQuick,
      [done = std::move(done)](Result<std::string> bytes) mutable {
        if (!bytes.ok()) return done(std::move(bytes).error());
        done(Ok());
      });
}

void CriRuntimeImpl::PullImage(PullRequest request, RuntimeCallback<Image> done) {
  if (auto error = Refuse()) return Reply<Image>(std::move(done), *error);
  if (options_.credentials) {
    for (RegistryCredential& each : options_.credentials(request.image)) {
      request.credentials.push_back(std::move(each));
    }
  }
  std::string key = request.image;
  for (const RegistryCredential& each : request.credentials) {
    key += StrCat("\n", each.username, "\n", each.password);
  }
  auto& waiting = pulls_[key];
  waiting.push_back(std::move(done));
  if (waiting.size() > 1) return;
  PullWith(key, std::make_shared<PullRequest>(std::move(request)), 0, "");
}

void CriRuntimeImpl::PullWith(const std::string& key, std::shared_ptr<PullRequest> request,
                              std::size_t next, std::string errors) {
  const RegistryCredential* credential =
      next < request->credentials.size() ? &request->credentials[next] : nullptr;
  Ask(cri::kPullImage, cri::EncodePullImage(request->image, credential), kPull,
      [this, key, request, next, errors = std::move(errors)](Result<std::string> bytes) mutable {
        if (!bytes.ok()) {
          const Error& error = bytes.error();
          if (!errors.empty()) errors += "; ";
          errors += error.message;
          const bool more = next + 1 < request->credentials.size();
          if (more && error.code != ErrorCode::kUnavailable) {
            return PullWith(key, std::move(request), next + 1, std::move(errors));
          }
          return FinishPull(key, Error{error.code, std::move(errors)});
        }
        auto reference = cri::DecodePullImage(*bytes);
        if (!reference.ok()) return FinishPull(key, reference.error());
        RefreshImages([this, key, request, reference = *reference](Result<void> listed) {
          if (!listed.ok()) return FinishPull(key, listed.error());
          Result<Image> image = ImageStatus(request->image);
          if (!image.ok()) image = ImageStatus(reference);
          FinishPull(key, image);
        });
      });
}

void CriRuntimeImpl::FinishPull(const std::string& key, const Result<Image>& result) {
  auto waiting = std::move(pulls_[key]);
  pulls_.erase(key);
  for (auto& done : waiting) done(result);
}

std::unique_ptr<CriRuntime> MakeCriRuntime(CriRuntimeOptions options) {
  return std::make_unique<CriRuntimeImpl>(std::move(options));
}

}  // namespace drakkar::node
