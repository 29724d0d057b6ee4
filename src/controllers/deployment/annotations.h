#pragma once

#include <cstdint>
#include <optional>

#include "api/meta/object.h"
#include "api/tree/draft.h"

// The annotations that a Deployment keeps on its ReplicaSets. Setters return whether they changed
// anything.
namespace drakkar::controllers {

inline constexpr std::string_view kRevisionAnnotation = "deployment.kubernetes.io/revision";

// 0 if the object has no valid revision.
std::int64_t RevisionOf(const api::Object& object);
// The Deployment's desired and maximum number of replicas when the set was last resized.
std::optional<std::int64_t> DesiredReplicas(const api::Object& set);
std::optional<std::int64_t> MaxReplicas(const api::Object& set);

// Copies the Deployment's annotations, except those that belong to the Deployment or to a set only.
bool CopyAnnotations(const api::Object& deployment, api::Draft& annotations);
// Only increases the revision. A set that is rolled back to keeps its earlier revisions in its
// history.
bool SetRevision(api::Draft& annotations, std::int64_t revision);
bool SetReplicas(api::Draft& annotations, std::int64_t desired, std::int64_t most);

}  // namespace drakkar::controllers
