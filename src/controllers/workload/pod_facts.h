#pragma once

#include <optional>
#include <string_view>

#include "api/meta/object.h"
#include "base/env/clock.h"

// What controllers ask about a pod, and about conditions of any object. Pure.
namespace drakkar::controllers {

bool IsTerminal(const api::Object& pod);     // Succeeded or Failed
bool IsActive(const api::Object& pod);       // neither terminal nor being deleted
bool IsTerminating(const api::Object& pod);  // being deleted, but not terminal yet
bool IsReady(const api::Object& pod);
// When it became ready; nothing if it is not, or does not say.
std::optional<WallTime> ReadySince(const api::Object& pod);
// Ready for `min_ready` at least.
bool IsAvailable(const api::Object& pod, Duration min_ready, WallTime now);
// How long until a ready pod becomes available; nothing if it is available, or not ready.
std::optional<Duration> UntilAvailable(const api::Object& pod, Duration min_ready, WallTime now);

// The condition of a type; absent if there is none.
api::Value FindCondition(api::Value status, std::string_view type);

// The reference of the owner that controls the object; absent if nobody does.
api::Value ControllerOf(const api::Object& object);

// A time of an object; nothing if it is absent or not one.
std::optional<WallTime> TimeOf(api::Value time);

}  // namespace drakkar::controllers
