#include "rpc/server/service_set.h"

#include <utility>

#include "rpc/dra/dra_service.h"
#include "rpc/health/health_service.h"
#include "rpc/podresources/podresources_service.h"
#include "rpc/registration/registration_service.h"

namespace drakkar::rpc {

std::unique_ptr<Server> CreateServer(Transport& transport, std::string socket_path,
                                     const ServiceSet& services) {
  std::vector<std::unique_ptr<RpcService>> made;
  if (services.registration != nullptr) {
    made.push_back(MakeRegistrationService(*services.registration));
  }
  if (services.dra != nullptr) {
    made.push_back(MakeDraService(*services.dra, services.dra_versions));
  }
  if (services.health != nullptr) {
    made.push_back(MakeHealthService(*services.health, services.health_services));
  }
  if (services.pod_resources != nullptr) {
    made.push_back(MakePodResourcesService(*services.pod_resources));
  }
  return transport.CreateServer(std::move(socket_path), std::move(made));
}

}  // namespace drakkar::rpc
