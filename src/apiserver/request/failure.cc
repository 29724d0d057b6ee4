#include "apiserver/request/failure.h"

#include <string>
#include <unordered_set>

#include "api/meta/shown_errors.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

api::GroupResource ResourceOf(const api::KindSchema& kind) {
  return {kind.group, kind.plural};
}

}  // namespace

Failure NotFoundFailure(const api::KindSchema& kind, std::string_view name) {
  return api::StatusNotFound(ResourceOf(kind), name);
}

Failure AlreadyExistsFailure(const api::KindSchema& kind, std::string_view name) {
  return api::StatusAlreadyExists(ResourceOf(kind), name);
}

Failure GeneratedNameTakenFailure(const api::KindSchema& kind, std::string_view name) {
  Failure failure = AlreadyExistsFailure(kind, name);
  failure.message += ", the server was not able to generate a unique name for the object";
  failure.retry_after_seconds = 1;
  return failure;
}

Failure ConflictFailure(const api::KindSchema& kind, std::string_view name, std::string_view why) {
  return api::StatusConflict(ResourceOf(kind), name, why);
}

Failure ModifiedFailure(const api::KindSchema& kind, std::string_view name) {
  return api::StatusModified(ResourceOf(kind), name);
}

Failure ForbiddenFailure(const api::KindSchema& kind, std::string_view name, std::string_view why) {
  return api::StatusForbidden(ResourceOf(kind), name, why);
}

Failure InvalidFailure(const api::KindSchema& kind, std::string_view name,
                       const api::FieldErrors& errors) {
  // Two rules may report the same error for a field; it is returned once.
  api::FieldErrors distinct;
  std::unordered_set<std::string> told;
  for (const api::FieldError& error : errors) {
    // Errors beyond the limit are only counted, so they are not formatted.
    if (told.size() > api::kMaxShownErrors || told.insert(error.ToString()).second) {
      distinct.Keep(error);
    }
  }
  distinct.Drop(errors.dropped());
  return api::StatusInvalid(kind.group, kind.kind, name, distinct);
}

Failure TooLargeVersionFailure(std::int64_t asked, std::int64_t current) {
  Failure failure =
      api::StatusTimeout(StrCat("Too large resource version: ", asked, ", current: ", current), 1);
  failure.causes.push_back({"ResourceVersionTooLarge", "Too large resource version", ""});
  return failure;
}

Failure TooMuchWorkFailure() {
  return api::StatusRequestEntityTooLarge(
      "handling the request takes too long; send fewer fields, list elements or selector terms");
}

Failure FellBehindFailure() {
  return api::StatusExpired("the watch fell too far behind and was closed; list and watch again");
}

Failure MethodNotAllowedFailure(const api::KindSchema& kind, std::string_view verb) {
  return api::StatusMethodNotSupported(ResourceOf(kind), verb);
}

}  // namespace drakkar::apiserver
