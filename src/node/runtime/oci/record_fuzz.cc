// What the embedded runtime parses: its records, conmon's report, an image's users. The first byte
// chooses. A record must round-trip.
#include "node/runtime/oci/record.h"

#include <cstddef>
#include <cstdint>

#include "base/result/check.h"
#include "node/runtime/json.h"
#include "node/runtime/oci/conmon.h"
#include "node/runtime/oci/user_lookup.h"

namespace {

template <typename Parse>
void RoundTrip(std::string_view text, Parse parse) {
  const auto record = parse(text);
  if (!record.ok()) return;
  const auto again = parse(drakkar::node::WriteRecord(*record));
  CHECK(again.ok() && *again == *record);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::node;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'c':
      RoundTrip(text, ParseContainerRecord);
      break;
    case 's':
      RoundTrip(text, ParseSandboxRecord);
      break;
    case 'r':
      if (const auto pid = ParseConmonReport(text); pid.ok()) CHECK(*pid > 0);
      break;
    case 'm':
      CHECK(MeaningfulLine(text).find('\n') == std::string::npos);
      break;
    case 'j':
      static_cast<void>(ParseJson(text).ok());
      break;
    case 'u': {  // who, passwd and group, separated by zero bytes
      const std::size_t first = std::min(text.find('\0'), text.size());
      const std::string_view rest = text.substr(std::min(first + 1, text.size()));
      const std::size_t second = std::min(rest.find('\0'), rest.size());
      static_cast<void>(LookUpUser(text.substr(0, first), rest.substr(0, second),
                                   rest.substr(std::min(second + 1, rest.size())))
                            .ok());
      break;
    }
  }
  return 0;
}
