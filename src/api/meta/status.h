#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/field_error.h"
#include "api/tree/draft.h"
#include "base/result/error.h"

namespace drakkar::api {

struct StatusCause {
  std::string reason;  // "FieldValueInvalid"
  std::string message;
  std::string field;
  bool operator==(const StatusCause&) const = default;
};

// meta/v1 Status: an API server's answer that is not an object. Reasons, codes and texts are
// Kubernetes'.
struct Status {
  int code = 200;
  std::string reason;  // "NotFound"
  std::string message;
  // Details; omitted if all of them are empty.
  std::string name;
  std::string group;
  std::string kind;  // the resource ("pods") for most, the kind ("Pod") for Invalid
  std::string uid;
  std::vector<StatusCause> causes;
  int retry_after_seconds = 0;

  bool ok() const { return code < 400; }
  TreePtr ToTree() const;
  // Reads a tree whose kind is Status.
  static Status FromTree(Value root);
};

// "pods", or "resourceclaims.resource.k8s.io".
struct GroupResource {
  std::string_view group;
  std::string_view resource;
  std::string ToString() const;
};

Status StatusNotFound(const GroupResource& resource, std::string_view name);
Status StatusAlreadyExists(const GroupResource& resource, std::string_view name);
Status StatusConflict(const GroupResource& resource, std::string_view name,
                      std::string_view reason);
// The conflict of optimistic concurrency, in Kubernetes' words.
Status StatusModified(const GroupResource& resource, std::string_view name);
Status StatusForbidden(const GroupResource& resource, std::string_view name,
                       std::string_view reason);
Status StatusInvalid(std::string_view group, std::string_view kind, std::string_view name,
                     const FieldErrors& errors);
Status StatusBadRequest(std::string message);
Status StatusUnauthorized(std::string message);
Status StatusMethodNotSupported(const GroupResource& resource, std::string_view action);
Status StatusNotAcceptable(std::string message);
Status StatusUnsupportedMediaType(std::string message);
Status StatusRequestEntityTooLarge(std::string message);
Status StatusExpired(std::string message);
Status StatusGone(std::string message);
Status StatusTooManyRequests(std::string message, int retry_after_seconds);
Status StatusTimeout(std::string message, int retry_after_seconds);
Status StatusServerTimeout(const GroupResource& resource, std::string_view operation,
                           int retry_after_seconds);
Status StatusServiceUnavailable(std::string message);
Status StatusInternalError(std::string_view message);
// For a path or a resource that does not exist.
Status StatusNoSuchPath();
// {"status": "Success"}, as for a deletion that is complete.
Status StatusSuccess(const GroupResource& resource, std::string_view name, std::string_view uid);

// Converts an error for the API's response.
Status StatusFromError(const Error& error);
// Converts a received Status into an error.
Error ErrorFromStatus(const Status& status);

}  // namespace drakkar::api
