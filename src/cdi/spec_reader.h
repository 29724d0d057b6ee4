#pragma once

#include <string_view>

#include "base/result/result.h"
#include "cdi/document.h"
#include "cdi/spec.h"

namespace drakkar::cdi {

// Reads and validates a spec. Strict: an unknown field, a wrong type or a number out of range is
// an error that names the place ("devices[0].containerEdits.mounts[1]"). null reads as absent.
Result<Spec> ReadSpec(const Document& document);
Result<Spec> ReadSpecJson(std::string_view text);
Result<Spec> ReadSpecYaml(std::string_view text);

}  // namespace drakkar::cdi
