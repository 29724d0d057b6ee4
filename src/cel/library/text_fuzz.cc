// Parsers of CEL's functions: addresses, URLs, durations, timestamps. Accepted input prints as
// something that parses to the same value.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result/check.h"
#include "cel/library/ip_address.h"
#include "cel/library/time.h"
#include "cel/library/url.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::cel;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto address = ParseIpAddress(text); address.ok()) {
    CHECK(ParseIpAddress(address->ToString()).value() == *address);
  }
  if (const auto prefix = ParseIpPrefix(text); prefix.ok()) {
    CHECK(ParseIpPrefix(prefix->ToString()).value() == *prefix);
    CHECK(prefix->Masked().Contains(prefix->address));
  }
  if (const auto url = ParseUrl(text); url.ok()) {
    CHECK(url->host.size() >= url->Hostname().size() + url->Port().size());
    static_cast<void>(url->QueryValues());
  }
  if (const auto duration = ParseDuration(text)) CHECK(!DurationText(*duration).empty());
  if (const auto instant = ParseTimestamp(text)) {
    CHECK(instant->seconds >= kMinTimestampSeconds && instant->seconds <= kMaxTimestampSeconds);
    const auto again = ParseTimestamp(TimestampText(*instant));
    CHECK(again && again->seconds == instant->seconds &&
          again->nanoseconds == instant->nanoseconds);
  }
  if (const auto offset = ZoneOffset(text, 1'700'000'000))
    CHECK(*offset > -100 * 3600 && *offset < 100 * 3600);
  return 0;
}
