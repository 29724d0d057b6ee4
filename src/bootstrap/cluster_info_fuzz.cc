// cluster-info comes from a server that is not verified yet: it is read within its limits or
// rejected, and what is read can be written and read again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result/check.h"
#include "bootstrap/cluster_info.h"
#include "bootstrap/token.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::bootstrap;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto token = ParseToken(text)) CHECK(token->ToString() == text);
  if (const auto info = ReadClusterInfo(text); info.ok()) {
    const auto again = ReadClusterInfo(WriteClusterInfo({"https://a:1", info->ca_pem}));
    CHECK(again.ok() && again->ca_pem == info->ca_pem);
    static_cast<void>(CaHashes(info->ca_pem).ok());
  }
  return 0;
}
