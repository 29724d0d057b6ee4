#pragma once

#include <string_view>

#include "api/meta/field_error.h"
#include "api/tree/value.h"

// Services, except what depends on other Services: which addresses and ports are free.
namespace drakkar::apiserver {

// The server's own Service, whose address is the server's.
bool IsServersOwn(api::Value service);
bool IsHeadless(api::Value spec);
// Whether the type has node ports.
bool IsExposed(std::string_view type);
// Whether it has traffic from outside: through node ports, a load balancer or external addresses.
bool IsExternallyAccessible(api::Value spec);
// Whether load balancers ask the nodes which of them have endpoints.
bool NeedsHealthCheck(api::Value spec);

api::FieldErrors ValidateService(api::Value service, api::Value before);
api::FieldErrors ValidateServiceStatus(api::Value service);

}  // namespace drakkar::apiserver
