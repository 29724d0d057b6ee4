#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/env/clock.h"
#include "base/exec/event_loop.h"
#include "base/state/state_machine.h"

// The smaller state machines of a pod, which go on beside its stage (pod_stage.h).
namespace drakkar::node {

// The status on its way to the API.
enum class StatusWrite : std::uint8_t {
  kIdle,
  kWriting,
  kRefreshing,  // somebody else has written the pod: reads it again
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

// A call that needs the pod's drivers: preparing, unpreparing, or asking again for devices that an
// earlier agent had prepared.
enum class DriverCall : std::uint8_t {
  kIdle,
  kInFlight,
  // A driver came while the call was in flight, which may have gone to its predecessor: if it
  // fails, the next one does not wait for the backoff.
  kOutdated,
  kFailed,  // waits for its backoff, or for a driver
  kDone,    // is never needed again
};
enum class DriverEvent : std::uint8_t {
  kBegun,
  kSucceeded,
  kCallFailed,
  kDriverUsable,
  kDropped,    // what failed is not wanted any more
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

// Stopping one attempt of a container, whoever asked for it.
enum class ContainerStop : std::uint8_t {
  kNotRequested,
  kPreStopHook,  // the hook runs; the stop signal follows
  kStopping,     // the runtime was asked
  kFailed,       // the runtime could not: it is asked again, the hook is not repeated
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

// A container is not ready, and holds up those that start after it, until its hook has ended.
enum class PostStartHook : std::uint8_t { kNone, kRunning, kEnded };

// What the worker has begun with one attempt of a container; forgotten when the attempt is removed
// from the runtime.
struct ContainerAttempt {
  StateMachine<kStopTable> stop{ContainerStop::kNotRequested};
  MonotonicTime kill_at{};  // the earliest deadline anybody asked for
  PostStartHook post_start = PostStartHook::kNone;
  // Of hooks that sleep. Both hooks may run at a time.
  TimerHandle post_start_timer, pre_stop_timer;
};

// Work repeated beside everything else, never twice at a time.
struct Chore {
  enum class State : std::uint8_t { kIdle, kInFlight };
  State state = State::kIdle;
  MonotonicTime due{};
};

}  // namespace drakkar::node
