// Requests to the dashboard: the target in the first line, then headers. Whatever they are, only
// one that has the token or the cookie is allowed.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result/check.h"
#include "base/text/text.h"
#include "dashboard/gate/gate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  constexpr std::string_view kToken = "token-of-this-run";
  constexpr std::string_view kCookie = "cookie-of-this-run";
  const dashboard::Gate gate({.token = std::string(kToken), .cookie = std::string(kCookie)}, 8001);
  const std::string text(reinterpret_cast<const char*>(data), size);
  net::ServerRequest request;
  bool is_first = true;
  for (const std::string_view line : Split(text, '\n')) {
    const std::size_t at = line.find(is_first ? '?' : ':');
    const std::string left(line.substr(0, at));
    const std::string right(at == line.npos ? std::string_view() : line.substr(at + 1));
    if (is_first) {
      request.path = left;
      request.raw_query = right;
    } else {
      request.headers.Add(left, std::string(Trim(right)));
    }
    is_first = false;
  }
  const bool has_token = text.find(kToken) != std::string::npos;
  const bool has_cookie = text.find(kCookie) != std::string::npos;
  const dashboard::Gate::Verdict verdict = gate.Check(request);
  if (verdict.ok()) {
    CHECK(has_token || has_cookie);
    CHECK(has_token || !request.path.starts_with(dashboard::Gate::kApiPrefix));
    CHECK(dashboard::IsLoopbackHost(request.headers.Get("Host")));
  } else {
    CHECK(verdict.status >= 400 && !verdict.reason.empty());
    CHECK(verdict.reason.find(kToken) == std::string::npos);
  }
  if (gate.IsArrival(request)) CHECK(has_token);
  return 0;
}
