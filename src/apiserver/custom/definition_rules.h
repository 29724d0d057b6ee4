#pragma once

#include "api/meta/field_error.h"
#include "api/tree/value.h"

namespace drakkar::apiserver {

// The rules for CustomResourceDefinitions, with Kubernetes' wording. On update, versions whose
// schema did not change are not checked again. `before` is absent on create.
api::FieldErrors ValidateDefinition(api::Value definition, api::Value before);

}  // namespace drakkar::apiserver
