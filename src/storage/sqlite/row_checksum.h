#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "storage/local/row.h"

namespace drakkar::storage {

// The checksum stored with a row: the CRC-32 of id, created, key and value
// (docs/formats/store.md). No value means that the key was deleted.
std::uint32_t RowChecksum(RowId id, Revision created, std::string_view key,
                          std::optional<std::string_view> value);

}  // namespace drakkar::storage
