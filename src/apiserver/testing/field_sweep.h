#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::apiserver {

// A JSON document that a test edits in place. Nulls are not written.
struct JsonNode {
  enum class Type { kNull, kBool, kNumber, kString, kList, kObject };
  Type type = Type::kNull;
  std::string text;  // a string's content, or a number or bool as JSON writes it
  std::vector<JsonNode> items;
  std::vector<std::pair<std::string, JsonNode>> members;

  static JsonNode From(api::Value value);
  static JsonNode String(std::string text);
  void AppendTo(std::string& out) const;
  std::string Json() const;
};

// Tries every small change of a document: each field absent, each string empty, malformed, replaced
// and too long, each number beside its bounds, each list and map empty, with a duplicate and too
// long. After each change `try_change` is called and returns how the changed document is judged;
// then the change is undone.
//
// The result has a line `PATH CHANGE: JUDGEMENT` for each judgement that is not empty. Sizes and
// numbers are tried in ascending order, and only those at which the judgement changes have a line,
// so a limit shows as the first value beyond it.
class FieldSweep {
 public:
  using Judge = std::function<std::string()>;
  // `describe` judges changes other than sizes and numbers, about which more may be said.
  FieldSweep(JsonNode& document, Judge judge, Judge describe)
      : document_(document), judge_(std::move(judge)), describe_(std::move(describe)) {}

  // Only paths below one of `roots` are changed.
  std::string Run(const std::vector<std::string>& roots);

 private:
  void Visit(JsonNode& node, const std::string& path);
  void VisitString(JsonNode& node, const std::string& path);
  void VisitNumber(JsonNode& node, const std::string& path);
  void VisitList(JsonNode& node, const std::string& path);
  void VisitMap(JsonNode& node, const std::string& path);
  void Try(JsonNode& node, const std::string& path, const std::string& change, JsonNode instead);
  void TrySizes(JsonNode& node, const std::string& path, const std::vector<long>& sizes,
                const std::function<JsonNode(long)>& make);

  JsonNode& document_;
  const Judge judge_;
  const Judge describe_;
  std::vector<std::string> roots_;
  std::string lines_;
};

// How many lines of a sweep are in `known`, and the others; a judgement that many changes share is
// listed once, with their number.
std::string NewLines(const std::string& lines, const std::string& known);

}  // namespace drakkar::apiserver
