// HTTP_PROXY and NO_PROXY, and a URL to fetch: one line each. A password is in no error.
#include "node/runtime/registry/proxies.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result/check.h"
#include "base/text/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string_view> lines = Split(text, '\n');
  const auto line = [&](std::size_t i) { return i < lines.size() ? lines[i] : std::string_view(); };
  const std::string proxy(line(0)), none(line(1));
  const auto settings = node::ProxySettings::Parse(proxy, proxy, none);
  if (!settings.ok()) {
    const std::size_t at = proxy.find('@');
    const std::size_t colon = proxy.substr(0, at).rfind(':');
    if (at != std::string::npos && colon != std::string::npos && at - colon > 12) {
      const std::string password = proxy.substr(colon + 1, at - colon - 1);
      const bool is_elsewhere = proxy.find(password) != colon + 1;
      CHECK(is_elsewhere || settings.error().message.find(password) == std::string::npos);
    }
    return 0;
  }
  for (const char* own : {"https://127.0.0.1:5000/", "http://localhost/", "https://[::1]/"}) {
    CHECK(!settings->ProxyFor(*net::ParseUrl(own)));
  }
  const auto url = net::ParseUrl(line(2));
  if (!url.ok()) return 0;
  if (const auto used = settings->ProxyFor(*url)) {
    CHECK(!used->host.empty() && used->port != 0);
    // It becomes a header.
    CHECK(used->authorization.find_first_of("\r\n") == std::string::npos);
  }
  return 0;
}
