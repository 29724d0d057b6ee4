#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rpc/dra/dra.h"
#include "rpc/health/health.h"
#include "rpc/podresources/podresources.h"
#include "rpc/registration/registration.h"
#include "rpc/transport/transport.h"

namespace drakkar::rpc {

// The services of one socket; null: not served. The implementations must outlive the server.
struct ServiceSet {
  RegistrationHandler* registration = nullptr;
  DraPluginService* dra = nullptr;
  std::vector<DraVersion> dra_versions = {DraVersion::kV1, DraVersion::kV1beta1};
  HealthSource* health = nullptr;
  std::vector<HealthService> health_services = {HealthService::kV1, HealthService::kV1alpha1,
                                                HealthService::kNodeHealth};
  PodResourcesProvider* pod_resources = nullptr;
};

// A server, not yet started.
std::unique_ptr<Server> CreateServer(Transport& transport, std::string socket_path,
                                     const ServiceSet& services);

}  // namespace drakkar::rpc
