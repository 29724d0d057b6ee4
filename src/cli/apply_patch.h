#pragma once

#include <string>
#include <string_view>

#include "api/schema/schema.h"
#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::cli {

// The manifest with a copy of itself, as one line of JSON, in kLastAppliedAnnotation, which kubectl
// uses too.
api::TreePtr WithLastApplied(api::Value manifest);

// The strategic merge patch that turns `current` (from the server) into `modified` (from
// WithLastApplied). It sets the fields of the manifest, removes fields that the last applied
// manifest had and this one lacks, and leaves everything else alone. "{}" if nothing changes.
Result<std::string> CreateApplyPatch(api::Value current, api::Value modified,
                                     const api::StructSchema& schema);

// The same for a kind without a schema, as a JSON merge patch: lists are replaced.
Result<std::string> CreateMergePatch(api::Value current, api::Value modified);

}  // namespace drakkar::cli
