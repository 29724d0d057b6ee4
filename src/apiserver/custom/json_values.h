#pragma once

#include <string>
#include <vector>

#include "api/meta/field_error.h"
#include "api/tree/draft.h"
#include "apiserver/custom/json_schema.h"

// Functions that apply a schema to the values of custom resources.
namespace drakkar::apiserver {

// Removes what the schema does not know, and nulls that a default replaces. `unknown` gets the
// paths of removed fields, at most kMaxUnknownFields of kMaxUnknownBytes; may be null. Returns the
// same tree if there is nothing to remove.
inline constexpr std::size_t kMaxUnknownFields = 100;
inline constexpr std::size_t kMaxUnknownBytes = 512;
api::TreePtr PruneUnknown(const api::TreePtr& object, const JsonSchema& schema,
                          std::vector<std::string>* unknown);

// Adds the defaults of missing fields, at most kMaxDefaultBytes; a request that needs more exceeds
// its work budget.
inline constexpr std::size_t kMaxDefaultBytes = std::size_t{8} << 20;
void ApplyJsonDefaults(api::Draft& object, const JsonSchema& schema);

// The errors of a value, with Kubernetes' wording. What equals `before` is not checked again.
void CheckJsonValue(api::FieldErrors& errors, const api::FieldPath& path, api::Value value,
                    api::Value before, const JsonSchema& schema);

// The type of a value in errors: "string", "integer" ...
std::string_view JsonTypeOf(api::Value value);

}  // namespace drakkar::apiserver
