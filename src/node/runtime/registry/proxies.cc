#include "node/runtime/registry/proxies.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>

#include "base/hash/base64.h"
#include "base/text/text.h"
#include "net/socket/address_kind.h"

namespace drakkar::node {
namespace {

// Bytes of an address, 4 or 16; empty if it is none.
std::string AddressBytes(const std::string& text) {
  char bytes[16];
  if (::inet_pton(AF_INET, text.c_str(), bytes) == 1) return std::string(bytes, 4);
  if (::inet_pton(AF_INET6, text.c_str(), bytes) == 1) return std::string(bytes, 16);
  return "";
}

bool IsInNetwork(const std::string& address, const std::string& network, int bits) {
  if (address.size() != network.size()) return false;
  const auto whole = static_cast<std::size_t>(bits / 8);
  if (address.compare(0, whole, network, 0, whole) != 0) return false;
  if (bits % 8 == 0) return true;
  const int shift = 8 - bits % 8;
  return static_cast<unsigned char>(address[whole]) >> shift ==
         static_cast<unsigned char>(network[whole]) >> shift;
}

Result<std::optional<net::HttpProxy>> ParseProxy(const char* variable, const std::string& value) {
  std::string_view text = Trim(value);
  if (text.empty()) return std::optional<net::HttpProxy>();
  const auto fail = [&](std::string_view why) {
    // Without the value, which may contain a password.
    return InvalidArgument(
        StrCat(variable, ": ", why, "; expected http://[USER:PASSWORD@]HOST:PORT"));
  };
  if (const std::size_t scheme = text.find("://"); scheme != std::string_view::npos) {
    const std::string_view name = text.substr(0, scheme);
    if (!std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0; })) {
      return fail("it is not the address of a proxy");
    }
    if (ToLower(name) != "http") {
      return fail(StrCat("proxies of the scheme ", name, " are not supported"));
    }
    text.remove_prefix(scheme + 3);
  }
  net::HttpProxy proxy;
  const std::size_t path = text.find('/');
  const std::size_t at = text.substr(0, path).rfind('@');
  if (at != std::string_view::npos) {
    const std::string_view user = text.substr(0, at);
    const std::size_t colon = user.find(':');
    auto name = net::PercentDecode(user.substr(0, colon));
    auto password = net::PercentDecode(colon == std::string_view::npos ? std::string_view()
                                                                       : user.substr(colon + 1));
    if (!name.ok() || !password.ok()) return fail("the user and password are not well-formed");
    proxy.authorization = StrCat("Basic ", Base64Encode(StrCat(*name, ":", *password)));
    text.remove_prefix(at + 1);
  }
  const auto url = net::ParseUrl(StrCat("http://", text));
  if (!url.ok() || url->target != "/") return fail("it is not the address of a proxy");
  proxy.host = url->host;
  proxy.port = url->port;
  return std::optional(std::move(proxy));
}

}  // namespace

std::optional<ProxySettings::Exception> ProxySettings::ParseException(std::string_view text) {
  std::string entry = ToLower(Trim(text));
  if (entry.empty()) return std::nullopt;
  Exception exception;
  if (const std::size_t slash = entry.find('/'); slash != std::string::npos) {
    exception.address = AddressBytes(entry.substr(0, slash));
    const auto bits = ParseInt64(std::string_view(entry).substr(slash + 1));
    const auto most = static_cast<std::int64_t>(exception.address.size() * 8);
    if (exception.address.empty() || !bits || *bits < 0 || *bits > most) return std::nullopt;
    exception.prefix_bits = static_cast<int>(*bits);
    return exception;
  }
  // A port, but not the last part of an IPv6 address without brackets.
  const std::size_t colon = entry.rfind(':');
  const bool has_port = colon != std::string::npos && AddressBytes(entry).empty() &&
                        entry.find(']', colon) == std::string::npos;
  if (has_port) {
    const auto port = ParseInt64(std::string_view(entry).substr(colon + 1));
    if (!port || *port < 1 || *port > 65'535) return std::nullopt;
    exception.port = static_cast<std::uint16_t>(*port);
    entry.resize(colon);
  }
  if (entry.starts_with('[') && entry.ends_with(']')) entry = entry.substr(1, entry.size() - 2);
  exception.address = AddressBytes(entry);
  exception.prefix_bits = static_cast<int>(exception.address.size() * 8);
  if (!exception.address.empty()) return exception;
  if (entry.starts_with("*.")) entry.erase(0, 1);
  exception.only_below = entry.starts_with('.');
  exception.domain = exception.only_below ? entry : "." + entry;
  if (exception.domain.size() < 2) return std::nullopt;
  return exception;
}

Result<ProxySettings> ProxySettings::Parse(const std::string& http, const std::string& https,
                                           const std::string& none) {
  ProxySettings settings;
  ASSIGN_OR_RETURN(settings.http_, ParseProxy("HTTP_PROXY", http));
  ASSIGN_OR_RETURN(settings.https_, ParseProxy("HTTPS_PROXY", https));
  for (const std::string_view each : Split(none, ',')) {
    if (Trim(each) == "*") settings.excepts_all_ = true;
    // Others ignore entries that mean nothing, too: the variable is shared with other programs.
    if (auto exception = ParseException(each))
      settings.exceptions_.push_back(*std::move(exception));
  }
  return settings;
}

bool ProxySettings::IsExcepted(const net::Url& url) const {
  const std::string host = ToLower(url.host);
  if (excepts_all_ || host == "localhost" ||
      net::KindOfAddress(host) == net::AddressKind::kLoopback) {
    return true;
  }
  const std::string address = AddressBytes(host);
  for (const Exception& each : exceptions_) {
    if (each.port && *each.port != url.port) continue;
    if (!each.address.empty()) {
      if (IsInNetwork(address, each.address, each.prefix_bits)) return true;
      continue;
    }
    if (address.empty() && host.ends_with(each.domain)) return true;
    if (!each.only_below && host == std::string_view(each.domain).substr(1)) return true;
  }
  return false;
}

std::optional<net::HttpProxy> ProxySettings::ProxyFor(const net::Url& url) const {
  const std::optional<net::HttpProxy>& proxy = url.scheme == "https" ? https_ : http_;
  if (!proxy || IsExcepted(url)) return std::nullopt;
  return proxy;
}

}  // namespace drakkar::node
