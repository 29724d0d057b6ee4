#include <cstdint>
#include <string_view>

#include "base/result/check.h"
#include "cdi/spec_reader.h"
#include "cdi/spec_writer.h"

// Any bytes are read or refused; what was read is written and read back unchanged.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto spec = drakkar::cdi::ReadSpecJson({reinterpret_cast<const char*>(data), size});
  if (!spec.ok()) return 0;
  const auto again = drakkar::cdi::ReadSpecJson(drakkar::cdi::WriteSpecJson(*spec));
  CHECK(again.ok() && *again == *spec);
  return 0;
}
