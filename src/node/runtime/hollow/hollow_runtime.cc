#include "node/runtime/hollow/hollow_runtime.h"

#include <algorithm>
#include <cstdio>

#include "base/exec/lifetime.h"
#include "base/text/text.h"
#include "node/runtime/images/image_name.h"

namespace drakkar::node {
namespace {

constexpr int kKilled = 137;
constexpr int kTerminated = 143;

// A command that echoes its input, then prints its programmed output and exits.
class HollowStreams final : public ProcessStreams {
 public:
  HollowStreams(EventLoop& loop, const StreamOptions& options, ExecResult result, Events& events)
      : loop_(loop), options_(options), result_(std::move(result)), events_(events) {
    if (!options.standard_input) CloseInput();
  }
  void WriteInput(std::string_view bytes) override {
    Later([this, text = std::string(bytes)] { Say(OutputStream::kStandard, text); });
  }
  std::size_t pending_input() const override { return 0; }
  void CloseInput() override {
    Later([this] {
      const Lifetime::Observer self = lifetime_.Observe();
      Say(OutputStream::kStandard, result_.output);
      if (self.alive()) Say(OutputStream::kError, result_.error_output);
      if (self.alive()) events_.OnEnd(result_.exit_code);
    });
  }
  void Resize(std::uint16_t, std::uint16_t) override {}
  void SetReading(bool) override {}

 private:
  void Later(std::function<void()> task) { loop_.Post(lifetime_.Guard(std::move(task))); }
  void Say(OutputStream stream, const std::string& text) {
    const bool wanted =
        stream == OutputStream::kStandard ? options_.standard_output : options_.error_output;
    if (wanted && !text.empty()) events_.OnOutput(stream, text);
  }

  EventLoop& loop_;
  const StreamOptions options_;
  const ExecResult result_;
  Events& events_;
  Lifetime lifetime_;
};

// A server that echoes what it receives.
class HollowPort final : public PortConnection {
 public:
  HollowPort(EventLoop& loop, Events& events) : loop_(loop), events_(events) {}
  void Write(std::string_view bytes) override {
    loop_.Post(lifetime_.Guard([this, text = std::string(bytes)] { events_.OnPortData(text); }));
  }
  std::size_t pending_bytes() const override { return 0; }
  void FinishWriting() override {
    loop_.Post(lifetime_.Guard([this] { events_.OnPortEnd(Ok()); }));
  }
  void SetReading(bool) override {}

 private:
  EventLoop& loop_;
  Events& events_;
  Lifetime lifetime_;
};

class HollowRuntime final : public Runtime {
 public:
  HollowRuntime(EventLoop& loop, HollowMachine& machine) : loop_(loop), machine_(machine) {}

  void Open(RuntimeCallback<void> done) override {
    if (auto fault = Fault("Open")) return Answer(std::move(done), Result<void>(*fault));
    Later([this, done = std::move(done)]() mutable {
      is_open_ = true;
      for (auto& [id, container] : machine_.containers) {
        if (container.status.state != ContainerState::kRunning) continue;
        if (container.ends_at) Arm(id);
      }
      done(Ok());
    });
  }

  features::RuntimeFeatures Features() const override { return machine_.features; }
  std::optional<std::vector<RuntimeHandler>> Handlers() const override { return machine_.handlers; }
  bool HasGroupsPolicy() const override { return machine_.has_groups_policy; }

  void OnExit(std::function<void(const ContainerStatus&)> listener) override {
    listener_ = std::move(listener);
  }

  void RunPodSandbox(PodSandboxConfig config, RuntimeCallback<std::string> done) override {
    if (auto error = Refuse("RunPodSandbox"))
      return Answer(std::move(done), Result<std::string>(*error));
    if (!config.runtime_handler.empty() && !HasHandler(config.runtime_handler)) {
      return Answer(std::move(done), Result<std::string>(NotFound(StrCat(
                                         "no runtime handler ", Quote(config.runtime_handler)))));
    }
    const std::string id = NewId();
    PodSandbox sandbox{id,
                       config.name,
                       config.namespace_name,
                       config.uid,
                       config.attempt,
                       SandboxState::kReady,
                       loop_.clock().Now(),
                       config.labels,
                       config.annotations,
                       {},
                       {},
                       config.cgroup_parent,
                       {},
                       config.resources,
                       config.runtime_handler};
    if (!config.host_network && !machine_.pod_ips.empty()) {
      sandbox.network_namespace = "/run/netns/" + id;
      sandbox.ips = machine_.pod_ips;
    }
    machine_.sandboxes[id] = std::move(sandbox);
    machine_.sandbox_configs[id] = std::move(config);
    Answer(std::move(done), Result<std::string>(id));
  }

  void StopPodSandbox(const std::string& id, RuntimeCallback<void> done) override {
    if (auto error = Refuse("StopPodSandbox")) return Answer(std::move(done), Result<void>(*error));
    auto found = machine_.sandboxes.find(id);
    if (found != machine_.sandboxes.end()) {
      KillAll(id);
      found->second.state = SandboxState::kNotReady;
    }
    Answer(std::move(done), Ok());
  }

  void RemovePodSandbox(const std::string& id, RuntimeCallback<void> done) override {
    if (auto error = Refuse("RemovePodSandbox"))
      return Answer(std::move(done), Result<void>(*error));
    KillAll(id);
    std::erase_if(machine_.containers,
                  [&](const auto& entry) { return entry.second.status.sandbox_id == id; });
    machine_.sandboxes.erase(id);
    machine_.sandbox_configs.erase(id);
    Answer(std::move(done), Ok());
  }

  std::vector<PodSandbox> ListPodSandboxes() const override {
    std::vector<PodSandbox> list;
    for (const auto& [id, sandbox] : machine_.sandboxes) list.push_back(sandbox);
    return list;  // ids grow, so this is the order of creation
  }

  void CreateContainer(const std::string& sandbox_id, ContainerConfig config,
                       RuntimeCallback<std::string> done) override {
    auto fail = [&](Error error) {
      Answer(std::move(done),
             Result<std::string>(std::move(error).Prefixed("create container " + config.name)));
    };
    if (auto error = Refuse("CreateContainer")) return fail(*error);
    auto sandbox = machine_.sandboxes.find(sandbox_id);
    if (sandbox == machine_.sandboxes.end() || sandbox->second.state != SandboxState::kReady) {
      return fail(FailedPrecondition("its sandbox is not ready"));
    }
    auto image = ImageStatus(config.image);
    if (!image.ok()) return fail(image.error());
    HollowContainer container;
    if (machine_.program_in_pod) {
      container.program = machine_.program_in_pod(machine_.sandbox_configs[sandbox_id], config);
    } else if (machine_.program_of) {
      container.program = machine_.program_of(config);
    }
    if (container.program.create_error) return fail(*container.program.create_error);
    const std::string id = config.id.empty() ? NewId() : config.id;
    ContainerStatus& status = container.status;
    status.id = id;
    status.sandbox_id = sandbox_id;
    status.name = config.name;
    status.attempt = config.attempt;
    status.state = ContainerState::kCreated;
    status.created_at = loop_.clock().Now();
    status.image = config.image;
    status.image_id = ReferenceTo(*image, config.image);
    status.user = container.program.user;
    if (!config.log_path.empty()) {
      status.log_path = machine_.sandbox_configs[sandbox_id].log_directory + "/" + config.log_path;
    }
    status.labels = config.labels;
    status.annotations = config.annotations;
    container.config = std::move(config);
    machine_.containers[id] = std::move(container);
    Answer(std::move(done), Result<std::string>(id));
  }

  void StartContainer(const std::string& id, RuntimeCallback<void> done) override {
    if (auto error = Refuse("StartContainer")) return Answer(std::move(done), Result<void>(*error));
    auto found = machine_.containers.find(id);
    if (found == machine_.containers.end()) {
      return Answer(std::move(done), Result<void>(NotFound("no container " + id)));
    }
    HollowContainer& container = found->second;
    ContainerStatus& status = container.status;
    const std::string what = "start container " + status.name;
    if (status.state == ContainerState::kRunning) return Answer(std::move(done), Ok());
    if (status.state != ContainerState::kCreated) {
      return Answer(
          std::move(done),
          Result<void>(FailedPrecondition("it is not in the created state").Prefixed(what)));
    }
    if (container.program.start_error) {
      status.state = ContainerState::kExited;
      status.exit_code = 128;
      status.reason = std::string(kReasonStartError);
      status.message = container.program.start_error->message;
      status.finished_at = loop_.clock().Now();
      return Answer(std::move(done), Result<void>(container.program.start_error->Prefixed(what)));
    }
    Pause(machine_.start_takes, [this, id, done = std::move(done)]() mutable {
      auto again = machine_.containers.find(id);
      if (again == machine_.containers.end()) return done(NotFound("no container " + id));
      HollowContainer& started = again->second;
      started.status.state = ContainerState::kRunning;
      started.status.pid = machine_.next_pid++;
      started.status.started_at = loop_.clock().Now();
      if (started.program.runs_for) {
        started.ends_at = loop_.clock().Now() + *started.program.runs_for;
        started.end_code = started.program.exit_code;
        Arm(id);
      }
      done(Ok());
    });
  }

  void StopContainer(const std::string& id, Duration grace, RuntimeCallback<void> done) override {
    if (auto error = Refuse("StopContainer")) return Answer(std::move(done), Result<void>(*error));
    auto found = machine_.containers.find(id);
    if (found == machine_.containers.end() ||
        found->second.status.state != ContainerState::kRunning) {
      return Answer(std::move(done), Ok());
    }
    HollowContainer& container = found->second;
    stop_waiters_[id].push_back(std::move(done));
    const bool heeds = !container.program.ignores_stop_signal && grace > Duration::zero() &&
                       container.program.stops_within <= grace;
    const Duration takes =
        heeds ? container.program.stops_within : std::max(grace, Duration::zero());
    const WallTime end = loop_.clock().Now() + takes;
    if (container.ends_at && *container.ends_at <= end) return;
    container.ends_at = end;
    container.end_code =
        heeds ? (container.program.exit_code != 0 ? container.program.exit_code : kTerminated)
              : kKilled;
    Arm(id);
  }

  void RemoveContainer(const std::string& id, RuntimeCallback<void> done) override {
    if (auto error = Refuse("RemoveContainer"))
      return Answer(std::move(done), Result<void>(*error));
    auto found = machine_.containers.find(id);
    if (found != machine_.containers.end()) {
      if (found->second.status.state == ContainerState::kRunning)
        End(id, kKilled, loop_.clock().Now());
      timers_.erase(id);
      machine_.containers.erase(id);
    }
    Answer(std::move(done), Ok());
  }

  std::vector<ContainerStatus> ListContainers() const override {
    std::vector<ContainerStatus> list;
    for (const auto& [id, container] : machine_.containers) list.push_back(container.status);
    return list;
  }
  Result<ContainerStatus> GetContainerStatus(const std::string& id) const override {
    auto found = machine_.containers.find(id);
    if (found == machine_.containers.end()) return NotFound("no container " + id);
    return found->second.status;
  }

  void UpdateContainer(const std::string& id, ResourceUpdate update,
                       RuntimeCallback<void> done) override {
    if (auto error = Refuse("UpdateContainer"))
      return Answer(std::move(done), Result<void>(*error));
    auto found = machine_.containers.find(id);
    if (found == machine_.containers.end() ||
        found->second.status.state != ContainerState::kRunning) {
      return Answer(std::move(done),
                    Result<void>(FailedPrecondition("the container is not running")));
    }
    found->second.config.resources = update.container;
    for (auto& [name, value] : update.annotations) found->second.status.annotations[name] = value;
    Answer(std::move(done), Ok());
  }

  void ChangeCgroup(const std::string& id, CgroupChanges changes,
                    RuntimeCallback<void> done) override {
    if (auto error = Refuse("ChangeCgroup")) return Answer(std::move(done), Result<void>(*error));
    auto found = machine_.containers.find(id);
    if (found == machine_.containers.end() ||
        found->second.status.state == ContainerState::kExited) {
      return Answer(std::move(done),
                    Result<void>(FailedPrecondition("the container is not running")));
    }
    Merge(changes, found->second.config.cgroup_changes);
    Answer(std::move(done), Ok());
  }

  void ExecSync(const std::string& id, std::vector<std::string> command, Duration,
                RuntimeCallback<ExecResult> done) override {
    if (auto error = Refuse("ExecSync")) return Answer(std::move(done), Result<ExecResult>(*error));
    auto found = machine_.containers.find(id);
    if (found == machine_.containers.end() ||
        found->second.status.state != ContainerState::kRunning) {
      return Answer(std::move(done),
                    Result<ExecResult>(FailedPrecondition("exec: the container is not running")));
    }
    const auto& exec = found->second.program.exec;
    Answer(std::move(done), Result<ExecResult>(exec ? exec(command) : ExecResult{}));
  }

  Result<std::unique_ptr<ProcessStreams>> Exec(const std::string& id,
                                               std::vector<std::string> command,
                                               const StreamOptions& options,
                                               ProcessStreams::Events& events) override {
    if (auto error = Refuse("Exec")) return *error;
    auto found = machine_.containers.find(id);
    if (found == machine_.containers.end() ||
        found->second.status.state != ContainerState::kRunning) {
      return FailedPrecondition("exec: the container is not running");
    }
    const auto& exec = found->second.program.exec;
    return std::unique_ptr<ProcessStreams>(std::make_unique<HollowStreams>(
        loop_, options, exec ? exec(command) : ExecResult{}, events));
  }

  Result<std::unique_ptr<ProcessStreams>> Attach(const std::string& id, const StreamOptions&,
                                                 ProcessStreams::Events&) override {
    return Error{ErrorCode::kUnimplemented,
                 StrCat("container ", id, " is simulated: nothing to attach to")};
  }

  Result<std::unique_ptr<PortConnection>> ConnectPort(const std::string& sandbox_id,
                                                      std::uint16_t port,
                                                      PortConnection::Events& events) override {
    if (auto error = Refuse("ConnectPort")) return *error;
    const auto found = machine_.sandboxes.find(sandbox_id);
    if (found == machine_.sandboxes.end() || found->second.state != SandboxState::kReady) {
      return FailedPrecondition("the pod is not running");
    }
    if (port == machine_.closed_port) return Unavailable("connection refused");
    return std::unique_ptr<PortConnection>(std::make_unique<HollowPort>(loop_, events));
  }

  void ReopenLog(const std::string& id, RuntimeCallback<void> done) override {
    auto found = machine_.containers.find(id);
    const bool runs = found != machine_.containers.end() &&
                      found->second.status.state == ContainerState::kRunning;
    Answer(std::move(done),
           runs ? Ok() : Result<void>(FailedPrecondition("the container is not running")));
  }

  Result<Image> ImageStatus(const std::string& name) const override {
    auto normal = NormalizeImageName(name);
    for (const Image& image : machine_.images) {
      if (image.id == name) return image;
      if (normal.ok() &&
          std::find(image.names.begin(), image.names.end(), *normal) != image.names.end()) {
        return image;
      }
    }
    if (machine_.has_every_image && normal.ok()) {
      return Image{.id = StrCat("sha256:hollow-", *normal), .names = {*normal}, .size_bytes = 1};
    }
    return NotFound(StrCat(
        "image ", Quote(name),
        " is not present on this node; import it with: drakkar image import FILE --name ", name));
  }
  std::vector<Image> ListImages() const override { return machine_.images; }
  void PullImage(PullRequest request, RuntimeCallback<Image> done) override {
    machine_.pulls.push_back(request);
    if (auto error = Refuse("PullImage")) return Answer(std::move(done), Result<Image>(*error));
    const auto name = NormalizeImageName(request.image);
    if (!name.ok()) return Answer(std::move(done), Result<Image>(name.error()));
    if (machine_.pull_takes == Duration::zero()) {
      return Answer(std::move(done), TakeFromRegistry(*name));
    }
    auto shared = std::make_shared<RuntimeCallback<Image>>(std::move(done));
    pulls_.push_back(loop_.RunAfter(
        machine_.pull_takes, [this, name = *name, shared] { (*shared)(TakeFromRegistry(name)); }));
  }
  bool IsImported(const std::string& name) const override {
    const auto full = NormalizeImageName(name);
    return full.ok() && !machine_.registry.contains(*full) && ImageStatus(name).ok();
  }
  void RemoveImage(const std::string& id, RuntimeCallback<void> done) override {
    if (auto error = Refuse("RemoveImage")) return Answer(std::move(done), Result<void>(*error));
    std::erase_if(machine_.images, [&](const Image& image) { return image.id == id; });
    Answer(std::move(done), Result<void>());
  }
  void ReadUsage(UsageScope scope, RuntimeCallback<RuntimeUsage> done) override {
    if (auto error = Refuse("ReadUsage"))
      return Answer(std::move(done), Result<RuntimeUsage>(*error));
    Answer(std::move(done), Result<RuntimeUsage>(Usage(scope)));
  }

 private:
  Result<Image> TakeFromRegistry(const std::string& name) {
    const auto found = machine_.registry.find(name);
    if (found == machine_.registry.end()) return NotFound("not found");
    std::erase_if(machine_.images, [&](const Image& image) {
      return std::ranges::find(image.names, name) != image.names.end();
    });
    machine_.images.push_back(found->second);
    return found->second;
  }

  RuntimeUsage Usage(UsageScope scope) const {
    const WallTime now = loop_.clock().Now();
    std::map<std::string, PodUsage> pods;
    for (const auto& [id, container] : machine_.containers) {
      const ContainerStatus& status = container.status;
      const auto sandbox = machine_.sandboxes.find(status.sandbox_id);
      if (status.state != ContainerState::kRunning || sandbox == machine_.sandboxes.end()) continue;
      PodUsage& pod = pods[status.sandbox_id];
      pod.sandbox_id = status.sandbox_id;
      pod.name = sandbox->second.name;
      pod.namespace_name = sandbox->second.namespace_name;
      pod.uid = sandbox->second.uid;
      pod.cgroup = StrCat("/hollow/pod", pod.uid);
      pod.started_at = sandbox->second.created_at;
      ContainerUsage each;
      each.id = id;
      each.name = status.name;
      each.image = status.image;
      each.cgroup = StrCat(pod.cgroup, "/", id);
      each.started_at = status.started_at;
      const auto ran =
          std::chrono::duration_cast<std::chrono::nanoseconds>(now - status.started_at);
      const std::uint64_t used =
          static_cast<std::uint64_t>(static_cast<double>(container.program.nano_cores) *
                                     std::chrono::duration<double>(ran).count());
      each.cpu.time = each.memory.time = now;
      each.cpu.total_ns = used;
      each.memory.usage_bytes = each.memory.working_set_bytes = each.memory.rss_bytes =
          container.program.memory_bytes;
      each.processes = container.program.processes;
      if (scope == UsageScope::kWithFiles) {
        each.root_fs = {.used_bytes = container.program.disk_bytes, .inodes_used = 1};
      }
      pod.cpu.time = pod.memory.time = now;
      pod.cpu.total_ns = pod.cpu.total_ns.value_or(0) + used;
      pod.memory.usage_bytes = pod.memory.usage_bytes.value_or(0) + *each.memory.usage_bytes;
      pod.memory.working_set_bytes = pod.memory.rss_bytes = pod.memory.usage_bytes;
      pod.processes = pod.processes.value_or(0) + *each.processes;
      pod.containers.push_back(std::move(each));
    }
    RuntimeUsage usage;
    usage.images.files.used_bytes = 0;
    for (const Image& image : machine_.images) *usage.images.files.used_bytes += image.size_bytes;
    for (auto& [id, pod] : pods) usage.pods.push_back(std::move(pod));
    return usage;
  }
  std::optional<Error> Fault(const std::string& method) {
    auto& queue = machine_.faults[method];
    if (queue.empty()) return std::nullopt;
    Error error = std::move(queue.front());
    queue.pop_front();
    return error;
  }
  bool HasHandler(const std::string& name) const {
    return !machine_.handlers || std::ranges::any_of(*machine_.handlers, [&](const auto& each) {
      return each.name == name;
    });
  }

  std::optional<Error> Refuse(const std::string& method) {
    if (!is_open_) return FailedPrecondition("the runtime is not open");
    return Fault(method);
  }

  void Arm(const std::string& id) {
    HollowContainer& container = machine_.containers[id];
    const Duration left =
        std::max<Duration>(*container.ends_at - loop_.clock().Now(), Duration::zero());
    timers_[id] = loop_.RunAfter(left, [this, id] {
      auto own = std::move(timers_[id]);
      timers_.erase(id);
      auto found = machine_.containers.find(id);
      if (found == machine_.containers.end()) return;
      End(id, found->second.end_code, *found->second.ends_at);
    });
  }

  void End(const std::string& id, int exit_code, WallTime when) {
    HollowContainer& container = machine_.containers[id];
    ContainerStatus& status = container.status;
    if (status.state != ContainerState::kRunning) return;
    status.state = ContainerState::kExited;
    status.pid = 0;
    status.exit_code = exit_code;
    status.finished_at = when;
    status.reason = !container.program.reason.empty()
                        ? container.program.reason
                        : std::string(exit_code == 0 ? kReasonCompleted : kReasonError);
    const ContainerStatus copy = status;
    Later([this, copy] {
      if (listener_) listener_(copy);
      auto waiters = std::move(stop_waiters_[copy.id]);
      stop_waiters_.erase(copy.id);
      for (auto& waiter : waiters) waiter(Ok());
    });
  }

  void KillAll(const std::string& sandbox_id) {
    std::vector<std::string> running;
    for (const auto& [id, container] : machine_.containers) {
      if (container.status.sandbox_id == sandbox_id &&
          container.status.state == ContainerState::kRunning) {
        running.push_back(id);
      }
    }
    for (const std::string& id : running) {
      timers_.erase(id);
      End(id, kKilled, loop_.clock().Now());
    }
  }

  // Growing numbers, so that maps are in the order of creation.
  std::string NewId() {
    char text[32];
    std::snprintf(text, sizeof(text), "hollow%010llu",
                  static_cast<unsigned long long>(machine_.next_id++));
    return text;
  }

  void Later(Task task) { loop_.Post(lifetime_.Guard(std::move(task))); }
  void Pause(Duration delay, Task task) {
    if (delay <= Duration::zero()) return Later(std::move(task));
    const std::string key = StrCat("pause", machine_.next_id++);
    timers_[key] = loop_.RunAfter(delay, [this, key, task = std::move(task)]() mutable {
      auto own = std::move(timers_[key]);
      timers_.erase(key);
      task();
    });
  }
  template <typename T>
  void Answer(RuntimeCallback<T> done, Result<T> result) {
    Later([done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  }

  EventLoop& loop_;
  HollowMachine& machine_;
  bool is_open_ = false;
  std::function<void(const ContainerStatus&)> listener_;
  std::map<std::string, TimerHandle> timers_;
  std::map<std::string, std::vector<RuntimeCallback<void>>> stop_waiters_;
  std::vector<TimerHandle> pulls_;  // all that were asked for, if they take time
  Lifetime lifetime_;
};

}  // namespace

std::unique_ptr<Runtime> MakeHollowRuntime(EventLoop& loop, HollowMachine& machine) {
  return std::make_unique<HollowRuntime>(loop, machine);
}

}  // namespace drakkar::node
