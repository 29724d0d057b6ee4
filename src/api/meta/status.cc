#include "api/meta/status.h"

#include "api/meta/shown_errors.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

struct Row {
  ErrorCode error;
  int code;
  std::string_view reason;
};

// Maps error codes to statuses and back; the first matching row applies.
constexpr Row kTable[] = {
    {ErrorCode::kInvalidArgument, 400, "BadRequest"},
    {ErrorCode::kInvalidArgument, 422, "Invalid"},
    {ErrorCode::kInvalidArgument, 413, "RequestEntityTooLarge"},
    {ErrorCode::kInvalidArgument, 406, "NotAcceptable"},
    {ErrorCode::kInvalidArgument, 415, "UnsupportedMediaType"},
    {ErrorCode::kNotFound, 404, "NotFound"},
    {ErrorCode::kAlreadyExists, 409, "AlreadyExists"},
    {ErrorCode::kConflict, 409, "Conflict"},
    {ErrorCode::kExpired, 410, "Expired"},
    {ErrorCode::kExpired, 410, "Gone"},
    {ErrorCode::kForbidden, 403, "Forbidden"},
    {ErrorCode::kUnauthenticated, 401, "Unauthorized"},
    {ErrorCode::kResourceExhausted, 429, "TooManyRequests"},
    {ErrorCode::kFailedPrecondition, 409, "Conflict"},
    {ErrorCode::kUnavailable, 503, "ServiceUnavailable"},
    {ErrorCode::kDeadlineExceeded, 504, "Timeout"},
    {ErrorCode::kUnavailable, 500, "ServerTimeout"},
    {ErrorCode::kUnimplemented, 405, "MethodNotAllowed"},
    {ErrorCode::kInternal, 500, "InternalError"},
};

Status Make(int code, std::string_view reason, std::string message) {
  Status status;
  status.code = code;
  status.reason = reason;
  status.message = std::move(message);
  return status;
}

Status About(Status status, const GroupResource& resource, std::string_view name) {
  status.group = resource.group;
  status.kind = resource.resource;
  status.name = name;
  return status;
}

void SetIfAny(Draft& draft, FieldName name, const std::string& value) {
  if (!value.empty()) draft[name] = value;
}

}  // namespace

std::string GroupResource::ToString() const {
  return group.empty() ? std::string(resource) : StrCat(resource, ".", group);
}

TreePtr Status::ToTree() const {
  Draft draft{{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", Draft::Object()}};
  draft["status"] = ok() ? "Success" : "Failure";
  SetIfAny(draft, "message", message);
  SetIfAny(draft, "reason", reason);
  Draft details = Draft::Object();
  SetIfAny(details, "name", name);
  SetIfAny(details, "group", group);
  SetIfAny(details, "kind", kind);
  SetIfAny(details, "uid", uid);
  for (const StatusCause& cause : causes) {
    Draft item = Draft::Object();
    SetIfAny(item, "reason", cause.reason);
    SetIfAny(item, "message", cause.message);
    SetIfAny(item, "field", cause.field);
    details["causes"].Append(std::move(item));
  }
  if (retry_after_seconds != 0) details["retryAfterSeconds"] = retry_after_seconds;
  if (details.size() != 0) draft["details"] = std::move(details);
  if (!ok()) draft["code"] = code;
  return draft.Freeze();
}

Status Status::FromTree(Value root) {
  Status status;
  const bool success = root["status"].str() == "Success";
  status.code = static_cast<int>(root["code"].integer(success ? 200 : 500));
  status.reason = root["reason"].str();
  status.message = root["message"].str();
  const Value details = root["details"];
  status.name = details["name"].str();
  status.group = details["group"].str();
  status.kind = details["kind"].str();
  status.uid = details["uid"].str();
  for (const Value cause : details["causes"].elements()) {
    status.causes.push_back({std::string(cause["reason"].str()),
                             std::string(cause["message"].str()),
                             std::string(cause["field"].str())});
  }
  status.retry_after_seconds = static_cast<int>(details["retryAfterSeconds"].integer());
  return status;
}

Status StatusNotFound(const GroupResource& resource, std::string_view name) {
  return About(Make(404, "NotFound", StrCat(resource.ToString(), " ", Quote(name), " not found")),
               resource, name);
}

Status StatusAlreadyExists(const GroupResource& resource, std::string_view name) {
  return About(
      Make(409, "AlreadyExists", StrCat(resource.ToString(), " ", Quote(name), " already exists")),
      resource, name);
}

Status StatusConflict(const GroupResource& resource, std::string_view name,
                      std::string_view reason) {
  return About(Make(409, "Conflict",
                    StrCat("Operation cannot be fulfilled on ", resource.ToString(), " ",
                           Quote(name), ": ", reason)),
               resource, name);
}

Status StatusModified(const GroupResource& resource, std::string_view name) {
  return StatusConflict(resource, name,
                        "the object has been modified; please apply your changes to the latest "
                        "version and try again");
}

Status StatusForbidden(const GroupResource& resource, std::string_view name,
                       std::string_view reason) {
  std::string message;
  if (resource.resource.empty()) {
    message = StrCat("forbidden: ", reason);
  } else if (name.empty()) {
    message = StrCat(resource.ToString(), " is forbidden: ", reason);
  } else {
    message = StrCat(resource.ToString(), " ", Quote(name), " is forbidden: ", reason);
  }
  return About(Make(403, "Forbidden", std::move(message)), resource, name);
}

Status StatusInvalid(std::string_view group, std::string_view kind, std::string_view name,
                     const FieldErrors& errors) {
  const GroupResource qualified{group, kind};
  std::string message = StrCat(qualified.ToString(), " ", Quote(name), " is invalid");
  if (!errors.empty()) message += ": " + JoinFieldErrors(errors);
  Status status = About(Make(422, "Invalid", std::move(message)), qualified, name);
  std::size_t shown_bytes = 0;
  for (const FieldError& error : errors) {
    if (status.causes.size() == kMaxShownErrors || shown_bytes > kMaxShownBytes) break;
    status.causes.push_back({std::string(FieldErrorReason(error.type)), error.Body(), error.field});
    shown_bytes += status.causes.back().message.size();
  }
  return status;
}

Status StatusBadRequest(std::string message) {
  return Make(400, "BadRequest", std::move(message));
}

Status StatusUnauthorized(std::string message) {
  return Make(401, "Unauthorized", message.empty() ? "not authorized" : std::move(message));
}

Status StatusMethodNotSupported(const GroupResource& resource, std::string_view action) {
  return About(
      Make(405, "MethodNotAllowed",
           StrCat(action, " is not supported on resources of kind ", Quote(resource.ToString()))),
      resource, "");
}

Status StatusNotAcceptable(std::string message) {
  return Make(406, "NotAcceptable", std::move(message));
}

Status StatusUnsupportedMediaType(std::string message) {
  return Make(415, "UnsupportedMediaType", std::move(message));
}

Status StatusRequestEntityTooLarge(std::string message) {
  return Make(413, "RequestEntityTooLarge", "Request entity too large: " + message);
}

Status StatusExpired(std::string message) {
  return Make(410, "Expired", std::move(message));
}

Status StatusGone(std::string message) {
  return Make(410, "Gone", std::move(message));
}

Status StatusTooManyRequests(std::string message, int retry_after_seconds) {
  Status status = Make(429, "TooManyRequests", std::move(message));
  status.retry_after_seconds = retry_after_seconds;
  return status;
}

Status StatusTimeout(std::string message, int retry_after_seconds) {
  Status status = Make(504, "Timeout", "Timeout: " + message);
  status.retry_after_seconds = retry_after_seconds;
  return status;
}

Status StatusServerTimeout(const GroupResource& resource, std::string_view operation,
                           int retry_after_seconds) {
  Status status = About(Make(500, "ServerTimeout",
                             StrCat("The ", operation, " operation against ", resource.ToString(),
                                    " could not be completed at this time, please try again.")),
                        resource, operation);
  status.retry_after_seconds = retry_after_seconds;
  return status;
}

Status StatusServiceUnavailable(std::string message) {
  return Make(503, "ServiceUnavailable", std::move(message));
}

Status StatusInternalError(std::string_view message) {
  Status status = Make(500, "InternalError", StrCat("Internal error occurred: ", message));
  status.causes.push_back({"", std::string(message), ""});
  return status;
}

Status StatusNoSuchPath() {
  return Make(404, "NotFound", "the server could not find the requested resource");
}

Status StatusSuccess(const GroupResource& resource, std::string_view name, std::string_view uid) {
  Status status = About(Make(200, "", ""), resource, name);
  status.uid = uid;
  return status;
}

Status StatusFromError(const Error& error) {
  if (error.code == ErrorCode::kInternal || error.code == ErrorCode::kDataLoss) {
    return StatusInternalError(error.message);
  }
  for (const Row& row : kTable) {
    if (row.error == error.code) return Make(row.code, row.reason, error.message);
  }
  return StatusInternalError(error.message);
}

Error ErrorFromStatus(const Status& status) {
  for (const Row& row : kTable) {
    if (row.reason == status.reason) return {row.error, status.message};
  }
  for (const Row& row : kTable) {
    if (row.code == status.code) return {row.error, status.message};
  }
  return {ErrorCode::kInternal, status.message};
}

}  // namespace drakkar::api
