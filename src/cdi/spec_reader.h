#pragma once

#include <cstddef>
#include <string_view>

#include "base/result/result.h"
#include "cdi/spec.h"

namespace drakkar::cdi {

// Larger spec files are rejected.
constexpr std::size_t kMaxSpecBytes = 4u << 20;

// Reads and validates a spec. Strict: a duplicate key or text that is not UTF-8 is an error that
// includes line and column if possible; an unknown field, a wrong type or a number out of range is
// an error that includes the path ("devices[0].containerEdits.mounts[1]"). null counts as absent.
Result<Spec> ReadSpecJson(std::string_view text);
// Reads the first document of a YAML stream, in the dialect of Kubernetes' tools (api/codec). Go's
// CDI library writes this format by default.
Result<Spec> ReadSpecYaml(std::string_view text);

}  // namespace drakkar::cdi
