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
// RFC 3339 with exactly six fractional digits, as MicroTime requires.
Result<WallTime> ParseMicroTime(std::string_view text);
std::string FormatTime(WallTime time);       // "2025-06-07T08:09:10Z"; fractions are truncated
std::string FormatMicroTime(WallTime time);  // "2025-06-07T08:09:10.123456Z"

// The same moment as Kubernetes writes it (UTC, whole seconds or microseconds), also for years out
// of WallTime's range. Go's zero time, the first moment of year 1, gives "".
Result<std::string> NormalizeTime(std::string_view text);
Result<std::string> NormalizeMicroTime(std::string_view text);

// Whether NormalizeTime would return `text` unchanged. May return false for rare texts that it
// would not change.
bool IsNormalTime(std::string_view text);

// Go's durations: "1h2m3s", "1.5s", "100ms", "-2m".
Result<Duration> ParseDuration(std::string_view text);
std::string FormatDuration(Duration duration);  // "10m0s", "0s", "1.5µs"

}  // namespace drakkar::api
