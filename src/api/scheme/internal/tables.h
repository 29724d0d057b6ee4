#pragma once

#include <cstdint>
#include <span>

#include "api/scheme/scheme.h"

// Constant data that tools/apigen generates from schema/, accessed through
// src/api/scheme/scheme.cc.
namespace drakkar::api::generated {

std::span<const StructSchema> Structs();  // sorted by name
std::span<const KindSchema> Kinds();
std::span<const KindSchema> Bodies();
// Indices of Kinds() followed by Bodies(), sorted by kind, group and version.
std::span<const std::uint16_t> KindOrder();
// Indices of Kinds(), sorted by plural, group and version.
std::span<const std::uint16_t> PluralOrder();

}  // namespace drakkar::api::generated
