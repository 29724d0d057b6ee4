#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/watch/watch_cache.h"
#include "base/env/random.h"
#include "base/result/result.h"

namespace drakkar::apiserver {

class Core;

// One that is ready.
struct ServiceEndpoint {
  std::string ip;
  std::int64_t port = 0;
  std::string pod;  // "namespace/name"; "": it is not said to be a pod
};
// Those of the Service's port with this name, in the order of their slices.
std::vector<ServiceEndpoint> FindServiceEndpoints(const Core& core, std::string_view namespace_,
                                                  std::string_view name,
                                                  std::string_view port_name);

// "10.0.0.7:9443" or "[fd00::7]:9443": a ready endpoint of the Service, chosen at random, that
// serves the port with this number. Nothing forwards the addresses of Services, so the API server
// connects to the endpoints themselves.
Result<std::string> ResolveService(const Core& core, std::string_view namespace_,
                                   std::string_view name, std::int64_t port, Random& random);

}  // namespace drakkar::apiserver
