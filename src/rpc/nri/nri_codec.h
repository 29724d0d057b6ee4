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
std::string EncodeSynchronized(bool more);

std::string EncodePod(const NriPodSandbox& pod);
Result<NriPodSandbox> DecodePod(const std::string& bytes);

struct ContainerEvent {
  NriPodSandbox pod;
  NriContainer container;
};
std::string EncodeContainerEvent(const ContainerEvent& event);
Result<ContainerEvent> DecodeContainerEvent(const std::string& bytes);
std::string EncodeAdjustment(const NriContainerAdjustment& adjustment);
Result<NriContainerAdjustment> DecodeAdjustment(const std::string& bytes);

struct StateChange {
  std::int32_t event = 0;
  NriPodSandbox pod;
  NriContainer container;  // container events only
};
std::string EncodeStateChange(const StateChange& change);
Result<StateChange> DecodeStateChange(const std::string& bytes);

}  // namespace drakkar::rpc::nri
