#pragma once

#include <cstdint>
#include <string_view>

namespace drakkar {

// CRC-32 with the IEEE polynomial, as zlib and Go's hash/crc32 compute it. To compute it in parts,
// pass the result for the bytes before as `of_prefix`.
std::uint32_t Crc32(std::string_view bytes, std::uint32_t of_prefix = 0);

// 64-bit FNV-1a: fast, stable across runs and machines; not for adversarial input.
std::uint64_t Fnv1a(std::string_view bytes);

}  // namespace drakkar
