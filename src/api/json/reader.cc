#include "api/json/reader.h"

#include "api/json/cursor.h"
#include "api/json/position.h"
#include "base/text/text.h"

namespace drakkar::api {

std::string DescribePosition(std::string_view text, std::size_t offset) {
  std::size_t line = 1;
  std::size_t column = 1;
  for (const char c : text.substr(0, offset)) {
    ++column;
    if (c == '\n') {
      ++line;
      column = 1;
    }
  }
  return StrCat("line ", line, ", column ", column);
}

Result<TreePtr> ParseJson(std::string_view json, const ReadOptions& options) {
  if (json.size() > options.max_size_bytes) {
    return InvalidArgument(StrCat("the JSON text has ", json.size(),
                                  " bytes, more than the limit of ", options.max_size_bytes));
  }
  Arena arena;
  JsonCursor cursor(json, arena, options.max_depth);
  if (options.opaque_field_sets) cursor.KeepFieldSets();
  Node root;
  const auto duplicates = options.refuse_duplicates ? JsonCursor::Duplicates::kRefuse
                                                    : JsonCursor::Duplicates::kLastWins;
  if (!cursor.ReadValue(root, duplicates) || !cursor.ExpectEnd()) {
    if (!options.position_in_errors) return InvalidArgument(cursor.error());
    return InvalidArgument(
        StrCat(cursor.error(), " at ", DescribePosition(json, cursor.error_offset())));
  }
  return FreezeNode(root);
}

}  // namespace drakkar::api
