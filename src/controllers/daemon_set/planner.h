#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "base/env/clock.h"
#include "controllers/daemon_set/placement.h"

// The decisions of the DaemonSet controller: on which nodes to create pods, which pods to delete,
// and the status. Pure functions.
namespace drakkar::controllers {

struct DaemonState {
  const api::Object& set;
  const DaemonPlacement& placement;
  std::string_view hash;  // of the set's template
  const std::vector<api::ObjectPtr>& nodes;
  const std::vector<api::ObjectPtr>& pods;  // those that the set controls
  WallTime now{};
};

// At most this many pods are created and deleted at a time.
inline constexpr std::size_t kMaxDaemonBurst = 250;
struct DaemonPlan {
  std::vector<std::string> create;  // nodes that get a pod
  std::vector<api::ObjectPtr> remove;
  // Pods that ended although they should run, by node. They are deleted too, failed ones with
  // backoff.
  std::vector<api::ObjectPtr> failed;
  std::vector<api::ObjectPtr> succeeded;

  bool empty() const {
    return create.empty() && remove.empty() && failed.empty() && succeeded.empty();
  }
};

// One pod on each node that should have one, and none elsewhere.
DaemonPlan PlanDaemons(const DaemonState& state);
// The next step of a rolling update. Only for a state for which PlanDaemons has nothing to do.
DaemonPlan PlanDaemonRollout(const DaemonState& state);

// The whole status as it should be; nullopt if it is already correct.
std::optional<api::Draft> PlanDaemonStatus(const DaemonState& state);

// When the next ready pod becomes available; nullopt if no pod is waiting for that.
std::optional<Duration> NextDaemonAvailability(const DaemonState& state);

// Whether a pod has the set's template.
bool IsUpdatedDaemon(const api::Object& set, const api::Object& pod, std::string_view hash);

}  // namespace drakkar::controllers
