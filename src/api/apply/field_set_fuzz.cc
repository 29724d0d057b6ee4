#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "api/apply/field_set.h"

// Parsing stays within its bounds, and writing and parsing again gives the same set.
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
