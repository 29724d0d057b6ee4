#pragma once

#include <string>
#include <string_view>

#include "base/env/clock.h"
#include "base/result/result.h"

namespace drakkar::api {

// The times and durations of API objects. Errors are kInvalidArgument in the words of Go's time
// package.

// RFC 3339 with or without a fraction, any offset.
Result<WallTime> ParseTime(std::string_view text);
// RFC 3339 with exactly six digits of fraction, as MicroTime wants it.
Result<WallTime> ParseMicroTime(std::string_view text);
std::string FormatTime(WallTime time);       // "2025-06-07T08:09:10Z"; fractions are cut off
std::string FormatMicroTime(WallTime time);  // "2025-06-07T08:09:10.123456Z"

// The same moment as Kubernetes writes it (in UTC, whole seconds or microseconds), also for years
// that WallTime does not reach. Go's zero time, the first moment of year 1, gives "".
Result<std::string> NormalizeTime(std::string_view text);
Result<std::string> NormalizeMicroTime(std::string_view text);

// Whether NormalizeTime would give `text` as it is; false for some rare ones all the same.
bool IsNormalTime(std::string_view text);

// Go's durations: "1h2m3s", "1.5s", "100ms", "-2m".
Result<Duration> ParseDuration(std::string_view text);
std::string FormatDuration(Duration duration);  // "10m0s", "0s", "1.5µs"

}  // namespace drakkar::api
