#pragma once

#include <cstddef>
#include <string_view>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::api {

struct ReadOptions {
  // Nesting limit; deeper input is rejected with "exceeded max depth".
  int max_depth = 100;
  // Longer input is rejected unread. Servers set their own limit for bodies.
  std::size_t max_size_bytes = std::size_t{256} << 20;
  // If set, a duplicate member is an error; otherwise the last one counts, as in Go.
  bool refuse_duplicates = true;
  // Appends " at line 3, column 7" to syntax errors; without it they read as in Go.
  bool position_in_errors = false;
  // Validates the field sets in managedFields (fieldsV1) but keeps them as bytes: they are often
  // half of an object and rarely needed.
  bool opaque_field_sets = false;
};

// Parses one JSON document (strict RFC 8259) into a tree that keeps the order of members. Integers
// that fit an int64 stay integers, other numbers become doubles (1.0 is a double), and numbers out
// of a double's range are rejected. Bytes that are not valid UTF-8 become U+FFFD, as in Go. Errors
// are kInvalidArgument in the words of Go's encoding/json:
//   invalid character '}' looking for beginning of object key string
Result<TreePtr> ParseJson(std::string_view json, const ReadOptions& options = {});

}  // namespace drakkar::api
