#pragma once

#include <cstddef>
#include <string_view>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::api {

struct ReadOptions {
  // Containers within containers; deeper input is refused with "exceeded max depth".
  int max_depth = 100;
  // Longer input is refused before it is looked at. Servers set their own bound on bodies.
  std::size_t max_size_bytes = std::size_t{256} << 20;
  // A member that comes twice is an error, or the last one wins as in Go.
  bool refuse_duplicates = true;
  // Adds " at line 3, column 7" to errors about the text; without it they read as in Go.
  bool position_in_errors = false;
  // The sets of fields in managedFields (fieldsV1) are checked but kept as bytes: they are half of
  // many an object, and few look into them.
  bool opaque_field_sets = false;
};

// Reads one JSON document, strictly as RFC 8259 has it, into a tree; the order of members is kept.
// Whole numbers that fit an int64 are integers, all others doubles (1.0 is a double), and numbers
// beyond a double are refused. Bytes that are no UTF-8 become U+FFFD, as in Go. Errors are
// kInvalidArgument in the words of Go's encoding/json:
//   invalid character '}' looking for beginning of object key string
Result<TreePtr> ParseJson(std::string_view json, const ReadOptions& options = {});

}  // namespace drakkar::api
