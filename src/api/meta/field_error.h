#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/field_path.h"
#include "api/tree/value.h"

namespace drakkar::api {

enum class FieldErrorType : std::uint8_t {
  kNotFound,
  kRequired,
  kDuplicate,
  kInvalid,
  kNotSupported,
  kForbidden,
  kTooLong,
  kTooMany,
  kInternal,
  kTypeInvalid,
};

// The machine-readable name, such as "FieldValueInvalid", as in the causes of a Status.
std::string_view FieldErrorReason(FieldErrorType type);
// The human-readable name, such as "Invalid value".
std::string_view FieldErrorText(FieldErrorType type);

// The value an error is about. Texts are shown in quotes, everything else as is. Values that are
// too large to show are cut.
struct BadValue {
  static constexpr std::size_t kMaxBytes = 16 * 1024;

  enum class Form : std::uint8_t { kOmitted, kText, kLiteral };

  BadValue(std::string_view value);                                          // NOLINT: implicit
  BadValue(const char* value) : BadValue(std::string_view(value)) {}         // NOLINT
  BadValue(const std::string& value) : BadValue(std::string_view(value)) {}  // NOLINT
  BadValue(std::int64_t value) : text(std::to_string(value)), form(Form::kLiteral) {}  // NOLINT
  BadValue(int value) : BadValue(static_cast<std::int64_t>(value)) {}                  // NOLINT
  BadValue(bool value) : text(value ? "true" : "false"), form(Form::kLiteral) {}       // NOLINT
  BadValue(std::nullptr_t) : text("null"), form(Form::kLiteral) {}                     // NOLINT
  // Texts as texts, all other values as JSON.
  BadValue(Value value);  // NOLINT
  static BadValue Literal(std::string text);
  // "Invalid value: <detail>", for values that are too large or too secret to show.
  static BadValue Omitted();

  std::string text;
  Form form;

 private:
  BadValue(std::string value, Form value_form) : text(std::move(value)), form(value_form) {}
};

// One problem with one field, formatted as Kubernetes does.
struct FieldError {
  FieldErrorType type = FieldErrorType::kInvalid;
  std::string field;
  BadValue value = BadValue::Omitted();
  std::string detail;

  static FieldError NotFound(const FieldPath& path, BadValue value);
  static FieldError Required(const FieldPath& path, std::string detail);
  static FieldError Duplicate(const FieldPath& path, BadValue value);
  static FieldError Invalid(const FieldPath& path, BadValue value, std::string detail);
  // supported values: "a", "b" - sorted.
  static FieldError NotSupported(const FieldPath& path, BadValue value,
                                 std::vector<std::string_view> supported);
  static FieldError Forbidden(const FieldPath& path, std::string detail);
  static FieldError TooLong(const FieldPath& path, std::size_t max_bytes);
  static FieldError TooLongCharacters(const FieldPath& path, std::size_t max_characters);
  static FieldError TooMany(const FieldPath& path, std::size_t actual, std::size_t max_items);
  static FieldError Internal(const FieldPath& path, std::string detail);
  static FieldError TypeInvalid(const FieldPath& path, BadValue value, std::string detail);

  std::string Body() const;      // "Invalid value: \"x\": must be ..."
  std::string ToString() const;  // "spec.x: Invalid value: ..."
};

// The errors of one object. Keeps the first ones and counts the rest, because a client can cause as
// many as its request has bytes. Errors that are found after the work budget is exceeded are only
// counted: they may be wrong.
class FieldErrors {
 public:
  // More than are ever shown, because duplicates are shown once.
  static constexpr std::size_t kMaxKept = 400;
  // What an error costs, with its texts, in steps of the work budget.
  static constexpr std::size_t kStepsPerError = 1'000;

  FieldErrors() = default;
  FieldErrors(std::initializer_list<FieldError> errors) {
    for (const FieldError& error : errors) push_back(error);
  }
  void push_back(FieldError error);
  // The same for an error that was found, and charged, earlier.
  void Keep(FieldError error);
  void Append(FieldErrors more);
  // Counts errors without keeping them.
  void Drop(std::size_t count) { dropped_ += count; }

  bool empty() const { return size() == 0; }
  std::size_t size() const { return kept_.size() + dropped_; }
  // Errors that are not kept.
  std::size_t dropped() const { return dropped_; }
  // Those that are kept.
  auto begin() { return kept_.begin(); }
  auto end() { return kept_.end(); }
  auto begin() const { return kept_.begin(); }
  auto end() const { return kept_.end(); }
  FieldError& operator[](std::size_t index) { return kept_[index]; }
  const FieldError& operator[](std::size_t index) const { return kept_[index]; }

 private:
  std::vector<FieldError> kept_;
  std::size_t dropped_ = 0;
};

// A single error as is, several as "[a, b]"; duplicates are shown once.
std::string JoinFieldErrors(const FieldErrors& errors);

}  // namespace drakkar::api
