#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"

namespace drakkar::api {
struct KindSchema;
}

// ControllerRevisions: the templates that a DaemonSet or StatefulSet had, so that pods of different
// templates can be told apart and a rollout can be undone. Pure functions.
namespace drakkar::controllers {

// The label of a revision (and of a DaemonSet's pods) with the hash of the template.
inline constexpr std::string_view kDaemonHashLabel = "controller-revision-hash";
inline constexpr std::string_view kStatefulHashLabel = "controller.kubernetes.io/hash";

struct RevisionRequest {
  const api::Object& owner;
  const api::KindSchema& owner_kind;
  const std::vector<api::ObjectPtr>& revisions;  // those that the owner controls
  std::string_view hash_label;
  std::int64_t collisions = 0;
};

struct RevisionPlan {
  api::ObjectPtr current;  // the revision of the owner's template; null if it must be created
  std::string name;        // of `current`, or of the revision to create
  // The revision to create, or `current` with its new number; null if everything is in place.
  api::TreePtr write;
};

// Finds the revision of the owner's template, and gives it the highest number: a template that
// returns after a rollback is the newest again.
RevisionPlan PlanRevision(const RevisionRequest& request);

// Whether a revision records this template.
bool IsRevisionOf(const api::Object& revision, api::Value pod_template);

// The recorded template; its root is absent if the revision has none.
api::TreePtr TemplateOf(const api::Object& revision);

// Revisions to delete, lowest number first, so that at most `limit` of those that are not in use
// remain. A negative limit keeps all.
std::vector<api::ObjectPtr> SurplusRevisions(std::vector<api::ObjectPtr> revisions,
                                             std::int64_t limit,
                                             const std::function<bool(const api::Object&)>& in_use);

}  // namespace drakkar::controllers
