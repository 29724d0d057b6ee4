#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/result/error.h"

namespace drakkar::api {
struct KindSchema;
}

namespace drakkar::apiserver {

struct Cause {
  std::string reason;   // "FieldValueInvalid" ...
  std::string message;
  std::string field;
};

// A request that did not succeed: what becomes a Kubernetes Status object. The texts are those of
// Kubernetes; clients compare them.
struct Failure {
  int http_status = 500;
  ErrorCode code = ErrorCode::kInternal;
  std::string reason;   // "NotFound" ...
  std::string message;
  // details
  std::string name;
  std::string group;
  std::string kind;     // the plural resource, as Kubernetes puts it here, or the kind for Invalid
  std::string uid;
  std::vector<Cause> causes;
  int retry_after_seconds = 0;

  api::TreePtr ToStatus() const;
  Error ToError() const { return Error{code, message}; }
};

Failure NotFoundFailure(const api::KindSchema& kind, std::string_view name);
Failure AlreadyExistsFailure(const api::KindSchema& kind, std::string_view name);
// "Operation cannot be fulfilled on <resource> "<name>": <why>"
Failure ConflictFailure(const api::KindSchema& kind, std::string_view name, std::string_view why);
// The conflict of optimistic concurrency.
Failure ModifiedFailure(const api::KindSchema& kind, std::string_view name);
Failure BadRequestFailure(std::string message);
Failure ForbiddenFailure(const api::KindSchema& kind, std::string_view name, std::string_view why);
Failure InvalidFailure(const api::KindSchema& kind, std::string_view name,
                       std::vector<Cause> causes);
Failure ExpiredFailure(std::string message);
Failure MethodNotAllowedFailure(std::string_view verb);
Failure UnsupportedMediaTypeFailure(std::string_view type);
Failure NotAcceptableFailure(std::string_view supported);
Failure UnauthorizedFailure();
Failure TooManyRequestsFailure(std::string message, int retry_after_seconds);
Failure InternalFailure(std::string message);
Failure UnavailableFailure(std::string message);
// The path leads nowhere.
Failure PathNotFoundFailure();

// "pods", or "deviceclasses.resource.k8s.io": how messages name a resource.
std::string QualifiedResource(const api::KindSchema& kind);
// "Pod", or "DeviceClass.resource.k8s.io".
std::string QualifiedKind(const api::KindSchema& kind);

}  // namespace drakkar::apiserver
