#pragma once

#include <cstdint>
#include <optional>

#include "api/meta/object.h"
#include "api/tree/draft.h"

// What a Deployment notes in the annotations of its ReplicaSets. Setters say whether they changed
// anything.
namespace drakkar::controllers {

inline constexpr std::string_view kRevisionAnnotation = "deployment.kubernetes.io/revision";

// 0 if the object has none that can be read.
std::int64_t RevisionOf(const api::Object& object);
// How large the Deployment was to be, and at most, when the set was last sized.
std::optional<std::int64_t> DesiredReplicas(const api::Object& set);
std::optional<std::int64_t> MaxReplicas(const api::Object& set);

// Those of the Deployment, but for what is its own or a set's own.
bool CopyAnnotations(const api::Object& deployment, api::Draft& annotations);
// Only upwards. A set that is rolled back to keeps its earlier revisions in its history.
bool SetRevision(api::Draft& annotations, std::int64_t revision);
bool SetReplicas(api::Draft& annotations, std::int64_t desired, std::int64_t most);

}  // namespace drakkar::controllers
