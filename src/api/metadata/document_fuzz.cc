// No file content crashes the reader, and whatever it accepts survives a round trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "api/metadata/document.h"
#include "api/metadata/validation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::metadata;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = DecodeDocument(text);
  if (!document.ok()) return 0;
  static_cast<void>(ValidateDocument(*document));
  const auto metadata = ToDeviceMetadata(*document);
  if (!metadata.ok()) return 0;
  const std::vector<std::string> versions = {std::string(kV1beta1)};
  const auto again = DecodeMetadata(EncodeMetadata(*metadata, versions));
  if (!again.ok() || *again != *metadata) std::abort();
  return 0;
}
