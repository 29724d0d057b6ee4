#pragma once

#include <string>
#include <vector>

#include "base/result/result.h"
#include "rpc/nri/nri.h"

namespace drakkar::rpc::nri {

inline constexpr char kRuntimeService[] = "/nri.pkg.api.v1alpha1.Runtime/";
inline constexpr char kPluginService[] = "/nri.pkg.api.v1alpha1.Plugin/";

struct Registration {
  std::string name;
  std::string index;
  std::string version;
};
std::string EncodeRegistration(const Registration& registration);
Result<Registration> DecodeRegistration(const std::string& bytes);

struct Configuration {
  std::string config;
  std::string runtime_name;
  std::string runtime_version;
  std::int64_t registration_timeout_ms = 0;
  std::int64_t request_timeout_ms = 0;
};
std::string EncodeConfiguration(const Configuration& configuration);
Result<Configuration> DecodeConfiguration(const std::string& bytes);
std::string EncodeEvents(std::int32_t events);
Result<std::int32_t> DecodeEvents(const std::string& bytes);

struct Synchronization {
  std::vector<NriPodSandbox> pods;
  std::vector<NriContainer> containers;
  bool more = false;
};
std::string EncodeSynchronization(const Synchronization& synchronization);
Result<Synchronization> DecodeSynchronization(const std::string& bytes);

struct Synchronized {
  std::vector<NriContainerUpdate> updates;
  bool more = false;
};
std::string EncodeSynchronized(const Synchronized& synchronized);
Result<Synchronized> DecodeSynchronized(const std::string& bytes);

struct PodEvent {
  NriPodSandbox pod;
  NriResources resources;  // of kUpdatePodSandbox
  NriResources overhead;
};
std::string EncodePodEvent(const PodEvent& event);
Result<PodEvent> DecodePodEvent(const std::string& bytes);

struct ContainerEvent {
  NriPodSandbox pod;
  NriContainer container;
  NriResources resources;  // of kUpdateContainer: the new ones
};
std::string EncodeContainerEvent(const ContainerEvent& event);
Result<ContainerEvent> DecodeContainerEvent(const std::string& bytes);

// The answers to kCreateContainer, kUpdateContainer and kStopContainer; those to other events are
// empty.
std::string EncodeAnswer(NriEvent event, const NriAnswer& answer);
Result<NriAnswer> DecodeAnswer(NriEvent event, const std::string& bytes);

// What a plugin asks for on its own.
struct UpdateRequest {
  std::vector<NriContainerUpdate> updates;
  std::vector<NriEviction> evictions;
};
std::string EncodeUpdateRequest(const UpdateRequest& request);
Result<UpdateRequest> DecodeUpdateRequest(const std::string& bytes);
std::string EncodeFailedUpdates(const std::vector<NriContainerUpdate>& failed);
Result<std::vector<NriContainerUpdate>> DecodeFailedUpdates(const std::string& bytes);

std::string EncodeValidation(const NriValidation& validation);
Result<NriValidation> DecodeValidation(const std::string& bytes);
struct Verdict {
  bool reject = false;
  std::string reason;
};
std::string EncodeVerdict(const Verdict& verdict);
Result<Verdict> DecodeVerdict(const std::string& bytes);

struct StateChange {
  std::int32_t event = 0;
  NriPodSandbox pod;
  NriContainer container;  // container events only
};
std::string EncodeStateChange(const StateChange& change);
Result<StateChange> DecodeStateChange(const std::string& bytes);

}  // namespace drakkar::rpc::nri
