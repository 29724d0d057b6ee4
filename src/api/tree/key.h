#pragma once

#include <cstdint>
#include <string_view>

namespace drakkar::api {

// A member's name. Names of the API schema live in one static table, so comparing them is comparing
// pointers; any other name (map keys, free-form documents) lies beside its object with id 0.
struct Key {
  std::uint32_t id;  // index in the table of schema names, 0 for other names
  std::uint32_t size;
  const char* text;
  std::string_view view() const { return {text, size}; }
};

// The schema name with this text, or null.
const Key* FindKey(std::string_view text);

}  // namespace drakkar::api
