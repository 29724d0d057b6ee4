// No input crashes the reader, and every record that can be read survives a round trip.
#include <cstddef>
#include <cstdint>

#include "base/result/check.h"
#include "sdk/driver/metadata/claim_record.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::driver;
  const auto record = ReadClaimRecord({reinterpret_cast<const char*>(data), size});
  if (!record.ok()) return 0;
  const auto again = ReadClaimRecord(WriteClaimRecord(*record));
  CHECK(again.ok() && *again == *record);
  return 0;
}
