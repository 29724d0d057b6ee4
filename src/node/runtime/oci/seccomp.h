#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/json/json_writer.h"
#include "base/result/result.h"

namespace drakkar::node {

// The profile "RuntimeDefault": calls that programs need are allowed, all others fail with EPERM.
// What is left out changes the kernel or the machine as a whole, reaches beyond the container, or
// has no use but attacks. `capabilities` (a bit each) open the calls they are about, which the
// kernel would refuse without them anyway.
void WriteDefaultSeccomp(std::uint64_t capabilities, api::JsonWriter& json);

// A profile from a file on the node, in the runtime specification's format.
Result<void> WriteSeccompProfile(std::string_view text, api::JsonWriter& json);

}  // namespace drakkar::node
