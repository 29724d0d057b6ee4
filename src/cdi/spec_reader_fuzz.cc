#include <cstdint>
#include <string_view>

#include "base/result/check.h"
#include "cdi/spec_reader.h"
#include "cdi/spec_writer.h"

// Any input is read or rejected; a spec read from JSON or YAML survives a round trip through the
// JSON writer and reader.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto read : {drakkar::cdi::ReadSpecJson, drakkar::cdi::ReadSpecYaml}) {
    const auto spec = read(text);
    if (!spec.ok()) continue;
    const auto again = drakkar::cdi::ReadSpecJson(drakkar::cdi::WriteSpecJson(*spec));
    CHECK(again.ok() && *again == *spec);
  }
  return 0;
}
