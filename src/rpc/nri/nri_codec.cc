#include "rpc/nri/nri_codec.h"

#include <rpc_proto/nri.pb.h>

#include <algorithm>

#include "base/text/text.h"
#include "rpc/internal/codec.h"

namespace drakkar::rpc {

std::string_view NriEventName(NriEvent event) {
  static constexpr std::string_view kNames[] = {
      "RunPodSandbox",        "StopPodSandbox",
      "RemovePodSandbox",     "CreateContainer",
      "PostCreateContainer",  "StartContainer",
      "PostStartContainer",   "UpdateContainer",
      "PostUpdateContainer",  "StopContainer",
      "RemoveContainer",      "UpdatePodSandbox",
      "PostUpdatePodSandbox", "ValidateContainerAdjustment"};
  static_assert(std::size(kNames) == kLastNriEvent);
  return kNames[static_cast<int>(event) - 1];
}

Result<void> CheckNriPluginName(std::string_view name) {
  if (name.empty()) return InvalidArgument("invalid plugin name: name is empty");
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '-' && c != '_' && c != '.' && c != '+') {
      return InvalidArgument(StrCat("invalid plugin name ", Quote(name)));
    }
  }
  return Ok();
}

Result<void> CheckNriPluginIndex(std::string_view index) {
  const bool digits = index.size() == 2 && std::all_of(index.begin(), index.end(),
                                                       [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) {
    return InvalidArgument(StrCat("invalid plugin index ", Quote(index), ", must be 2 digits"));
  }
  return Ok();
}

}  // namespace drakkar::rpc

namespace drakkar::rpc::nri {
namespace {

namespace wire = nri_wire;

void FillTexts(const std::map<std::string, std::string>& texts,
               google::protobuf::Map<std::string, std::string>& message) {
  for (const auto& [name, value] : texts) {
    message[internal::ValidUtf8(name)] = internal::ValidUtf8(value);
  }
}

void FillPod(const NriPodSandbox& pod, wire::PodSandbox& message) {
  message.set_id(pod.id);
  message.set_name(pod.name);
  message.set_uid(pod.uid);
  message.set_namespace_(pod.namespace_name);
  FillTexts(pod.labels, *message.mutable_labels());
  FillTexts(pod.annotations, *message.mutable_annotations());
  message.set_runtime_handler(pod.runtime_handler);
  message.set_pid(pod.pid);
  internal::AddStrings(pod.ips, message.mutable_ips());
  for (const auto& [type, path] : pod.linux_namespaces) {
    wire::LinuxNamespace* each = message.mutable_linux()->add_namespaces();
    each->set_type(type);
    each->set_path(path);
  }
}

template <typename Repeated>
void FillMounts(const std::vector<NriMount>& mounts, Repeated& message) {
  for (const NriMount& mount : mounts) {
    wire::Mount& each = *message.Add();
    each.set_destination(internal::ValidUtf8(mount.destination));
    each.set_type(internal::ValidUtf8(mount.type));
    each.set_source(internal::ValidUtf8(mount.source));
    internal::AddStrings(mount.options, each.mutable_options());
  }
}

template <typename Repeated>
std::vector<NriMount> ReadMounts(const Repeated& message) {
  std::vector<NriMount> mounts;
  for (const wire::Mount& each : message) {
    mounts.push_back(
        {each.destination(), each.type(), each.source(), internal::Strings(each.options())});
  }
  return mounts;
}

void FillContainer(const NriContainer& container, wire::Container& message) {
  message.set_id(container.id);
  message.set_pod_sandbox_id(container.pod_sandbox_id);
  message.set_name(container.name);
  message.set_state(static_cast<std::int32_t>(container.state));
  FillTexts(container.labels, *message.mutable_labels());
  FillTexts(container.annotations, *message.mutable_annotations());
  internal::AddStrings(container.args, message.mutable_args());
  internal::AddStrings(container.env, message.mutable_env());
  FillMounts(container.mounts, *message.mutable_mounts());
  message.set_pid(container.pid);
  message.set_created_at(container.created_at);
  message.set_started_at(container.started_at);
  message.set_finished_at(container.finished_at);
  message.set_exit_code(container.exit_code);
}

NriContainer ReadContainer(const wire::Container& message) {
  NriContainer container;
  container.id = message.id();
  container.pod_sandbox_id = message.pod_sandbox_id();
  container.name = message.name();
  if (message.state() >= 0 && message.state() <= static_cast<int>(NriContainerState::kStopped)) {
    container.state = static_cast<NriContainerState>(message.state());
  }
  container.labels.insert(message.labels().begin(), message.labels().end());
  container.annotations.insert(message.annotations().begin(), message.annotations().end());
  container.args = internal::Strings(message.args());
  container.env = internal::Strings(message.env());
  container.mounts = ReadMounts(message.mounts());
  container.pid = message.pid();
  container.created_at = message.created_at();
  container.started_at = message.started_at();
  container.finished_at = message.finished_at();
  container.exit_code = message.exit_code();
  return container;
}

NriPodSandbox ReadPod(const wire::PodSandbox& message) {
  NriPodSandbox pod;
  pod.id = message.id();
  pod.name = message.name();
  pod.uid = message.uid();
  pod.namespace_name = message.namespace_();
  pod.labels.insert(message.labels().begin(), message.labels().end());
  pod.annotations.insert(message.annotations().begin(), message.annotations().end());
  pod.runtime_handler = message.runtime_handler();
  pod.pid = message.pid();
  pod.ips = internal::Strings(message.ips());
  for (const wire::LinuxNamespace& each : message.linux().namespaces()) {
    pod.linux_namespaces[each.type()] = each.path();
  }
  return pod;
}

}  // namespace

std::string EncodeRegistration(const Registration& registration) {
  wire::RegisterPluginRequest message;
  message.set_plugin_name(registration.name);
  message.set_plugin_idx(registration.index);
  message.set_nri_version(registration.version);
  return message.SerializeAsString();
}

Result<Registration> DecodeRegistration(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::RegisterPluginRequest>(bytes, "RegisterPluginRequest"));
  return Registration{message.plugin_name(), message.plugin_idx(), message.nri_version()};
}

std::string EncodeConfiguration(const Configuration& configuration) {
  wire::ConfigureRequest message;
  message.set_config(configuration.config);
  message.set_runtime_name(configuration.runtime_name);
  message.set_runtime_version(configuration.runtime_version);
  message.set_registration_timeout(configuration.registration_timeout_ms);
  message.set_request_timeout(configuration.request_timeout_ms);
  return message.SerializeAsString();
}

Result<Configuration> DecodeConfiguration(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::ConfigureRequest>(bytes, "ConfigureRequest"));
  return Configuration{message.config(), message.runtime_name(), message.runtime_version(),
                       message.registration_timeout(), message.request_timeout()};
}

std::string EncodeEvents(std::int32_t events) {
  wire::ConfigureResponse message;
  message.set_events(events);
  return message.SerializeAsString();
}

Result<std::int32_t> DecodeEvents(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::ConfigureResponse>(bytes, "ConfigureResponse"));
  return message.events();
}

std::string EncodeSynchronization(const Synchronization& synchronization) {
  wire::SynchronizeRequest message;
  for (const NriPodSandbox& pod : synchronization.pods) FillPod(pod, *message.add_pods());
  for (const NriContainer& container : synchronization.containers) {
    FillContainer(container, *message.add_containers());
  }
  message.set_more(synchronization.more);
  return message.SerializeAsString();
}

Result<Synchronization> DecodeSynchronization(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::SynchronizeRequest>(bytes, "SynchronizeRequest"));
  Synchronization synchronization;
  for (const wire::PodSandbox& pod : message.pods()) synchronization.pods.push_back(ReadPod(pod));
  for (const wire::Container& each : message.containers()) {
    synchronization.containers.push_back(ReadContainer(each));
  }
  synchronization.more = message.more();
  return synchronization;
}

std::string EncodeSynchronized(bool more) {
  wire::SynchronizeResponse message;
  message.set_more(more);
  return message.SerializeAsString();
}

std::string EncodePod(const NriPodSandbox& pod) {
  wire::PodRequest message;
  FillPod(pod, *message.mutable_pod());
  return message.SerializeAsString();
}

Result<NriPodSandbox> DecodePod(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::PodRequest>(bytes, "PodSandbox"));
  return ReadPod(message.pod());
}

std::string EncodeContainerEvent(const ContainerEvent& event) {
  wire::ContainerRequest message;
  FillPod(event.pod, *message.mutable_pod());
  FillContainer(event.container, *message.mutable_container());
  return message.SerializeAsString();
}

Result<ContainerEvent> DecodeContainerEvent(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::ContainerRequest>(bytes, "ContainerRequest"));
  return ContainerEvent{ReadPod(message.pod()), ReadContainer(message.container())};
}

std::string EncodeAdjustment(const NriContainerAdjustment& adjustment) {
  wire::CreateContainerResponse message;
  if (adjustment.empty()) return message.SerializeAsString();
  wire::ContainerAdjustment& adjust = *message.mutable_adjust();
  FillTexts(adjustment.annotations, *adjust.mutable_annotations());
  FillMounts(adjustment.mounts, *adjust.mutable_mounts());
  for (const auto& [name, value] : adjustment.env) {
    wire::KeyValue& each = *adjust.add_env();
    each.set_key(internal::ValidUtf8(name));
    each.set_value(internal::ValidUtf8(value));
  }
  return message.SerializeAsString();
}

Result<NriContainerAdjustment> DecodeAdjustment(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::CreateContainerResponse>(
                                           bytes, "CreateContainerResponse"));
  const wire::ContainerAdjustment& adjust = message.adjust();
  NriContainerAdjustment adjustment;
  adjustment.annotations.insert(adjust.annotations().begin(), adjust.annotations().end());
  adjustment.mounts = ReadMounts(adjust.mounts());
  for (const wire::KeyValue& each : adjust.env())
    adjustment.env.emplace_back(each.key(), each.value());
  const auto note = [&](const char* name, bool present) {
    if (present) adjustment.unsupported.emplace_back(name);
  };
  note("hooks", !adjust.hooks().empty());
  note("linux", !adjust.linux().empty());
  note("rlimits", adjust.rlimits_size() > 0);
  note("CDI devices", adjust.cdi_devices_size() > 0);
  note("args", adjust.args_size() > 0);
  note("updates of other containers", message.update_size() > 0);
  note("evictions", message.evict_size() > 0);
  return adjustment;
}

std::string EncodeStateChange(const StateChange& change) {
  wire::StateChangeEvent message;
  message.set_event(change.event);
  FillPod(change.pod, *message.mutable_pod());
  if (change.event > static_cast<int>(NriEvent::kRemovePodSandbox)) {
    FillContainer(change.container, *message.mutable_container());
  }
  return message.SerializeAsString();
}

Result<StateChange> DecodeStateChange(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::StateChangeEvent>(bytes, "StateChangeEvent"));
  return StateChange{message.event(), ReadPod(message.pod()), ReadContainer(message.container())};
}

}  // namespace drakkar::rpc::nri
