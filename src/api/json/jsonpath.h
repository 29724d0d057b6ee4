#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::api {

// kubectl's JSONPath templates: text with expressions in braces.
//
//   {.metadata.name}  {.items[*].spec['a','b']}  {.items[0:2]}  {.items[-1:]}  {..name}
//   {.status.conditions[?(@.type=="Ready")].status}  {.metadata.labels.example\.com/x}
//   {range .items[*]}{.metadata.name}{"\t"}{.status.phase}{"\n"}{end}
//
// What is not there gives nothing. Immutable; bounded by the template's size and kMaxJsonPathDepth.
class JsonPath {
 public:
  // Parses a template. Errors state the position.
  static Result<JsonPath> Parse(std::string_view text);
  // Parses a single path; braces and the leading dot are optional: "status.phase", ".a", "{.a}".
  static Result<JsonPath> ParsePath(std::string_view text);

  std::string Print(Value root) const;
  // The values of the template's expressions, in order.
  std::vector<Value> Find(Value root) const;

  struct Node;

 private:
  std::shared_ptr<const std::vector<Node>> nodes_;
};

// Nested templates and filters.
constexpr int kMaxJsonPathDepth = 32;

// A value as kubectl prints it: texts bare, everything else as JSON.
std::string PlainText(Value value);

}  // namespace drakkar::api
