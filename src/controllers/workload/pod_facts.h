#pragma once

#include <optional>
#include <string_view>

#include "api/meta/object.h"
#include "base/env/clock.h"

// Facts about pods, and about conditions of any object. Pure functions.
namespace drakkar::controllers {

bool IsTerminal(const api::Object& pod);     // Succeeded or Failed
bool IsActive(const api::Object& pod);       // neither terminal nor being deleted
bool IsTerminating(const api::Object& pod);  // being deleted, but not terminal yet
bool IsReady(const api::Object& pod);
// When the pod became ready; nullopt if it is not ready or does not say when.
std::optional<WallTime> ReadySince(const api::Object& pod);
// Whether the pod has been ready for at least `min_ready`.
bool IsAvailable(const api::Object& pod, Duration min_ready, WallTime now);
// How long until a ready pod becomes available; nullopt if it is available or not ready.
std::optional<Duration> UntilAvailable(const api::Object& pod, Duration min_ready, WallTime now);

// The condition of a type; absent if there is none.
api::Value FindCondition(api::Value status, std::string_view type);

// The reference to the owner that controls the object; absent if it has none.
api::Value ControllerOf(const api::Object& object);

// Parses a timestamp of an object; nullopt if it is absent or invalid.
std::optional<WallTime> TimeOf(api::Value time);

}  // namespace drakkar::controllers
