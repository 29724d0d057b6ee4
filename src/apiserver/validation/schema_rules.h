#pragma once

#include "api/meta/field_error.h"
#include "api/schema/schema.h"

namespace drakkar::apiserver {

// Checks what the schema says about values: needed, bounds, enumerations, formats, immutability, in
// Kubernetes' words. On update `before` is the current object, and whatever equals it is not looked
// at: what was stored under other rules can stay.
void CheckSchemaRules(api::FieldErrors& errors, const api::FieldPath& path, api::Value object,
                      api::Value before, const api::StructSchema& schema);

// A LabelSelector object: keys, operators and values.
void CheckLabelSelector(api::FieldErrors& errors, const api::FieldPath& path, api::Value selector);

// "25%", "3" or 3, and not negative.
void CheckIntOrPercent(api::FieldErrors& errors, const api::FieldPath& path, api::Value value);

}  // namespace drakkar::apiserver
