#include "node/runtime/testing/fake_cri.h"

#include <rpc_proto/cri.pb.h>

#include <algorithm>
#include <set>

#include "base/exec/lifetime.h"
#include "base/result/check.h"
#include "base/text/text.h"
#include "net/spdy/session.h"
#include "node/runtime/cri/cri_messages.h"
#include "node/runtime/cri/cri_usage.h"
#include "node/runtime/testing/memory_stream.h"

namespace drakkar::node {
namespace {

namespace wire = rpc::cri_wire;
using net::spdy::StreamId;

template <typename Map>
void FillMap(const std::map<std::string, std::string>& from, Map* to) {
  for (const auto& [name, value] : from) (*to)[name] = value;
}
template <typename Map>
std::map<std::string, std::string> ReadMap(const Map& from) {
  return std::map<std::string, std::string>(from.begin(), from.end());
}

template <typename Request>
Request Parse(const std::string& bytes) {
  Request request;
  CHECK(request.ParseFromString(bytes));
  return request;
}

std::int64_t Nanoseconds(WallTime time) {
  return time.time_since_epoch().count();
}

wire::ContainerState StateOf(ContainerState state) {
  switch (state) {
    case ContainerState::kCreated:
      return wire::CONTAINER_CREATED;
    case ContainerState::kRunning:
      return wire::CONTAINER_RUNNING;
    case ContainerState::kExited:
      return wire::CONTAINER_EXITED;
    default:
      return wire::CONTAINER_UNKNOWN;
  }
}

template <typename Wire>
void FillSandbox(const PodSandbox& from, Wire* to) {
  to->set_id(from.id);
  to->mutable_metadata()->set_name(from.name);
  to->mutable_metadata()->set_namespace_(from.namespace_name);
  to->mutable_metadata()->set_uid(from.uid);
  to->mutable_metadata()->set_attempt(from.attempt);
  to->set_state(from.state == SandboxState::kReady ? wire::SANDBOX_READY : wire::SANDBOX_NOTREADY);
  to->set_created_at(Nanoseconds(from.created_at));
  FillMap(from.labels, to->mutable_labels());
  FillMap(from.annotations, to->mutable_annotations());
  to->set_runtime_handler(from.runtime_handler);
}

// One exec session: SPDY on one side, a hollow container's streams on the other.
class ExecSession final : private net::spdy::Session::Events, private ProcessStreams::Events {
 public:
  ExecSession(Runtime& runtime, wire::ExecRequest request, std::unique_ptr<net::RawStream> stream)
      : runtime_(runtime),
        request_(std::move(request)),
        session_(net::spdy::Role::kServer, *this),
        stream_(std::move(stream)) {
    stream_->Start(
        [this](std::string_view bytes) {
          CHECK(session_.Receive(bytes).ok());
          Flush();
        },
        [] {});
  }

 private:
  void OnStream(StreamId id, const net::Headers& headers) override {
    streams_[std::string(headers.Get("streamType"))] = id;
    session_.Reply(id);
    const std::size_t wanted =
        1u + request_.stdin() + request_.stdout() + request_.stderr() + request_.tty();
    if (streams_.size() < wanted) return;
    auto started = runtime_.Exec(
        request_.container_id(), {request_.cmd().begin(), request_.cmd().end()},
        {request_.stdin(), request_.stdout(), request_.stderr(), request_.tty()}, *this);
    if (started.ok()) process_ = *std::move(started);
  }
  void OnReply(StreamId) override {}
  void OnData(StreamId id, std::string_view bytes) override {
    if (process_ && id == streams_["stdin"]) process_->WriteInput(bytes);
  }
  void OnFinish(StreamId id) override {
    if (process_ && id == streams_["stdin"]) process_->CloseInput();
  }
  void OnReset(StreamId) override {}
  void OnGoAway() override {}

  void OnOutput(OutputStream stream, std::string_view bytes) override {
    session_.Send(streams_[stream == OutputStream::kStandard ? "stdout" : "stderr"], bytes);
    Flush();
  }
  void OnInputDrained() override {}
  void OnEnd(Result<int> exit_code) override {
    const std::string code = std::to_string(*exit_code);
    session_.Send(
        streams_["error"],
        *exit_code == 0
            ? R"({"metadata":{},"status":"Success"})"
            : StrCat(R"({"metadata":{},"status":"Failure","reason":"NonZeroExitCode","details":)",
                     R"({"causes":[{"reason":"ExitCode","message":")", code, R"("}]}})"));
    session_.Finish(streams_["error"]);
    Flush();
  }
  void Flush() {
    if (session_.has_output()) stream_->Write(session_.TakeOutput());
  }

  Runtime& runtime_;
  const wire::ExecRequest request_;
  net::spdy::Session session_;
  std::unique_ptr<net::RawStream> stream_;
  std::map<std::string, StreamId> streams_;
  std::unique_ptr<ProcessStreams> process_;
};

// One forwarded connection: SPDY on one side, a hollow pod's port on the other.
class PortSession final : private net::spdy::Session::Events, private PortConnection::Events {
 public:
  PortSession(Runtime& runtime, std::string sandbox_id, std::unique_ptr<net::RawStream> stream)
      : runtime_(runtime),
        sandbox_id_(std::move(sandbox_id)),
        session_(net::spdy::Role::kServer, *this),
        stream_(std::move(stream)) {
    stream_->Start(
        [this](std::string_view bytes) {
          CHECK(session_.Receive(bytes).ok());
          Flush();
        },
        [] {});
  }

 private:
  void OnStream(StreamId id, const net::Headers& headers) override {
    session_.Reply(id);
    (headers.Get("streamType") == "data" ? data_ : error_) = id;
    if (data_ == 0 || error_ == 0) return;
    const auto port = ParseInt64(headers.Get("port"));
    CHECK(port.has_value());
    auto connected = runtime_.ConnectPort(sandbox_id_, static_cast<std::uint16_t>(*port), *this);
    if (!connected.ok()) return OnPortEnd(connected.error());
    connection_ = *std::move(connected);
  }
  void OnReply(StreamId) override {}
  void OnData(StreamId, std::string_view bytes) override {
    if (connection_) connection_->Write(bytes);
  }
  void OnFinish(StreamId id) override {
    if (connection_ && id == data_) connection_->FinishWriting();
  }
  void OnReset(StreamId) override {}
  void OnGoAway() override {}
  void OnPortData(std::string_view bytes) override {
    session_.Send(data_, bytes);
    Flush();
  }
  void OnPortDrained() override {}
  void OnPortEnd(Result<void> result) override {
    if (!result.ok()) session_.Send(error_, result.error().message);
    session_.Finish(error_);
    session_.Finish(data_);
    Flush();
  }
  void Flush() {
    if (session_.has_output()) stream_->Write(session_.TakeOutput());
  }

  Runtime& runtime_;
  const std::string sandbox_id_;
  net::spdy::Session session_;
  std::unique_ptr<net::RawStream> stream_;
  StreamId data_ = 0;
  StreamId error_ = 0;
  std::unique_ptr<PortConnection> connection_;
};

class MemoryDial final : public PendingDial {
 public:
  Lifetime lifetime;
};

}  // namespace

struct FakeCri::State {
  explicit State(const Options& options)
      : loop(options.loop), machine(options.machine), has_events(options.has_events) {
    runtime = MakeHollowRuntime(loop, machine);
    runtime->OnExit([this](const ContainerStatus& status) {
      Tell(status.id, status.sandbox_id, wire::CONTAINER_STOPPED_EVENT);
    });
    runtime->Open([](Result<void> opened) { CHECK(opened.ok()); });
  }

  void Tell(const std::string& id, const std::string& sandbox, wire::ContainerEventType type) {
    wire::ContainerEventResponse event;
    event.set_container_id(id);
    event.set_container_event_type(type);
    event.mutable_pod_sandbox_status()->set_id(sandbox);
    std::erase_if(watchers, [](const auto& watcher) { return watcher->IsCancelled(); });
    for (const auto& watcher : watchers) watcher->Send(event.SerializeAsString());
  }

  EventLoop& loop;
  HollowMachine& machine;
  const bool has_events;
  std::unique_ptr<Runtime> runtime;
  std::vector<std::unique_ptr<rpc::ServerCall>> watchers;
  std::vector<Pull> pulls;
  std::string required_user;
  std::map<std::string, std::size_t> calls;
  std::map<std::string, wire::ExecRequest> execs;  // by URL
  std::map<std::string, std::string> forwards;     // by URL, the sandbox
  std::vector<std::unique_ptr<ExecSession>> sessions;
  std::vector<std::unique_ptr<PortSession>> port_sessions;
};

class FakeCri::Service final : public rpc::RpcService {
 public:
  Service(std::shared_ptr<State> state, const Options& options)
      : state_(std::move(state)), options_(options) {}

  std::vector<std::string> MethodPaths() const override {
    std::vector<std::string> paths = {cri::kVersion,
                                      cri::kStatus,
                                      cri::kRunPodSandbox,
                                      cri::kStopPodSandbox,
                                      cri::kRemovePodSandbox,
                                      cri::kPodSandboxStatus,
                                      cri::kListPodSandbox,
                                      cri::kCreateContainer,
                                      cri::kStartContainer,
                                      cri::kStopContainer,
                                      cri::kRemoveContainer,
                                      cri::kListContainers,
                                      cri::kContainerStatus,
                                      cri::kUpdateResources,
                                      cri::kReopenLog,
                                      cri::kExecSync,
                                      cri::kExec,
                                      cri::kPortForward,
                                      cri::kListImages,
                                      cri::kPullImage,
                                      cri::kRemoveImage,
                                      cri::kListContainerStats,
                                      cri::kImageFsInfo};
    if (options_.has_pod_stats) paths.push_back(cri::kListPodSandboxStats);
    if (state_->has_events) paths.push_back(cri::kEvents);
    return paths;
  }

  void Handle(std::string_view method, std::string request,
              std::unique_ptr<rpc::ServerCall> call) override {
    ++state_->calls[std::string(method.substr(method.rfind('/') + 1))];
    auto shared = std::make_shared<std::unique_ptr<rpc::ServerCall>>(std::move(call));
    if (method == cri::kEvents) return state_->watchers.push_back(std::move(*shared));
    Answer answer = [shared](Result<std::string> result) {
      if (!result.ok()) return (*shared)->Finish(std::move(result).error());
      (*shared)->Send(*result);
      (*shared)->Finish(Ok());
    };
    Dispatch(method, request, std::move(answer));
  }

 private:
  using Answer = std::function<void(Result<std::string>)>;

  static RuntimeCallback<void> Empty(Answer answer) {
    return [answer](Result<void> result) {
      if (!result.ok()) return answer(result.error());
      answer(std::string());
    };
  }

  void Dispatch(std::string_view method, const std::string& bytes, Answer answer) {
    Runtime& runtime = *state_->runtime;
    if (method == cri::kVersion) {
      wire::VersionResponse response;
      response.set_runtime_name("containerd");
      response.set_runtime_version("v0.fake");
      return answer(response.SerializeAsString());
    }
    if (method == cri::kStatus) return answer(Status());
    if (method == cri::kRunPodSandbox) return RunPodSandbox(bytes, std::move(answer));
    if (method == cri::kStopPodSandbox || method == cri::kRemovePodSandbox) {
      const std::string id = Parse<wire::StopPodSandboxRequest>(bytes).pod_sandbox_id();
      const auto found = state_->machine.sandboxes.find(id);
      if (method == cri::kStopPodSandbox) return runtime.StopPodSandbox(id, Empty(answer));
      if (found != state_->machine.sandboxes.end() && found->second.state == SandboxState::kReady) {
        return answer(FailedPrecondition("sandbox container is not fully stopped"));
      }
      return runtime.RemovePodSandbox(id, Empty(answer));
    }
    if (method == cri::kPodSandboxStatus) {
      return answer(PodSandboxStatus(Parse<wire::PodSandboxStatusRequest>(bytes).pod_sandbox_id()));
    }
    if (method == cri::kListPodSandbox) {
      wire::ListPodSandboxResponse response;
      for (const PodSandbox& each : runtime.ListPodSandboxes()) {
        FillSandbox(each, response.add_items());
      }
      return answer(response.SerializeAsString());
    }
    if (method == cri::kCreateContainer) return CreateContainer(bytes, std::move(answer));
    const std::string id = Parse<wire::StartContainerRequest>(bytes).container_id();
    if (method == cri::kStartContainer) return runtime.StartContainer(id, Empty(answer));
    if (method == cri::kStopContainer) {
      const auto request = Parse<wire::StopContainerRequest>(bytes);
      return runtime.StopContainer(id, std::chrono::seconds(request.timeout()), Empty(answer));
    }
    if (method == cri::kRemoveContainer) return runtime.RemoveContainer(id, Empty(answer));
    if (method == cri::kReopenLog) return runtime.ReopenLog(id, Empty(answer));
    if (method == cri::kListContainers) return answer(ListContainers());
    if (method == cri::kContainerStatus) return answer(ContainerStatusOf(id));
    if (method == cri::kUpdateResources) {
      const auto request = Parse<wire::UpdateContainerResourcesRequest>(bytes);
      ResourceUpdate update;
      update.container.cpu_quota_us = request.linux().cpu_quota();
      update.container.memory_limit_bytes = request.linux().memory_limit_in_bytes();
      return runtime.UpdateContainer(id, update, Empty(answer));
    }
    if (method == cri::kExecSync) {
      const auto request = Parse<wire::ExecSyncRequest>(bytes);
      return runtime.ExecSync(id, {request.cmd().begin(), request.cmd().end()},
                              std::chrono::seconds(request.timeout()),
                              [answer](Result<ExecResult> result) {
                                if (!result.ok()) return answer(result.error());
                                wire::ExecSyncResponse response;
                                response.set_stdout(result->output);
                                response.set_stderr(result->error_output);
                                response.set_exit_code(result->exit_code);
                                answer(response.SerializeAsString());
                              });
    }
    if (method == cri::kExec) {
      const std::string url = StrCat("http://127.0.0.1:1/exec/", state_->execs.size());
      state_->execs[url] = Parse<wire::ExecRequest>(bytes);
      wire::ExecResponse response;
      response.set_url(url);
      return answer(response.SerializeAsString());
    }
    if (method == cri::kPortForward) {
      const std::string url = StrCat("http://127.0.0.1:1/portforward/", state_->forwards.size());
      state_->forwards[url] = Parse<wire::PortForwardRequest>(bytes).pod_sandbox_id();
      wire::PortForwardResponse response;
      response.set_url(url);
      return answer(response.SerializeAsString());
    }
    if (method == cri::kListImages) {
      wire::ListImagesResponse response;
      for (const Image& image : runtime.ListImages()) {
        wire::Image* to = response.add_images();
        to->set_id(image.id);
        to->set_size(image.size_bytes);
        to->set_pinned(image.is_pinned);
        for (const std::string& name : image.names) {
          to->add_repo_tags(name);
          if (!state_->machine.registry.contains(name)) continue;
          to->add_repo_digests(StrCat(name.substr(0, name.rfind(':')), "@", image.id));
        }
      }
      return answer(response.SerializeAsString());
    }
    if (method == cri::kRemoveImage) {
      return runtime.RemoveImage(Parse<wire::RemoveImageRequest>(bytes).image().image(),
                                 Empty(answer));
    }
    if (method == cri::kListPodSandboxStats || method == cri::kListContainerStats ||
        method == cri::kImageFsInfo) {
      const std::string name(method);
      return runtime.ReadUsage(UsageScope::kWithFiles,
                               [this, answer, name](Result<RuntimeUsage> usage) {
                                 if (!usage.ok()) return answer(usage.error());
                                 answer(Usage(name, *usage));
                               });
    }
    CHECK(method == cri::kPullImage);
    const auto request = Parse<wire::PullImageRequest>(bytes);
    state_->pulls.push_back({request.image().image(), request.auth().username()});
    if (!state_->required_user.empty() && request.auth().username() != state_->required_user) {
      return answer(Error{ErrorCode::kUnauthenticated, "pull access denied"});
    }
    runtime.PullImage({.image = request.image().image(), .credentials = {}},
                      [answer](Result<Image> image) {
                        if (!image.ok()) return answer(image.error());
                        wire::PullImageResponse response;
                        response.set_image_ref(image->id);
                        answer(response.SerializeAsString());
                      });
  }

  void Fill(const ContainerUsage& from, wire::ContainerStats& to) {
    to.mutable_attributes()->set_id(from.id);
    to.mutable_attributes()->mutable_metadata()->set_name(from.name);
    to.mutable_cpu()->set_timestamp(from.cpu.time.time_since_epoch() / std::chrono::nanoseconds(1));
    to.mutable_cpu()->mutable_usage_core_nano_seconds()->set_value(from.cpu.total_ns.value_or(0));
    to.mutable_memory()->set_timestamp(to.cpu().timestamp());
    to.mutable_memory()->mutable_working_set_bytes()->set_value(
        from.memory.working_set_bytes.value_or(0));
    to.mutable_swap()->mutable_swap_usage_bytes()->set_value(4096);
    to.mutable_writable_layer()->mutable_used_bytes()->set_value(
        from.root_fs.used_bytes.value_or(0));
  }

  std::string Usage(std::string_view method, const RuntimeUsage& usage) {
    if (method == cri::kImageFsInfo) {
      wire::ImageFsInfoResponse response;
      auto* images = response.add_image_filesystems();
      images->mutable_fs_id()->set_mountpoint("/var/lib/containerd");
      images->mutable_used_bytes()->set_value(usage.images.files.used_bytes.value_or(0));
      return response.SerializeAsString();
    }
    wire::ListPodSandboxStatsResponse pods;
    wire::ListContainerStatsResponse containers;
    for (const PodUsage& pod : usage.pods) {
      wire::PodSandboxStats& to = *pods.add_stats();
      to.mutable_attributes()->set_id(pod.sandbox_id);
      to.mutable_attributes()->mutable_metadata()->set_name(pod.name);
      to.mutable_attributes()->mutable_metadata()->set_namespace_(pod.namespace_name);
      (*to.mutable_attributes()->mutable_labels())[cri::kPodUidLabel] = pod.uid;
      wire::LinuxPodSandboxStats& linux_stats = *to.mutable_linux();
      linux_stats.mutable_cpu()->mutable_usage_core_nano_seconds()->set_value(
          pod.cpu.total_ns.value_or(0));
      linux_stats.mutable_memory()->mutable_working_set_bytes()->set_value(
          pod.memory.working_set_bytes.value_or(0));
      auto* wan = linux_stats.mutable_network()->mutable_default_interface();
      wan->set_name("eth0");
      wan->mutable_rx_bytes()->set_value(100);
      linux_stats.mutable_process()->mutable_process_count()->set_value(pod.processes.value_or(0));
      for (const ContainerUsage& each : pod.containers) {
        Fill(each, *linux_stats.add_containers());
        Fill(each, *containers.add_stats());
      }
    }
    return method == cri::kListPodSandboxStats ? pods.SerializeAsString()
                                               : containers.SerializeAsString();
  }

  std::string Status() {
    wire::StatusResponse response;
    wire::RuntimeCondition* runtime = response.mutable_status()->add_conditions();
    runtime->set_type("RuntimeReady");
    runtime->set_status(true);
    wire::RuntimeCondition* network = response.mutable_status()->add_conditions();
    network->set_type("NetworkReady");
    network->set_status(options_.not_ready.empty());
    network->set_reason("NetworkPluginNotReady");
    network->set_message(options_.not_ready);
    for (const RuntimeHandler& each :
         state_->machine.handlers.value_or(std::vector<RuntimeHandler>())) {
      wire::RuntimeHandler* handler = response.add_runtime_handlers();
      handler->set_name(each.name);
      handler->mutable_features()->set_user_namespaces(each.user_namespaces.value_or(false));
    }
    std::string directories;
    for (const std::string& each : options_.cdi_directories) {
      directories += StrCat(directories.empty() ? "" : ",", "\"", each, "\"");
    }
    (*response.mutable_info())["config"] =
        StrCat(R"({"containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{"options":)",
               R"({"SystemdCgroup":false}}}},"enableCDI":)",
               options_.cdi_directories.empty() ? "false" : "true", R"(,"cdiSpecDirs":[)",
               directories, "]}");
    return response.SerializeAsString();
  }

  void RunPodSandbox(const std::string& bytes, Answer answer) {
    const auto request = Parse<wire::RunPodSandboxRequest>(bytes);
    const wire::PodSandboxConfig& from = request.config();
    PodSandboxConfig config;
    config.name = from.metadata().name();
    config.namespace_name = from.metadata().namespace_();
    config.uid = from.metadata().uid();
    config.attempt = from.metadata().attempt();
    config.hostname = from.hostname();
    config.log_directory = from.log_directory();
    config.cgroup_parent = from.linux().cgroup_parent();
    config.host_network =
        from.linux().security_context().namespace_options().network() == wire::NODE;
    config.labels = ReadMap(from.labels());
    config.annotations = ReadMap(from.annotations());
    config.runtime_handler = request.runtime_handler();
    state_->runtime->RunPodSandbox(config, [answer](Result<std::string> id) {
      if (!id.ok()) return answer(id.error());
      wire::RunPodSandboxResponse response;
      response.set_pod_sandbox_id(*id);
      answer(response.SerializeAsString());
    });
  }

  Result<std::string> PodSandboxStatus(const std::string& id) {
    for (const PodSandbox& each : state_->runtime->ListPodSandboxes()) {
      if (each.id != id) continue;
      wire::PodSandboxStatusResponse response;
      FillSandbox(each, response.mutable_status());
      for (const std::string& ip : each.ips) {
        wire::PodSandboxNetworkStatus* network = response.mutable_status()->mutable_network();
        if (network->ip().empty()) {
          network->set_ip(ip);
        } else {
          network->add_additional_ips()->set_ip(ip);
        }
      }
      (*response.mutable_info())["info"] =
          StrCat(R"({"pid":1,"runtimeSpec":{"linux":{"namespaces":[{"type":"pid"},{"type":)",
                 R"("network","path":")", each.network_namespace, R"("}]}}})");
      return response.SerializeAsString();
    }
    return NotFound("an error occurred when try to find sandbox: not found");
  }

  void CreateContainer(const std::string& bytes, Answer answer) {
    const auto request = Parse<wire::CreateContainerRequest>(bytes);
    const wire::ContainerConfig& from = request.config();
    ContainerConfig config;
    config.name = from.metadata().name();
    config.attempt = from.metadata().attempt();
    config.image = from.image().image();
    config.command = {from.command().begin(), from.command().end()};
    config.arguments = {from.args().begin(), from.args().end()};
    for (const wire::CDIDevice& device : from.cdi_devices()) {
      config.cdi_devices.push_back(device.name());
    }
    for (const wire::KeyValue& pair : from.envs()) {
      config.environment.push_back({pair.key(), pair.value()});
    }
    config.labels = ReadMap(from.labels());
    config.annotations = ReadMap(from.annotations());
    config.log_path = from.log_path();
    config.stop_signal = wire::Signal_Name(from.stop_signal());
    // As containerd, which keeps one name per pod, container and attempt.
    for (const auto& [id, each] : state_->machine.containers) {
      if (each.status.sandbox_id == request.pod_sandbox_id() && each.status.name == config.name &&
          each.status.attempt == config.attempt) {
        return answer(Internal(StrCat("name ", config.name, " is reserved for ", id)));
      }
    }
    state_->runtime->CreateContainer(
        request.pod_sandbox_id(), config,
        [this, sandbox = request.pod_sandbox_id(), answer](Result<std::string> id) {
          if (!id.ok()) return answer(id.error());
          wire::CreateContainerResponse response;
          response.set_container_id(*id);
          answer(response.SerializeAsString());
          state_->Tell(*id, sandbox, wire::CONTAINER_CREATED_EVENT);
        });
  }

  std::string ListContainers() {
    wire::ListContainersResponse response;
    for (const ContainerStatus& each : state_->runtime->ListContainers()) {
      wire::Container* to = response.add_containers();
      to->set_id(each.id);
      to->set_pod_sandbox_id(each.sandbox_id);
      to->mutable_metadata()->set_name(each.name);
      to->mutable_metadata()->set_attempt(each.attempt);
      to->set_state(StateOf(each.state));
      to->set_created_at(Nanoseconds(each.created_at));
      FillMap(each.labels, to->mutable_labels());
      FillMap(each.annotations, to->mutable_annotations());
    }
    return response.SerializeAsString();
  }

  Result<std::string> ContainerStatusOf(const std::string& id) {
    const auto status = state_->runtime->GetContainerStatus(id);
    if (!status.ok()) return NotFound("an error occurred when try to find container: not found");
    wire::ContainerStatusResponse response;
    wire::ContainerStatus* to = response.mutable_status();
    to->set_id(id);
    to->mutable_metadata()->set_name(status->name);
    to->mutable_metadata()->set_attempt(status->attempt);
    to->set_state(StateOf(status->state));
    to->set_created_at(Nanoseconds(status->created_at));
    to->set_started_at(Nanoseconds(status->started_at));
    to->set_finished_at(Nanoseconds(status->finished_at));
    to->set_exit_code(status->exit_code);
    to->set_reason(status->reason);
    to->set_message(status->message);
    to->mutable_image()->set_image(status->image);
    to->set_image_ref(status->image_id);
    to->set_log_path(status->log_path);
    FillMap(status->labels, to->mutable_labels());
    FillMap(status->annotations, to->mutable_annotations());
    (*response.mutable_info())["info"] =
        StrCat(R"({"sandboxID":")", status->sandbox_id, R"(","pid":)", status->pid, "}");
    return response.SerializeAsString();
  }

  const std::shared_ptr<State> state_;
  const Options options_;
};

FakeCri::FakeCri(Options options)
    : options_(std::move(options)), state_(std::make_shared<State>(options_)) {}

FakeCri::~FakeCri() {
  Stop();
}

void FakeCri::Start() {
  std::vector<std::unique_ptr<rpc::RpcService>> services;
  services.push_back(std::make_unique<Service>(state_, options_));
  server_ = options_.transport.CreateServer(options_.socket_path, std::move(services));
  CHECK(server_->Start().ok());
}

void FakeCri::Stop() {
  state_->watchers.clear();
  server_.reset();
}

StreamDialer FakeCri::Dialer() {
  return [state = state_](const std::string& url, net::Headers,
                          absl::AnyInvocable<void(Result<std::unique_ptr<net::RawStream>>)> done) {
    auto dial = std::make_unique<MemoryDial>();
    state->loop.Post(dial->lifetime.Guard([state, url, done = std::move(done)]() mutable {
      if (const auto sandbox = state->forwards.find(url); sandbox != state->forwards.end()) {
        auto [ours, theirs] = MemoryStream::Pair(state->loop);
        state->port_sessions.push_back(
            std::make_unique<PortSession>(*state->runtime, sandbox->second, std::move(ours)));
        return done(std::move(theirs));
      }
      const auto found = state->execs.find(url);
      if (found == state->execs.end()) return done(NotFound("no such session"));
      auto [ours, theirs] = MemoryStream::Pair(state->loop);
      state->sessions.push_back(
          std::make_unique<ExecSession>(*state->runtime, found->second, std::move(ours)));
      done(std::move(theirs));
    }));
    return dial;
  };
}

const std::vector<FakeCri::Pull>& FakeCri::pulls() const {
  return state_->pulls;
}
void FakeCri::RequireUser(std::string username) {
  state_->required_user = std::move(username);
}
std::size_t FakeCri::calls(const std::string& method) const {
  const auto found = state_->calls.find(method);
  return found == state_->calls.end() ? 0 : found->second;
}

}  // namespace drakkar::node
