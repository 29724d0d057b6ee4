#include "apiserver/validation/cause.h"

namespace drakkar::apiserver {

using api::FieldError;
using api::FieldPath;

FieldError Required(const FieldPath& path, std::string_view detail) {
  return FieldError::Required(path, std::string(detail));
}

FieldError Invalid(const FieldPath& path, api::BadValue value, std::string_view detail) {
  return FieldError::Invalid(path, std::move(value), std::string(detail));
}

FieldError Duplicate(const FieldPath& path, api::BadValue value) {
  return FieldError::Duplicate(path, std::move(value));
}

FieldError Forbidden(const FieldPath& path, std::string_view detail) {
  return FieldError::Forbidden(path, std::string(detail));
}

FieldError NotSupported(const FieldPath& path, api::BadValue value,
                        std::vector<std::string_view> supported) {
  return FieldError::NotSupported(path, std::move(value), std::move(supported));
}

void AddProblems(api::FieldErrors& errors, const FieldPath& path, std::string_view value,
                 const api::Problems& problems) {
  for (const std::string& problem : problems) errors.push_back(Invalid(path, value, problem));
}

FieldError Required(std::string_view field, std::string_view detail) {
  return FieldError::Required(FieldPath(field), std::string(detail));
}

FieldError Invalid(std::string_view field, api::BadValue value, std::string_view detail) {
  return FieldError::Invalid(FieldPath(field), std::move(value), std::string(detail));
}

FieldError Duplicate(std::string_view field, std::string_view value) {
  return FieldError::Duplicate(FieldPath(field), value);
}

FieldError Forbidden(std::string_view field, std::string_view detail) {
  return FieldError::Forbidden(FieldPath(field), std::string(detail));
}

FieldError TooMany(std::string_view field, std::size_t count, std::size_t limit) {
  return FieldError::TooMany(FieldPath(field), count, limit);
}

FieldError NotFoundValue(std::string_view field, std::string_view value, std::string_view detail) {
  FieldError error = FieldError::NotFound(FieldPath(field), value);
  error.detail = detail;
  return error;
}

FieldError NotSupported(std::string_view field, std::string_view value,
                        std::vector<std::string_view> supported) {
  return FieldError::NotSupported(FieldPath(field), value, std::move(supported));
}

void AddProblems(api::FieldErrors& errors, std::string_view field, std::string_view value,
                 const api::Problems& problems) {
  for (const std::string& problem : problems) errors.push_back(Invalid(field, value, problem));
}

}  // namespace drakkar::apiserver
