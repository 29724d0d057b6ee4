#include "answers/why/queue_state.h"

#include <vector>

#include "api/meta/age.h"
#include "base/text/text.h"

namespace drakkar::answers {
namespace {

using Place = scheduler::PodState::Place;

std::string Attempts(const scheduler::PodState& state) {
  if (state.attempts == 0) return "not tried yet";
  std::string text =
      StrCat("tried ", state.attempts == 1 ? "once" : StrCat(state.attempts, " times"));
  if (!state.rejected_by.empty()) {
    text += StrCat(state.attempts == 1 ? ", rejected by " : ", last rejected by ",
                   Join(state.rejected_by, ", "));
  }
  return text;
}

}  // namespace

std::string DescribeState(const scheduler::PodState& state) {
  std::vector<std::string> parts;
  switch (state.place) {
    case Place::kUnknown:
    case Place::kGated:
    case Place::kBinding:
      break;
    case Place::kReady:
      parts = {Attempts(state), "next attempt at once"};
      break;
    case Place::kBackoff:
      parts = {Attempts(state), StrCat("next attempt in ", api::FormatAge(state.retry_in))};
      break;
    case Place::kUnschedulable:
      parts = {Attempts(state), "next attempt when a change in the cluster may help"};
      break;
  }
  if (!state.nominated_node.empty() && state.place != Place::kBinding) {
    parts.push_back(StrCat("node ", state.nominated_node, " keeps room for it"));
  }
  if (state.failed_devices > 0) {
    parts.push_back(StrCat(state.failed_devices, state.failed_devices == 1
                                                     ? " device that failed for it is avoided"
                                                     : " devices that failed for it are avoided"));
  }
  return Join(parts, "; ");
}

}  // namespace drakkar::answers
