// Times, durations and ages: whatever parses is written as something that parses to the same
// moment.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/meta/age.h"
#include "api/meta/interface_address.h"
#include "api/meta/time.h"
#include "base/result/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  using namespace drakkar::api;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto time = ParseTime(text); time.ok()) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(*time);
    CHECK(ParseTime(FormatTime(*time)).value() == seconds);
    CHECK(ParseMicroTime(FormatMicroTime(*time)).value() ==
          std::chrono::floor<std::chrono::microseconds>(*time));
    CHECK(NormalizeTime(text).value() == FormatTime(*time));
  }
  if (const auto normal = NormalizeTime(text); normal.ok() && normal->size() == 20) {
    CHECK(NormalizeTime(*normal).value() == *normal);
  }
  if (IsNormalTime(text)) CHECK(NormalizeTime(text).value() == text);
  if (const auto time = ParseMicroTime(text); time.ok()) {
    CHECK(ParseMicroTime(FormatMicroTime(*time)).value() == *time);
    CHECK(NormalizeMicroTime(text).value() == FormatMicroTime(*time));
  }
  if (const auto duration = ParseDuration(text); duration.ok()) {
    CHECK(ParseDuration(FormatDuration(*duration)).value() == *duration);
    CHECK(!FormatAge(*duration).empty());
  }
  static_cast<void>(CheckInterfaceAddress(text));
  return 0;
}
