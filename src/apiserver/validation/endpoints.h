#pragma once

#include "api/meta/field_error.h"
#include "api/tree/value.h"

// Endpoints and EndpointSlices. On update, `before` is the current object: endpoints that have not
// changed are not checked again.
namespace drakkar::apiserver {

api::FieldErrors ValidateEndpoints(api::Value endpoints, api::Value before);
api::FieldErrors ValidateEndpointSlice(api::Value slice, api::Value before);

}  // namespace drakkar::apiserver
