#pragma once

#include <map>
#include <string>

#include "api/meta/object.h"
#include "client/informer.h"

namespace drakkar::node {

using Variables = std::map<std::string, std::string>;

// The environment variables of a Service: NAME_SERVICE_HOST, NAME_SERVICE_PORT and Docker's link
// variables. None for a Service without a cluster IP.
void AddServiceVariables(api::Value service, Variables& variables);

// The variables of the Service "kubernetes", pointing to the API server itself: there is no service
// network to route its cluster IP.
Variables ApiServerVariables(const std::string& host, const std::string& port);

// All service variables of a pod: `api_server` always, and the Services in its namespace unless
// enableServiceLinks is false. `services` may be null.
Variables PodServiceVariables(api::Value pod, const Variables& api_server,
                              const client::Informer* services);

}  // namespace drakkar::node
