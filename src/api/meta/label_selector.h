#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::api {

enum class LabelOperator : std::uint8_t {
  kEquals,        // =
  kDoubleEquals,  // ==, the same except for its text
  kNotEquals,
  kIn,
  kNotIn,
  kExists,
  kDoesNotExist,
  kGreaterThan,
  kLessThan,
};

struct LabelRequirement {
  std::string key;
  LabelOperator op = LabelOperator::kExists;
  std::vector<std::string> values;  // sorted, unique

  // `labels` is an object of texts, or absent.
  bool Matches(Value labels) const;
  std::string ToString() const;
};

// Required labels; all requirements must hold. Immutable.
class LabelSelector {
 public:
  // Matches everything.
  LabelSelector() = default;
  static LabelSelector Nothing();
  // The syntax of URLs and command lines: "env=prod,tier in (a,b),!old". Errors are Kubernetes'.
  static Result<LabelSelector> Parse(std::string_view text);
  // The syntax of objects: {"matchLabels": ..., "matchExpressions": ...}. An absent or null
  // selector matches nothing, an empty one everything.
  static Result<LabelSelector> FromObject(Value selector);

  bool Matches(Value labels) const;
  bool empty() const { return !nothing_ && requirements_.empty(); }  // matches everything
  bool matches_nothing() const { return nothing_; }
  const std::vector<LabelRequirement>& requirements() const { return requirements_; }
  std::string ToString() const;  // canonical

 private:
  explicit LabelSelector(std::vector<LabelRequirement> requirements);
  std::vector<LabelRequirement> requirements_;  // by key
  bool nothing_ = false;
};

std::string_view LabelOperatorText(LabelOperator op);  // "=", "in", "exists", "!" ...
// A LabelSelector object as kubectl prints it: "<none>" if empty, "<error>" if invalid.
std::string FormatLabelSelector(Value selector);

}  // namespace drakkar::api
