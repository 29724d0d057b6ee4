#include "scheduler/plugins/scheduling_gates/scheduling_gates.h"

#include "base/text/text.h"

namespace drakkar::scheduler {

bool SchedulingGates::MayHelp(const PodInfo&, const ClusterEvent& event) {
  return event.after->root()["spec"]["schedulingGates"].empty();
}

Status SchedulingGates::PreEnqueue(const PodInfo& pod) {
  const api::Value gates = pod.spec()["schedulingGates"];
  if (gates.empty()) return Status::Success();
  std::vector<std::string_view> names;
  for (api::Value gate : gates.elements()) names.push_back(gate["name"].str());
  return Status::Unresolvable(StrCat("waiting for scheduling gates: [", Join(names, " "), "]"));
}

}  // namespace drakkar::scheduler
