#include "node/pods/pod_side_states.h"

namespace drakkar::node {

std::string_view Name(StatusWrite state) {
  switch (state) {
    case StatusWrite::kIdle:
      return "Idle";
    case StatusWrite::kWriting:
      return "Writing";
    case StatusWrite::kRefreshing:
      return "Refreshing";
  }
  return "?";
}

std::string_view Name(StatusEvent event) {
  switch (event) {
    case StatusEvent::kBegun:
      return "Begun";
    case StatusEvent::kAnswered:
      return "Answered";
    case StatusEvent::kConflicted:
      return "Conflicted";
  }
  return "?";
}

std::string_view Name(DriverCall state) {
  switch (state) {
    case DriverCall::kIdle:
      return "Idle";
    case DriverCall::kInFlight:
      return "InFlight";
    case DriverCall::kOutdated:
      return "Outdated";
    case DriverCall::kFailed:
      return "Failed";
    case DriverCall::kDone:
      return "Done";
  }
  return "?";
}

std::string_view Name(DriverEvent event) {
  switch (event) {
    case DriverEvent::kBegun:
      return "Begun";
    case DriverEvent::kSucceeded:
      return "Succeeded";
    case DriverEvent::kCallFailed:
      return "CallFailed";
    case DriverEvent::kDriverUsable:
      return "DriverUsable";
    case DriverEvent::kDropped:
      return "Dropped";
    case DriverEvent::kNotNeeded:
      return "NotNeeded";
  }
  return "?";
}

std::string_view Name(ContainerStop state) {
  switch (state) {
    case ContainerStop::kNotRequested:
      return "NotRequested";
    case ContainerStop::kPreStopHook:
      return "PreStopHook";
    case ContainerStop::kStopping:
      return "Stopping";
    case ContainerStop::kFailed:
      return "Failed";
    case ContainerStop::kStopped:
      return "Stopped";
  }
  return "?";
}

std::string_view Name(StopEvent event) {
  switch (event) {
    case StopEvent::kHookBegun:
      return "HookBegun";
    case StopEvent::kRuntimeAsked:
      return "RuntimeAsked";
    case StopEvent::kRuntimeFailed:
      return "RuntimeFailed";
    case StopEvent::kRuntimeStopped:
      return "RuntimeStopped";
  }
  return "?";
}

}  // namespace drakkar::node
