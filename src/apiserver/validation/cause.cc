#include "apiserver/validation/cause.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

std::string WithDetail(std::string text, std::string_view detail) {
  if (!detail.empty()) text += StrCat(": ", detail);
  return text;
}

}  // namespace

Cause Required(std::string field, std::string_view detail) {
  return {"FieldValueRequired", WithDetail("Required value", detail), std::move(field)};
}

Cause Invalid(std::string field, std::string shown, std::string_view detail) {
  return {"FieldValueInvalid", WithDetail(StrCat("Invalid value: ", shown), detail),
          std::move(field)};
}

Cause InvalidText(std::string field, std::string_view value, std::string_view detail) {
  return Invalid(std::move(field), Quote(value), detail);
}

Cause Duplicate(std::string field, std::string_view value) {
  return {"FieldValueDuplicate", StrCat("Duplicate value: ", Quote(value)), std::move(field)};
}

Cause Forbidden(std::string field, std::string_view detail) {
  return {"FieldValueForbidden", WithDetail("Forbidden", detail), std::move(field)};
}

Cause TooLong(std::string field, std::size_t limit_bytes) {
  return {"FieldValueTooLong", StrCat("Too long: may not be more than ", limit_bytes, " bytes"),
          std::move(field)};
}

Cause TooMany(std::string field, std::size_t count, std::size_t limit) {
  return {"FieldValueTooMany",
          StrCat("Too many: ", count, ": must have at most ", limit, " items"), std::move(field)};
}

Cause NotFoundValue(std::string field, std::string_view value, std::string_view detail) {
  return {"FieldValueNotFound", WithDetail(StrCat("Not found: ", Quote(value)), detail),
          std::move(field)};
}

Cause NotSupported(std::string field, std::string_view value,
                   std::vector<std::string_view> supported) {
  std::sort(supported.begin(), supported.end());
  std::vector<std::string> quoted;
  for (std::string_view each : supported) quoted.push_back(Quote(each));
  return {"FieldValueNotSupported",
          StrCat("Unsupported value: ", Quote(value), ": supported values: ", Join(quoted, ", ")),
          std::move(field)};
}

}  // namespace drakkar::apiserver
