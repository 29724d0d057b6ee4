#include "rpc/nri/nri_codec.h"

#include <rpc_proto/nri.pb.h>

#include <algorithm>

#include "base/text/text.h"
#include "rpc/internal/codec.h"

namespace drakkar::rpc {

std::string_view NriEventName(NriEvent event) {
  switch (event) {
    case NriEvent::kRunPodSandbox:
      return "RunPodSandbox";
    case NriEvent::kStopPodSandbox:
      return "StopPodSandbox";
    case NriEvent::kRemovePodSandbox:
      return "RemovePodSandbox";
  }
  return "";
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
  const bool digits = index.size() == 2 && std::all_of(index.begin(), index.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
  if (!digits) {
    return InvalidArgument(StrCat("invalid plugin index ", Quote(index), ", must be 2 digits"));
  }
  return Ok();
}

}  // namespace drakkar::rpc

namespace drakkar::rpc::nri {
namespace {

namespace wire = nri_wire;

void FillPod(const NriPodSandbox& pod, wire::PodSandbox& message) {
  message.set_id(pod.id);
  message.set_name(pod.name);
  message.set_uid(pod.uid);
  message.set_namespace_(pod.namespace_name);
  for (const auto& [name, value] : pod.labels) {
    (*message.mutable_labels())[internal::ValidUtf8(name)] = internal::ValidUtf8(value);
  }
  for (const auto& [name, value] : pod.annotations) {
    (*message.mutable_annotations())[internal::ValidUtf8(name)] = internal::ValidUtf8(value);
  }
  message.set_runtime_handler(pod.runtime_handler);
  message.set_pid(pod.pid);
  internal::AddStrings(pod.ips, message.mutable_ips());
  for (const auto& [type, path] : pod.linux_namespaces) {
    wire::LinuxNamespace* each = message.mutable_linux()->add_namespaces();
    each->set_type(type);
    each->set_path(path);
  }
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
  message.set_more(synchronization.more);
  return message.SerializeAsString();
}

Result<Synchronization> DecodeSynchronization(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::SynchronizeRequest>(bytes, "SynchronizeRequest"));
  Synchronization synchronization;
  for (const wire::PodSandbox& pod : message.pods()) synchronization.pods.push_back(ReadPod(pod));
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

std::string EncodeStateChange(const StateChange& change) {
  wire::StateChangeEvent message;
  message.set_event(change.event);
  FillPod(change.pod, *message.mutable_pod());
  return message.SerializeAsString();
}

Result<StateChange> DecodeStateChange(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::StateChangeEvent>(bytes, "StateChangeEvent"));
  return StateChange{message.event(), ReadPod(message.pod())};
}

}  // namespace drakkar::rpc::nri
