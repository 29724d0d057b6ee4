#pragma once

#include <map>
#include <string>

#include "api/meta/object.h"
#include "client/informer.h"

namespace drakkar::node {

using Variables = std::map<std::string, std::string>;

// The variables that tell containers where a Service is: NAME_SERVICE_HOST, NAME_SERVICE_PORT and
// Docker's link variables. None for a Service without a cluster IP.
void AddServiceVariables(api::Value service, Variables& variables);

// As AddServiceVariables for the Service "kubernetes", which here is the API server itself: there
// is no service network that its cluster IP would be reached through.
Variables ApiServerVariables(const std::string& host, const std::string& port);

// Those of a pod: `api_server` always, and those of the Services in its namespace unless it has
// enableServiceLinks false. `services` may be null.
Variables PodServiceVariables(api::Value pod, const Variables& api_server,
                              const client::Informer* services);

}  // namespace drakkar::node
