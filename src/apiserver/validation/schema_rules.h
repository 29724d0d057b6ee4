#pragma once

#include "api/meta/field_error.h"
#include "api/schema/schema.h"

namespace drakkar::apiserver {

// Checks values against the rules in the schema: required fields, bounds, enumerations, formats,
// immutability. Errors are worded as in Kubernetes. On update, `before` is the current object, and
// values that equal it are not checked, so that objects stored under other rules remain valid.
void CheckSchemaRules(api::FieldErrors& errors, const api::FieldPath& path, api::Value object,
                      api::Value before, const api::StructSchema& schema);

// A LabelSelector object: keys, operators and values.
void CheckLabelSelector(api::FieldErrors& errors, const api::FieldPath& path, api::Value selector);

// "25%", "3" or 3, and not negative.
void CheckIntOrPercent(api::FieldErrors& errors, const api::FieldPath& path, api::Value value);

}  // namespace drakkar::apiserver
