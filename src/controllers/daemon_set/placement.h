#pragma once

#include <optional>
#include <string>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "device/node_selector.h"

namespace drakkar::controllers {

// Where the pods of a DaemonSet belong, read once per DaemonSet from its template: node name, node
// selector, required node affinity, and its tolerations, including those that every daemon pod has.
// Immutable.
class DaemonPlacement {
 public:
  explicit DaemonPlacement(const api::Object& set);

  bool ShouldRun(const api::Object& node) const;
  // Whether a pod that runs there may stay: taints that only prevent scheduling do not evict it.
  bool MayStay(const api::Object& node) const;

  // The tolerations of its pods.
  const api::TreePtr& tolerations() const { return tolerations_; }

 private:
  bool Selects(const api::Object& node) const;

  api::TreePtr tree_;  // the set's
  api::Value spec_;    // of the template, in `tree_`
  std::optional<device::NodeSelector> affinity_;
  api::TreePtr tolerations_;
};

// The node that a daemon pod is intended for: the one it is bound to, or the one its affinity
// names. "" if the pod names none.
std::string_view TargetNode(const api::Object& pod);

// Restricts a pod to one node: the node's name replaces the template's required node affinity.
void AimAtNode(api::Draft& pod_spec, std::string_view node);

}  // namespace drakkar::controllers
