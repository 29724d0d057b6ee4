#include "dashboard/gate/gate.h"

#include <algorithm>

#include "base/text/text.h"
#include "net/tls/crypto.h"

namespace drakkar::dashboard {
namespace {

std::string RandomHex(Random& random, int words) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int word = 0; word < words; ++word) {
    std::uint64_t bits = random.Next();
    for (int digit = 0; digit < 16; ++digit, bits >>= 4) text += kDigits[bits & 15];
  }
  return text;
}

// A browser that follows a link or opens an address, in a tab of its own.
bool IsNavigation(const net::Headers& headers) {
  return headers.Get("Sec-Fetch-Mode") == "navigate" && headers.Get("Sec-Fetch-Dest") == "document";
}

std::string_view TokenOf(const net::ServerRequest& request) {
  const Result<net::Query>& query = request.query();
  return query.ok() ? query->Get("token") : std::string_view();
}

}  // namespace

Secrets Secrets::Make(Random& random) {
  constexpr int kWords = 4;  // 256 bits
  return {.token = RandomHex(random, kWords), .cookie = RandomHex(random, kWords)};
}

bool IsLoopbackHost(std::string_view host) {
  for (const std::string_view name : {"127.0.0.1", "localhost", "[::1]"}) {
    if (host.size() < name.size() || !net::EqualsIgnoreCase(host.substr(0, name.size()), name)) {
      continue;
    }
    const std::string_view rest = host.substr(name.size());
    if (rest.empty()) return true;
    if (rest[0] == ':' && rest.size() > 1 && rest.size() <= 6 &&
        std::all_of(rest.begin() + 1, rest.end(), IsDigit)) {
      return true;
    }
  }
  return false;
}

Gate::Gate(Secrets secrets, std::uint16_t port)
    // Cookies are shared between the ports of a host, so the name includes the port.
    : secrets_(std::move(secrets)), cookie_name_(StrCat("drakkar-dashboard-", port)) {}

Gate::Verdict Gate::Check(const net::ServerRequest& request) const {
  if (request.method != net::Method::kGet) return {405, "the dashboard only answers GET"};
  const net::Headers& headers = request.headers;
  if (headers.Count("Host") != 1 || !IsLoopbackHost(headers.Get("Host"))) {
    return {403, "open the dashboard as 127.0.0.1 or localhost; other host names are refused"};
  }
  if (const std::string* origin = headers.Find("Origin");
      origin != nullptr && *origin != StrCat("http://", headers.Get("Host"))) {
    return {403, "requests from other origins are refused"};
  }
  const bool is_api = request.path.starts_with(kApiPrefix);
  const std::string_view site = headers.Get("Sec-Fetch-Site");
  if (!site.empty() && site != "same-origin" && site != "none" &&
      (is_api || !IsNavigation(headers))) {
    return {403, "requests from other sites are refused"};
  }
  if (is_api) {
    if (net::EqualsConstantTime(headers.Get("Authorization"), StrCat("Bearer ", secrets_.token))) {
      return {};
    }
    return {401, "the token is missing or wrong"};
  }
  if (IsArrival(request) || HasCookie(request)) return {};
  return {401, "open the URL that `drakkar dashboard` printed: it contains a token"};
}

bool Gate::IsArrival(const net::ServerRequest& request) const {
  return request.path == "/" && net::EqualsConstantTime(TokenOf(request), secrets_.token);
}

bool Gate::HasCookie(const net::ServerRequest& request) const {
  for (const auto& [name, value] : request.headers) {
    if (!net::EqualsIgnoreCase(name, "Cookie")) continue;
    for (const std::string_view part : Split(value, ';')) {
      const std::string_view pair = Trim(part);
      const std::size_t equals = pair.find('=');
      if (equals == std::string_view::npos || pair.substr(0, equals) != cookie_name_) continue;
      if (net::EqualsConstantTime(pair.substr(equals + 1), secrets_.cookie)) return true;
    }
  }
  return false;
}

net::Headers Gate::Welcome() const {
  net::Headers headers = SafetyHeaders("text/plain; charset=utf-8");
  headers.Add("Location", StrCat("/#token=", secrets_.token));
  headers.Add("Set-Cookie",
              StrCat(cookie_name_, "=", secrets_.cookie, "; Path=/; HttpOnly; SameSite=Lax"));
  return headers;
}

std::string Gate::ArrivalTarget() const {
  return StrCat("/?token=", secrets_.token);
}

net::Headers SafetyHeaders(std::string content_type) {
  return {{"Content-Type", std::move(content_type)},
          {"Content-Security-Policy",
           "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
           "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
           "require-trusted-types-for 'script'"},
          {"X-Content-Type-Options", "nosniff"},
          {"X-Frame-Options", "DENY"},
          {"Referrer-Policy", "no-referrer"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Cache-Control", "no-store"}};
}

}  // namespace drakkar::dashboard
