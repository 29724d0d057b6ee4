#pragma once

#include <cstdint>

#include "api/schema/schema.h"

namespace drakkar::api {

// The message below `outer` (0: the struct's own) that leads to `field`; 0 if none does.
inline std::uint32_t NextOuter(const FieldSchema& field, std::uint32_t outer) {
  constexpr std::uint32_t kByte = 0xff;
  const std::uint32_t path = field.protobuf_outer;
  if (path == outer) return 0;
  if (outer == 0) return path & kByte;
  return outer <= kByte && (path & kByte) == outer ? path : 0;
}

// Its number on the wire.
inline std::uint32_t OuterNumber(std::uint32_t outer) {
  constexpr std::uint32_t kByte = 0xff;
  return outer <= kByte ? outer : outer >> 8U;
}

}  // namespace drakkar::api
