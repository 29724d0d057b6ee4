#pragma once

#include <string>
#include <string_view>

#include "api/schema/schema.h"
#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::cli {

// The manifest with itself, as one line of JSON, in kLastAppliedAnnotation, which kubectl uses too.
api::TreePtr WithLastApplied(api::Value manifest);

// The strategic merge patch that brings `current` (as the server has it) to `modified` (the
// manifest made by WithLastApplied): fields of the manifest are set, fields that were in the
// manifest applied last and are no more are removed, everything else stays. "{}" if nothing is to
// be done.
Result<std::string> CreateApplyPatch(api::Value current, api::Value modified,
                                     const api::StructSchema& schema);

}  // namespace drakkar::cli
