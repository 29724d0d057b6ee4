#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result/check.h"
#include "net/http/url.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::net;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto url = ParseUrl(text); url.ok()) {
    CHECK(url->port != 0 && !url->host.empty() && url->target.starts_with("/"));
    const auto again = ParseUrl(url->scheme + "://" + url->Authority() + url->target);
    CHECK(again.ok() && again->host == url->host && again->port == url->port);
  }
  if (auto decoded = PercentDecode(text); decoded.ok()) {
    CHECK(PercentDecode(PercentEncode(*decoded)).value() == *decoded);
  }
  (void)Query::Parse(text);
  (void)ParseTarget(text);
  return 0;
}
