#include "cli/age.h"

#include "api/meta/age.h"
#include "api/meta/time.h"

namespace drakkar::cli {

std::string AgeOf(std::string_view time, WallTime now) {
  const Result<WallTime> parsed = api::ParseTime(time);
  return parsed.ok() ? api::FormatAge(now - *parsed) : "<unknown>";
}

}  // namespace drakkar::cli
