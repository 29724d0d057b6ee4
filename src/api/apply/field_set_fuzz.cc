#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "api/apply/field_set.h"

// Reading ends within its bounds; what was read is written, and reads as the same set again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::api;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Arena arena;
  const auto set = ParseFieldsV1(text, arena);
  if (!set.ok()) return 0;
  std::string written;
  AppendFieldsV1(written, *set);
  const auto again = ParseFieldsV1(written, arena);
  if (!again.ok()) std::abort();
  (void)Subtract(*set, *again, kOwned, arena);
  (void)Union(*set, *again, kOwned, arena);
  return 0;
}
