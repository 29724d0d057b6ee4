#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/env/clock.h"
#include "base/exec/event_loop.h"
#include "base/state/state_machine.h"

// The smaller state machines of a pod, which run in parallel with its stage (pod_stage.h).
namespace drakkar::node {

// Writing the status to the API.
enum class StatusWrite : std::uint8_t {
  kIdle,
  kWriting,
  kRefreshing,  // the write conflicted; fetching the current object
};
enum class StatusEvent : std::uint8_t { kBegun, kAnswered, kConflicted };

std::string_view Name(StatusWrite state);
std::string_view Name(StatusEvent event);

inline constexpr std::array kStatusWrites = {StatusWrite::kIdle, StatusWrite::kWriting,
                                             StatusWrite::kRefreshing};
inline constexpr TransitionTable<StatusWrite, StatusEvent, 4> kStatusTable = {{
    {StatusWrite::kIdle, StatusEvent::kBegun, StatusWrite::kWriting},
    {StatusWrite::kWriting, StatusEvent::kAnswered, StatusWrite::kIdle},
    {StatusWrite::kWriting, StatusEvent::kConflicted, StatusWrite::kRefreshing},
    {StatusWrite::kRefreshing, StatusEvent::kAnswered, StatusWrite::kIdle},
}};
static_assert(FindFlaw(kStatusTable, kStatusWrites, {}) == TableFlaw::kNone);

// A call to the pod's drivers: prepare, unprepare, or recovery of devices that a previous agent
// prepared.
enum class DriverCall : std::uint8_t {
  kIdle,
  kInFlight,
  // A driver registered while the call was in flight. The call may have gone to its predecessor, so
  // if it fails, the next one does not back off.
  kOutdated,
  kFailed,  // waits for its backoff or for a driver
  kDone,    // never needed again
};
enum class DriverEvent : std::uint8_t {
  kBegun,
  kSucceeded,
  kCallFailed,
  kDriverUsable,
  kDropped,    // the failed call is no longer wanted
  kNotNeeded,  // all devices are known
};

std::string_view Name(DriverCall state);
std::string_view Name(DriverEvent event);

inline constexpr std::array kDriverCalls = {DriverCall::kIdle, DriverCall::kInFlight,
                                            DriverCall::kOutdated, DriverCall::kFailed,
                                            DriverCall::kDone};
inline constexpr TransitionTable<DriverCall, DriverEvent, 12> kDriverTable = {{
    {DriverCall::kIdle, DriverEvent::kBegun, DriverCall::kInFlight},
    {DriverCall::kFailed, DriverEvent::kBegun, DriverCall::kInFlight},
    {DriverCall::kInFlight, DriverEvent::kSucceeded, DriverCall::kIdle},
    {DriverCall::kOutdated, DriverEvent::kSucceeded, DriverCall::kIdle},
    {DriverCall::kInFlight, DriverEvent::kCallFailed, DriverCall::kFailed},
    {DriverCall::kOutdated, DriverEvent::kCallFailed, DriverCall::kFailed},
    {DriverCall::kInFlight, DriverEvent::kDriverUsable, DriverCall::kOutdated},
    {DriverCall::kOutdated, DriverEvent::kDriverUsable, DriverCall::kOutdated},
    {DriverCall::kFailed, DriverEvent::kDriverUsable, DriverCall::kIdle},
    {DriverCall::kFailed, DriverEvent::kDropped, DriverCall::kIdle},
    {DriverCall::kIdle, DriverEvent::kNotNeeded, DriverCall::kDone},
    {DriverCall::kFailed, DriverEvent::kNotNeeded, DriverCall::kDone},
}};
static_assert(FindFlaw(kDriverTable, kDriverCalls, {DriverCall::kDone}) == TableFlaw::kNone);

constexpr bool IsInFlight(DriverCall state) {
  return state == DriverCall::kInFlight || state == DriverCall::kOutdated;
}

// Stopping one container attempt, regardless of who requested it.
enum class ContainerStop : std::uint8_t {
  kNotRequested,
  kPreStopHook,  // the hook runs before the stop signal
  kStopping,     // the runtime was asked
  kFailed,       // retried without running the hook again
  kStopped,
};
enum class StopEvent : std::uint8_t { kHookBegun, kRuntimeAsked, kRuntimeFailed, kRuntimeStopped };

std::string_view Name(ContainerStop state);
std::string_view Name(StopEvent event);

inline constexpr std::array kContainerStops = {
    ContainerStop::kNotRequested, ContainerStop::kPreStopHook, ContainerStop::kStopping,
    ContainerStop::kFailed, ContainerStop::kStopped};
inline constexpr TransitionTable<ContainerStop, StopEvent, 7> kStopTable = {{
    {ContainerStop::kNotRequested, StopEvent::kHookBegun, ContainerStop::kPreStopHook},
    {ContainerStop::kNotRequested, StopEvent::kRuntimeAsked, ContainerStop::kStopping},
    {ContainerStop::kPreStopHook, StopEvent::kRuntimeAsked, ContainerStop::kStopping},
    // With an earlier deadline.
    {ContainerStop::kStopping, StopEvent::kRuntimeAsked, ContainerStop::kStopping},
    {ContainerStop::kStopping, StopEvent::kRuntimeFailed, ContainerStop::kFailed},
    {ContainerStop::kStopping, StopEvent::kRuntimeStopped, ContainerStop::kStopped},
    {ContainerStop::kFailed, StopEvent::kRuntimeAsked, ContainerStop::kStopping},
}};
static_assert(FindFlaw(kStopTable, kContainerStops, {ContainerStop::kStopped}) == TableFlaw::kNone);

// Until its hook has ended, a container is not ready and blocks the start of those after it.
enum class PostStartHook : std::uint8_t { kNone, kRunning, kEnded };

// What the worker has done with one container attempt. Dropped when the runtime removes the
// attempt.
struct ContainerAttempt {
  StateMachine<kStopTable> stop{ContainerStop::kNotRequested};
  MonotonicTime kill_at{};  // the earliest deadline requested so far
  PostStartHook post_start = PostStartHook::kNone;
  bool restarts_for_change = false;
  // For sleep hooks. Both hooks may run at the same time.
  TimerHandle post_start_timer, pre_stop_timer;
};

// Periodic work that runs in parallel with everything else, never twice at a time.
struct Chore {
  enum class State : std::uint8_t { kIdle, kInFlight };
  State state = State::kIdle;
  MonotonicTime due{};
};

}  // namespace drakkar::node
