#pragma once

#include <cstdint>
#include <string_view>

namespace drakkar::api {

// A member's name. Schema names live in one static table and are compared by pointer. All other
// names (map keys, free-form documents) are stored with their object and have id 0.
struct Key {
  std::uint32_t id;  // index in the table of schema names, 0 for other names
  std::uint32_t size;
  const char* text;
  std::string_view view() const { return {text, size}; }
};

// The schema name with this text, or null.
const Key* FindKey(std::string_view text);

}  // namespace drakkar::api
