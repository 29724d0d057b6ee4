#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/meta/field_error.h"
#include "api/meta/names.h"

// Short names for field errors, with the path as a FieldPath or as a plain string.
namespace drakkar::apiserver {

api::FieldError Required(const api::FieldPath& path, std::string_view detail = {});
api::FieldError Invalid(const api::FieldPath& path, api::BadValue value, std::string_view detail);
api::FieldError Duplicate(const api::FieldPath& path, api::BadValue value);
api::FieldError Forbidden(const api::FieldPath& path, std::string_view detail);
api::FieldError NotSupported(const api::FieldPath& path, api::BadValue value,
                             std::vector<std::string_view> supported);
void AddProblems(api::FieldErrors& errors, const api::FieldPath& path, std::string_view value,
                 const api::Problems& problems);

api::FieldError Required(std::string_view field, std::string_view detail = {});
api::FieldError Invalid(std::string_view field, api::BadValue value, std::string_view detail);
api::FieldError Duplicate(std::string_view field, std::string_view value);
api::FieldError Forbidden(std::string_view field, std::string_view detail);
api::FieldError TooMany(std::string_view field, std::size_t count, std::size_t limit);
api::FieldError NotFoundValue(std::string_view field, std::string_view value,
                              std::string_view detail = {});
api::FieldError NotSupported(std::string_view field, std::string_view value,
                             std::vector<std::string_view> supported);

// One Invalid error per problem with the syntax of a name.
void AddProblems(api::FieldErrors& errors, std::string_view field, std::string_view value,
                 const api::Problems& problems);

}  // namespace drakkar::apiserver
