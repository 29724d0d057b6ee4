#pragma once

#include <cstdint>
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

// The value an error is about. Texts are shown in quotes, everything else as is.
struct BadValue {
  enum class Form : std::uint8_t { kOmitted, kText, kLiteral };

  BadValue(std::string_view value) : text(value), form(Form::kText) {}    // NOLINT: implicit
  BadValue(const char* value) : text(value), form(Form::kText) {}         // NOLINT
  BadValue(const std::string& value) : text(value), form(Form::kText) {}  // NOLINT
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
using FieldErrors = std::vector<FieldError>;

// A single error as is, several as "[a, b]"; duplicates are shown once.
std::string JoinFieldErrors(const FieldErrors& errors);

}  // namespace drakkar::api
