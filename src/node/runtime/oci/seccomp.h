#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/json/json_writer.h"
#include "base/result/result.h"

namespace drakkar::node {

// The profile "RuntimeDefault": system calls that programs need are allowed, all others fail with
// EPERM. The others change the kernel or the whole machine, reach beyond the container, or are
// useful only for attacks. Each capability in `capabilities` (one bit each) also allows the calls
// that require it; without it the kernel would reject them anyway.
void WriteDefaultSeccomp(std::uint64_t capabilities, api::JsonWriter& json);

// A profile from a file on the node, in the runtime specification's format.
Result<void> WriteSeccompProfile(std::string_view text, api::JsonWriter& json);

}  // namespace drakkar::node
