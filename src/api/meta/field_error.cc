#include "api/meta/field_error.h"

#include <algorithm>
#include <unordered_set>

#include "api/json/writer.h"
#include "api/meta/shown_errors.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::api {

void FieldPath::Append(std::string_view part) {
  if (long_.empty() && size_ + part.size() <= short_.size()) {
    if (!part.empty()) std::memcpy(short_.data() + size_, part.data(), part.size());
  } else {
    if (long_.empty()) long_.assign(short_.data(), size_);
    // A path contains the keys of maps, which clients choose, and is copied for every field below.
    WorkBudget::Charge(long_.size() + part.size());
    if (WorkBudget::IsExceeded()) return;
    long_ += part;
  }
  size_ += part.size();
}

FieldPath FieldPath::Child(std::string_view name) const {
  FieldPath child(*this);
  if (!child.empty()) child.Append(".");
  child.Append(name);
  return child;
}

FieldPath FieldPath::Index(std::size_t index) const {
  return Key(std::to_string(index));
}

FieldPath FieldPath::Key(std::string_view key) const {
  FieldPath member(*this);
  member.Append("[");
  member.Append(key);
  member.Append("]");
  return member;
}

std::string_view FieldErrorReason(FieldErrorType type) {
  switch (type) {
    case FieldErrorType::kNotFound:
      return "FieldValueNotFound";
    case FieldErrorType::kRequired:
      return "FieldValueRequired";
    case FieldErrorType::kDuplicate:
      return "FieldValueDuplicate";
    case FieldErrorType::kInvalid:
      return "FieldValueInvalid";
    case FieldErrorType::kNotSupported:
      return "FieldValueNotSupported";
    case FieldErrorType::kForbidden:
      return "FieldValueForbidden";
    case FieldErrorType::kTooLong:
      return "FieldValueTooLong";
    case FieldErrorType::kTooMany:
      return "FieldValueTooMany";
    case FieldErrorType::kInternal:
      return "InternalError";
    case FieldErrorType::kTypeInvalid:
      return "FieldValueTypeInvalid";
  }
  return "";
}

std::string_view FieldErrorText(FieldErrorType type) {
  switch (type) {
    case FieldErrorType::kNotFound:
      return "Not found";
    case FieldErrorType::kRequired:
      return "Required value";
    case FieldErrorType::kDuplicate:
      return "Duplicate value";
    case FieldErrorType::kInvalid:
      return "Invalid value";
    case FieldErrorType::kNotSupported:
      return "Unsupported value";
    case FieldErrorType::kForbidden:
      return "Forbidden";
    case FieldErrorType::kTooLong:
      return "Too long";
    case FieldErrorType::kTooMany:
      return "Too many";
    case FieldErrorType::kInternal:
      return "Internal error";
    case FieldErrorType::kTypeInvalid:
      return "Invalid value";
  }
  return "";
}

namespace {

constexpr std::string_view kCut = "...";

std::string Cut(std::string_view text) {
  WorkBudget::Charge(text.size() / 16);
  if (text.size() <= BadValue::kMaxBytes) return std::string(text);
  return StrCat(text.substr(0, BadValue::kMaxBytes), kCut);
}

// Nobody sees the errors that are found once the budget is exceeded.
std::string ShownValue(Value value) {
  if (WorkBudget::IsExceeded()) return {};
  if (value.is_string()) return Cut(value.str());
  std::string json = WriteJson(value);
  WorkBudget::Charge(json.size());
  if (json.size() > BadValue::kMaxBytes) {
    json.resize(BadValue::kMaxBytes);
    json += kCut;
  }
  return json;
}

}  // namespace

BadValue::BadValue(std::string_view value)
    : text(WorkBudget::IsExceeded() ? std::string() : Cut(value)), form(Form::kText) {}

BadValue::BadValue(Value value)
    : text(ShownValue(value)), form(value.is_string() ? Form::kText : Form::kLiteral) {}

void FieldErrors::push_back(FieldError error) {
  WorkBudget::Charge(kStepsPerError);
  if (WorkBudget::IsExceeded()) {
    ++dropped_;
  } else {
    Keep(std::move(error));
  }
}

void FieldErrors::Keep(FieldError error) {
  if (kept_.size() < kMaxKept) {
    kept_.push_back(std::move(error));
  } else {
    ++dropped_;
  }
}

void FieldErrors::Append(FieldErrors more) {
  for (FieldError& error : more.kept_) Keep(std::move(error));
  dropped_ += more.dropped_;
}

BadValue BadValue::Literal(std::string text) {
  return BadValue(std::move(text), Form::kLiteral);
}

BadValue BadValue::Omitted() {
  return BadValue("", Form::kOmitted);
}

FieldError FieldError::NotFound(const FieldPath& path, BadValue value) {
  return {FieldErrorType::kNotFound, path.text(), std::move(value), ""};
}
FieldError FieldError::Required(const FieldPath& path, std::string detail) {
  return {FieldErrorType::kRequired, path.text(), "", std::move(detail)};
}
FieldError FieldError::Duplicate(const FieldPath& path, BadValue value) {
  return {FieldErrorType::kDuplicate, path.text(), std::move(value), ""};
}
FieldError FieldError::Invalid(const FieldPath& path, BadValue value, std::string detail) {
  return {FieldErrorType::kInvalid, path.text(), std::move(value), std::move(detail)};
}
FieldError FieldError::NotSupported(const FieldPath& path, BadValue value,
                                    std::vector<std::string_view> supported) {
  std::ranges::sort(supported);
  std::vector<std::string> quoted;
  for (const std::string_view text : supported) quoted.push_back(Quote(text));
  std::string detail = quoted.empty() ? "" : "supported values: " + Join(quoted, ", ");
  return {FieldErrorType::kNotSupported, path.text(), std::move(value), std::move(detail)};
}
FieldError FieldError::Forbidden(const FieldPath& path, std::string detail) {
  return {FieldErrorType::kForbidden, path.text(), "", std::move(detail)};
}
FieldError FieldError::TooLong(const FieldPath& path, std::size_t max_bytes) {
  return {FieldErrorType::kTooLong, path.text(), BadValue::Omitted(),
          StrCat("may not be more than ", max_bytes, " bytes")};
}
FieldError FieldError::TooLongCharacters(const FieldPath& path, std::size_t max_characters) {
  return {FieldErrorType::kTooLong, path.text(), BadValue::Omitted(),
          StrCat("may not be more than ", max_characters, " characters")};
}
FieldError FieldError::TooMany(const FieldPath& path, std::size_t actual, std::size_t max_items) {
  return {FieldErrorType::kTooMany, path.text(), static_cast<std::int64_t>(actual),
          StrCat("must have at most ", max_items, max_items == 1 ? " item" : " items")};
}
FieldError FieldError::Internal(const FieldPath& path, std::string detail) {
  return {FieldErrorType::kInternal, path.text(), BadValue::Omitted(), std::move(detail)};
}
FieldError FieldError::TypeInvalid(const FieldPath& path, BadValue value, std::string detail) {
  return {FieldErrorType::kTypeInvalid, path.text(), std::move(value), std::move(detail)};
}

std::string FieldError::Body() const {
  std::string body(FieldErrorText(type));
  const bool shows_value = type != FieldErrorType::kRequired &&
                           type != FieldErrorType::kForbidden && type != FieldErrorType::kTooLong &&
                           type != FieldErrorType::kInternal &&
                           value.form != BadValue::Form::kOmitted;
  if (shows_value) {
    body += ": ";
    body += value.form == BadValue::Form::kText ? Quote(value.text) : value.text;
  }
  if (!detail.empty()) body += ": " + detail;
  return body;
}

std::string FieldError::ToString() const {
  return StrCat(field.empty() ? "<nil>" : field, ": ", Body());
}

std::string JoinFieldErrors(const FieldErrors& errors) {
  std::vector<std::string> texts;
  std::unordered_set<std::string> told;
  std::size_t rest = errors.size();
  std::size_t shown_bytes = 0;
  for (const FieldError& error : errors) {
    if (texts.size() == kMaxShownErrors || shown_bytes > kMaxShownBytes) break;
    --rest;
    std::string text = error.ToString();
    if (!told.insert(text).second) continue;
    shown_bytes += text.size();
    texts.push_back(std::move(text));
  }
  if (rest > 0) texts.push_back(StrCat("and ", rest, " more errors"));
  if (texts.empty()) return "";
  if (texts.size() == 1) return texts[0];
  return "[" + Join(texts, ", ") + "]";
}

}  // namespace drakkar::api
