#pragma once

#include <string>
#include <string_view>

#include "api/tree/value.h"

namespace drakkar::api {

struct WriteOptions {
  // Spaces per level; 0 writes everything on one line without spaces.
  int indent = 0;
  // Write <, > and & as \u003c and so on, as Go's json.Marshal does.
  bool escape_html = true;
  // Sort members by name (bytes); otherwise keep the tree's order.
  bool sort_members = false;
  // Go ends encoder output with a line feed.
  bool final_newline = false;
};

// JSON as Go's encoding/json writes it: U+2028 and U+2029 are escaped, doubles take their shortest
// form, and raw values are written byte for byte (only indented output reformats them). An absent
// value gives "null".
std::string WriteJson(Value value, const WriteOptions& options = {});
void AppendJson(std::string& out, Value value, const WriteOptions& options = {});
void AppendJsonString(std::string& out, std::string_view text, bool escape_html = true);
void AppendJsonDouble(std::string& out, double value);

}  // namespace drakkar::api
