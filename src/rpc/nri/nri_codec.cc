#include "rpc/nri/nri_codec.h"

#include <rpc_proto/nri.pb.h>

#include <algorithm>

#include "base/text/text.h"
#include "rpc/internal/codec.h"
#include "rpc/nri/nri_objects.h"

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

template <typename Repeated>
void FillUpdates(const std::vector<NriContainerUpdate>& updates, Repeated* message) {
  for (const NriContainerUpdate& update : updates) Fill(update, *message->Add());
}

template <typename Repeated>
std::vector<NriContainerUpdate> ReadUpdates(const Repeated& message) {
  std::vector<NriContainerUpdate> updates;
  for (const wire::ContainerUpdate& each : message) updates.push_back(Read(each));
  return updates;
}

template <typename Repeated>
void FillEvictions(const std::vector<NriEviction>& evictions, Repeated* message) {
  for (const NriEviction& eviction : evictions) {
    wire::ContainerEviction& each = *message->Add();
    each.set_container_id(internal::ValidUtf8(eviction.container_id));
    each.set_reason(internal::ValidUtf8(eviction.reason));
  }
}

template <typename Repeated>
std::vector<NriEviction> ReadEvictions(const Repeated& message) {
  std::vector<NriEviction> evictions;
  for (const wire::ContainerEviction& each : message) {
    evictions.push_back({each.container_id(), each.reason()});
  }
  return evictions;
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
  for (const NriPodSandbox& pod : synchronization.pods) Fill(pod, *message.add_pods());
  for (const NriContainer& container : synchronization.containers) {
    Fill(container, *message.add_containers());
  }
  message.set_more(synchronization.more);
  return message.SerializeAsString();
}

Result<Synchronization> DecodeSynchronization(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::SynchronizeRequest>(bytes, "SynchronizeRequest"));
  Synchronization synchronization;
  for (const wire::PodSandbox& pod : message.pods()) synchronization.pods.push_back(Read(pod));
  for (const wire::Container& each : message.containers()) {
    synchronization.containers.push_back(Read(each));
  }
  synchronization.more = message.more();
  return synchronization;
}

std::string EncodeSynchronized(const Synchronized& synchronized) {
  wire::SynchronizeResponse message;
  FillUpdates(synchronized.updates, message.mutable_update());
  message.set_more(synchronized.more);
  return message.SerializeAsString();
}

Result<Synchronized> DecodeSynchronized(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::SynchronizeResponse>(bytes, "SynchronizeResponse"));
  return Synchronized{ReadUpdates(message.update()), message.more()};
}

std::string EncodePodEvent(const PodEvent& event) {
  wire::PodRequest message;
  Fill(event.pod, *message.mutable_pod());
  if (!event.resources.empty()) Fill(event.resources, *message.mutable_linux_resources());
  if (!event.overhead.empty()) Fill(event.overhead, *message.mutable_overhead_linux_resources());
  return message.SerializeAsString();
}

Result<PodEvent> DecodePodEvent(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::PodRequest>(bytes, "PodSandbox"));
  return PodEvent{Read(message.pod()), Read(message.linux_resources()),
                  Read(message.overhead_linux_resources())};
}

std::string EncodeContainerEvent(const ContainerEvent& event) {
  wire::ContainerRequest message;
  Fill(event.pod, *message.mutable_pod());
  Fill(event.container, *message.mutable_container());
  if (!event.resources.empty()) Fill(event.resources, *message.mutable_linux_resources());
  return message.SerializeAsString();
}

Result<ContainerEvent> DecodeContainerEvent(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::ContainerRequest>(bytes, "ContainerRequest"));
  return ContainerEvent{Read(message.pod()), Read(message.container()),
                        Read(message.linux_resources())};
}

std::string EncodeAnswer(NriEvent event, const NriAnswer& answer) {
  if (event == NriEvent::kCreateContainer) {
    wire::CreateContainerResponse message;
    if (!answer.adjustment.empty()) Fill(answer.adjustment, *message.mutable_adjust());
    FillUpdates(answer.updates, message.mutable_update());
    FillEvictions(answer.evictions, message.mutable_evict());
    return message.SerializeAsString();
  }
  if (event == NriEvent::kUpdateContainer) {
    wire::UpdateContainerResponse message;
    FillUpdates(answer.updates, message.mutable_update());
    FillEvictions(answer.evictions, message.mutable_evict());
    return message.SerializeAsString();
  }
  if (event == NriEvent::kStopContainer) {
    wire::StopContainerResponse message;
    FillUpdates(answer.updates, message.mutable_update());
    return message.SerializeAsString();
  }
  return {};
}

Result<NriAnswer> DecodeAnswer(NriEvent event, const std::string& bytes) {
  NriAnswer answer;
  if (event == NriEvent::kCreateContainer) {
    ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::CreateContainerResponse>(
                                             bytes, "CreateContainerResponse"));
    answer.adjustment = Read(message.adjust());
    answer.updates = ReadUpdates(message.update());
    answer.evictions = ReadEvictions(message.evict());
  } else if (event == NriEvent::kUpdateContainer) {
    ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::UpdateContainerResponse>(
                                             bytes, "UpdateContainerResponse"));
    answer.updates = ReadUpdates(message.update());
    answer.evictions = ReadEvictions(message.evict());
  } else if (event == NriEvent::kStopContainer) {
    ASSIGN_OR_RETURN(const auto message,
                     internal::Parse<wire::StopContainerResponse>(bytes, "StopContainerResponse"));
    answer.updates = ReadUpdates(message.update());
  }
  return answer;
}

std::string EncodeUpdateRequest(const UpdateRequest& request) {
  wire::UpdateContainersRequest message;
  FillUpdates(request.updates, message.mutable_update());
  FillEvictions(request.evictions, message.mutable_evict());
  return message.SerializeAsString();
}

Result<UpdateRequest> DecodeUpdateRequest(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::UpdateContainersRequest>(
                                           bytes, "UpdateContainersRequest"));
  return UpdateRequest{ReadUpdates(message.update()), ReadEvictions(message.evict())};
}

std::string EncodeFailedUpdates(const std::vector<NriContainerUpdate>& failed) {
  wire::UpdateContainersResponse message;
  FillUpdates(failed, message.mutable_failed());
  return message.SerializeAsString();
}

Result<std::vector<NriContainerUpdate>> DecodeFailedUpdates(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::UpdateContainersResponse>(
                                           bytes, "UpdateContainersResponse"));
  return ReadUpdates(message.failed());
}

std::string EncodeValidation(const NriValidation& validation) {
  wire::ValidateContainerAdjustmentRequest message;
  Fill(validation.pod, *message.mutable_pod());
  Fill(validation.container, *message.mutable_container());
  Fill(validation.adjustment, *message.mutable_adjust());
  FillUpdates(validation.updates, message.mutable_update());
  // Plugins read the owners without checking for them.
  auto& owners_by_container = *message.mutable_owners()->mutable_owners();
  for (const auto& [id, owners] : validation.owners) {
    wire::FieldOwners& fields = owners_by_container[id];
    for (const auto& [field, plugin] : owners.simple) {
      (*fields.mutable_simple())[static_cast<std::int32_t>(field)] = plugin;
    }
    for (const auto& [field, entries] : owners.compound) {
      auto& each = (*fields.mutable_compound())[static_cast<std::int32_t>(field)];
      for (const auto& [key, plugin] : entries) {
        (*each.mutable_owners())[internal::ValidUtf8(key)] = plugin;
      }
    }
  }
  for (const NriPluginInstance& plugin : validation.plugins) {
    wire::PluginInstance& each = *message.add_plugins();
    each.set_name(plugin.name);
    each.set_index(plugin.index);
  }
  return message.SerializeAsString();
}

Result<NriValidation> DecodeValidation(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::ValidateContainerAdjustmentRequest>(
                                           bytes, "ValidateContainerAdjustmentRequest"));
  NriValidation validation{Read(message.pod()),
                           Read(message.container()),
                           Read(message.adjust()),
                           ReadUpdates(message.update()),
                           {},
                           {}};
  for (const auto& [id, fields] : message.owners().owners()) {
    NriFieldOwners& owners = validation.owners[id];
    for (const auto& [field, plugin] : fields.simple()) {
      owners.simple[static_cast<NriField>(field)] = plugin;
    }
    for (const auto& [field, entries] : fields.compound()) {
      owners.compound[static_cast<NriField>(field)].insert(entries.owners().begin(),
                                                           entries.owners().end());
    }
  }
  for (const wire::PluginInstance& each : message.plugins()) {
    validation.plugins.push_back({each.name(), each.index()});
  }
  return validation;
}

std::string EncodeVerdict(const Verdict& verdict) {
  wire::ValidateContainerAdjustmentResponse message;
  message.set_reject(verdict.reject);
  message.set_reason(internal::ValidUtf8(verdict.reason));
  return message.SerializeAsString();
}

Result<Verdict> DecodeVerdict(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::ValidateContainerAdjustmentResponse>(
                                           bytes, "ValidateContainerAdjustmentResponse"));
  return Verdict{message.reject(), message.reason()};
}

std::string EncodeStateChange(const StateChange& change) {
  wire::StateChangeEvent message;
  message.set_event(change.event);
  Fill(change.pod, *message.mutable_pod());
  if (!IsPodEvent(static_cast<NriEvent>(change.event))) {
    Fill(change.container, *message.mutable_container());
  }
  return message.SerializeAsString();
}

Result<StateChange> DecodeStateChange(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::StateChangeEvent>(bytes, "StateChangeEvent"));
  return StateChange{message.event(), Read(message.pod()), Read(message.container())};
}

}  // namespace drakkar::rpc::nri
