#include "apiserver/rest/failure.h"

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

Failure About(const api::KindSchema& kind, std::string_view name, int http_status, ErrorCode code,
              std::string_view reason, std::string message) {
  Failure failure;
  failure.http_status = http_status;
  failure.code = code;
  failure.reason = reason;
  failure.message = std::move(message);
  failure.name = name;
  failure.group = kind.group;
  failure.kind = kind.plural;
  return failure;
}

Failure Plain(int http_status, ErrorCode code, std::string_view reason, std::string message) {
  Failure failure;
  failure.http_status = http_status;
  failure.code = code;
  failure.reason = reason;
  failure.message = std::move(message);
  return failure;
}

std::string JoinCauses(const std::vector<Cause>& causes) {
  std::vector<std::string> texts;
  for (const Cause& cause : causes) texts.push_back(cause.field + ": " + cause.message);
  if (texts.size() == 1) return texts[0];
  return "[" + Join(texts, ", ") + "]";
}

}  // namespace

api::TreePtr Failure::ToStatus() const {
  api::Draft status = api::Draft::Object();
  status["kind"] = "Status";
  status["apiVersion"] = "v1";
  status["metadata"] = api::Draft::Object();
  status["status"] = "Failure";
  status["message"] = message;
  if (!reason.empty()) status["reason"] = reason;
  api::Draft details = api::Draft::Object();
  if (!name.empty()) details["name"] = name;
  if (!group.empty()) details["group"] = group;
  if (!kind.empty()) details["kind"] = kind;
  if (!uid.empty()) details["uid"] = uid;
  for (const Cause& cause : causes) {
    api::Draft entry = api::Draft::Object();
    entry["reason"] = cause.reason;
    entry["message"] = cause.message;
    entry["field"] = cause.field;
    details["causes"].Append(std::move(entry));
  }
  if (retry_after_seconds > 0) details["retryAfterSeconds"] = retry_after_seconds;
  if (details.size() > 0) status["details"] = std::move(details);
  status["code"] = http_status;
  return status.Freeze();
}

std::string QualifiedResource(const api::KindSchema& kind) {
  return kind.group.empty() ? std::string(kind.plural) : StrCat(kind.plural, ".", kind.group);
}

std::string QualifiedKind(const api::KindSchema& kind) {
  return kind.group.empty() ? std::string(kind.kind) : StrCat(kind.kind, ".", kind.group);
}

Failure NotFoundFailure(const api::KindSchema& kind, std::string_view name) {
  return About(kind, name, 404, ErrorCode::kNotFound, "NotFound",
               StrCat(QualifiedResource(kind), " ", Quote(name), " not found"));
}

Failure AlreadyExistsFailure(const api::KindSchema& kind, std::string_view name) {
  return About(kind, name, 409, ErrorCode::kAlreadyExists, "AlreadyExists",
               StrCat(QualifiedResource(kind), " ", Quote(name), " already exists"));
}

Failure ConflictFailure(const api::KindSchema& kind, std::string_view name, std::string_view why) {
  return About(kind, name, 409, ErrorCode::kConflict, "Conflict",
               StrCat("Operation cannot be fulfilled on ", QualifiedResource(kind), " ",
                      Quote(name), ": ", why));
}

Failure ModifiedFailure(const api::KindSchema& kind, std::string_view name) {
  return ConflictFailure(kind, name,
                         "the object has been modified; please apply your changes to the latest "
                         "version and try again");
}

Failure BadRequestFailure(std::string message) {
  return Plain(400, ErrorCode::kInvalidArgument, "BadRequest", std::move(message));
}

Failure ForbiddenFailure(const api::KindSchema& kind, std::string_view name,
                         std::string_view why) {
  std::string message =
      name.empty() ? StrCat(QualifiedResource(kind), " is forbidden: ", why)
                   : StrCat(QualifiedResource(kind), " ", Quote(name), " is forbidden: ", why);
  return About(kind, name, 403, ErrorCode::kForbidden, "Forbidden", std::move(message));
}

Failure InvalidFailure(const api::KindSchema& kind, std::string_view name,
                       std::vector<Cause> causes) {
  Failure failure = About(kind, name, 422, ErrorCode::kInvalidArgument, "Invalid",
                          StrCat(QualifiedKind(kind), " ", Quote(name),
                                 " is invalid: ", JoinCauses(causes)));
  failure.kind = kind.kind;
  failure.causes = std::move(causes);
  return failure;
}

Failure ExpiredFailure(std::string message) {
  return Plain(410, ErrorCode::kExpired, "Expired", std::move(message));
}

Failure MethodNotAllowedFailure(std::string_view) {
  return Plain(405, ErrorCode::kUnimplemented, "MethodNotAllowed",
               "the server does not allow this method on the requested resource");
}

Failure UnsupportedMediaTypeFailure(std::string_view type) {
  return Plain(415, ErrorCode::kInvalidArgument, "UnsupportedMediaType",
               StrCat("the body of the request was in an unknown format - accepted media types "
                      "include: application/json, application/yaml (got ",
                      type, ")"));
}

Failure NotAcceptableFailure(std::string_view supported) {
  return Plain(406, ErrorCode::kInvalidArgument, "NotAcceptable",
               StrCat("only the following media types are accepted: ", supported));
}

Failure UnauthorizedFailure() {
  return Plain(401, ErrorCode::kUnauthenticated, "Unauthorized", "Unauthorized");
}

Failure TooManyRequestsFailure(std::string message, int retry_after_seconds) {
  Failure failure =
      Plain(429, ErrorCode::kResourceExhausted, "TooManyRequests", std::move(message));
  failure.retry_after_seconds = retry_after_seconds;
  return failure;
}

Failure InternalFailure(std::string message) {
  return Plain(500, ErrorCode::kInternal, "InternalError",
               "Internal error occurred: " + std::move(message));
}

Failure UnavailableFailure(std::string message) {
  return Plain(503, ErrorCode::kUnavailable, "ServiceUnavailable", std::move(message));
}

Failure PathNotFoundFailure() {
  return Plain(404, ErrorCode::kNotFound, "NotFound",
               "the server could not find the requested resource");
}

}  // namespace drakkar::apiserver
