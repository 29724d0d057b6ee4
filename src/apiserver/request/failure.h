#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/meta/status.h"

namespace drakkar::api {
struct KindSchema;
}

namespace drakkar::apiserver {

// Why a request failed; becomes a Kubernetes Status object.
using Failure = api::Status;

Failure NotFoundFailure(const api::KindSchema& kind, std::string_view name);
Failure AlreadyExistsFailure(const api::KindSchema& kind, std::string_view name);
// The same for a generated name: the client may simply retry.
Failure GeneratedNameTakenFailure(const api::KindSchema& kind, std::string_view name);
// "Operation cannot be fulfilled on <resource> "<name>": <why>"
Failure ConflictFailure(const api::KindSchema& kind, std::string_view name, std::string_view why);
// The conflict of optimistic concurrency.
Failure ModifiedFailure(const api::KindSchema& kind, std::string_view name);
Failure ForbiddenFailure(const api::KindSchema& kind, std::string_view name, std::string_view why);
Failure InvalidFailure(const api::KindSchema& kind, std::string_view name,
                       const api::FieldErrors& errors);
// A revision that does not exist yet. Clients that know this cause list again without a revision.
Failure TooLargeVersionFailure(std::int64_t asked, std::int64_t current);
// A watch that was closed because its reader is too slow.
Failure FellBehindFailure();
// The work budget of a request is exceeded, or its object has too many values.
Failure TooMuchWorkFailure();
Failure MethodNotAllowedFailure(const api::KindSchema& kind, std::string_view verb);

}  // namespace drakkar::apiserver
