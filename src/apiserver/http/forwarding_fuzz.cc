// What is passed on to pods, services and nodes, and what comes back: the name in the path, the
// headers, and where a redirect leads.
#include "apiserver/http/forwarding.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "apiserver/http/proxy_target.h"
#include "apiserver/http/request_forwarder.h"
#include "apiserver/request/identity_headers.h"
#include "base/result/check.h"
#include "base/text/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  using namespace drakkar::apiserver;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string_view> lines = Split(text, '\n');
  if (const auto name = ParseProxyName(lines[0])) {
    CHECK(!name->name.empty() && name->name.find(':') == std::string::npos);
    CHECK(name->scheme.empty() || name->scheme == "http" || name->scheme == "https");
  }
  const std::string prefix = "/api/v1/namespaces/d/pods/p/proxy";
  const std::string location(lines[0]);
  const std::string leads = RewrittenLocation(location, prefix, {"10.0.0.7:80", "server"});
  const bool is_below =
      leads.starts_with(prefix) &&
      (leads.size() == prefix.size() || leads.find_first_of("/?#", prefix.size()) == prefix.size());
  const bool is_path = location.starts_with('/') && !location.starts_with("//");
  CHECK(is_below || (leads == location && !is_path));
  net::ServerRequest request;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::size_t colon = lines[i].find(':');
    if (colon == std::string_view::npos || !net::IsToken(lines[i].substr(0, colon))) continue;
    request.headers.Add(std::string(lines[i].substr(0, colon)),
                        std::string(Trim(lines[i].substr(colon + 1))));
  }
  for (const auto& [header, value] : HeadersToForward(request)) {
    const std::string lower = ToLower(header);
    CHECK(!lower.starts_with("impersonate-") && !IsIdentityHeader(header));
    CHECK(lower != "authorization" && lower != "proxy-authorization");
    CHECK(lower != "connection" && lower != "upgrade" && lower != "transfer-encoding");
    CHECK(lower != "content-length");
    for (const std::string_view each : Split(value, ',')) {
      CHECK(lower != "sec-websocket-protocol" ||
            !Trim(each).starts_with("base64url.bearer.authorization.k8s.io."));
    }
  }
  for (const auto& [header, value] : HeadersOfAnswer(request.headers)) {
    CHECK(!net::EqualsIgnoreCase(header, "connection"));
    CHECK(!net::EqualsIgnoreCase(header, "transfer-encoding"));
  }
  return 0;
}
