#include "node/probes/http_probe.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text/text.h"
#include "net/http/url.h"

namespace drakkar::node {
namespace {

constexpr std::string_view kHexDigits = "0123456789ABCDEF";

bool IsHexDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool IsControl(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

// Whether `text` can be read as a URL reference at all.
bool IsReference(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (IsControl(text[i])) return false;
    if (text[i] != '%') continue;
    if (i + 2 >= text.size() || !IsHexDigit(text[i + 1]) || !IsHexDigit(text[i + 2])) return false;
  }
  return true;
}

// Percent-encodes characters that are invalid in a request target, and those in `also`.
std::string Encode(std::string_view text, std::string_view also) {
  std::string out;
  for (const char c : text) {
    const bool plain = c > 0x20 && c < 0x7f && c != '"' && c != '<' && c != '>' && c != '\\' &&
                       c != '^' && c != '`' && c != '{' && c != '|' && c != '}';
    if (plain && also.find(c) == std::string_view::npos) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHexDigits[byte >> 4];
    out += kHexDigits[byte & 15];
  }
  return out;
}

std::string TargetOf(std::string_view path) {
  std::string target =
      IsReference(path) ? Encode(path.substr(0, path.find('#')), "") : Encode(path, "%?#");
  if (!target.starts_with('/')) target.insert(0, "/");
  return target;
}

std::string HostAndPort(std::string_view host, int port) {
  if (host.find(':') != std::string_view::npos && !host.starts_with('[')) {
    return StrCat("[", host, "]:", port);
  }
  return StrCat(host, ":", port);
}

// RFC 3986 section 5.2.4.
std::string RemoveDotSegments(std::string_view path) {
  std::vector<std::string_view> kept;
  const auto segments = Split(path.substr(1), '/');
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const bool last = i + 1 == segments.size();
    if (segments[i] == "..") {
      if (!kept.empty()) kept.pop_back();
      if (last) kept.push_back("");
    } else if (segments[i] == ".") {
      if (last) kept.push_back("");
    } else {
      kept.push_back(segments[i]);
    }
  }
  return StrCat("/", Join(kept, "/"));
}

// RFC 3986 section 5.2, for a base that has a host.
std::string ResolveReference(const net::Url& base, const std::string& reference) {
  const std::string origin = StrCat(base.scheme, "://", HostAndPort(base.host, base.port));
  if (reference.starts_with("//")) return StrCat(base.scheme, ":", reference);
  const std::size_t colon = reference.find(':');
  if (colon != std::string::npos && colon < reference.find_first_of("/?#")) return reference;
  const std::string base_path = base.target.substr(0, base.target.find('?'));
  if (reference.starts_with('?')) return StrCat(origin, base_path, reference);
  std::string_view path = std::string_view(reference).substr(0, reference.find('?'));
  const std::string query = reference.substr(path.size());
  std::string merged(path);
  if (!merged.starts_with('/')) {
    merged = StrCat(base_path.substr(0, base_path.rfind('/') + 1), path);
  }
  return StrCat(origin, RemoveDotSegments(merged), query);
}

}  // namespace

net::ClientRequest MakeProbeRequest(const HttpProbe& probe, const std::string& version) {
  net::ClientRequest request;
  request.url = StrCat(ToLower(probe.scheme), "://", HostAndPort(probe.host, probe.port),
                       TargetOf(probe.path));
  for (const auto& [name, value] : probe.headers) {
    // An empty Host means the URL's host.
    if (net::EqualsIgnoreCase(name, "Host") &&
        (value.empty() || request.headers.Find("Host") != nullptr)) {
      continue;
    }
    request.headers.Add(name, value);
  }
  if (request.headers.Find("User-Agent") == nullptr) {
    request.headers.Set("User-Agent", StrCat(probe.user_agent, "/", version));
  } else if (request.headers.Get("User-Agent").empty()) {
    request.headers.Remove("User-Agent");
  }
  if (request.headers.Find("Accept") == nullptr) {
    request.headers.Set("Accept", "*/*");
  } else if (request.headers.Get("Accept").empty()) {
    request.headers.Remove("Accept");
  }
  request.headers.Set("Connection", "close");
  return request;
}

Result<std::optional<net::ClientRequest>> FollowRedirect(const net::ClientRequest& sent,
                                                         const std::string& first_host, int status,
                                                         const net::Headers& headers) {
  const bool redirects =
      status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
  const std::string location(headers.Get("Location"));
  if (!redirects || location.empty()) return std::optional<net::ClientRequest>();
  ASSIGN_OR_RETURN(const net::Url base, net::ParseUrl(sent.url));
  const std::string reference = Encode(location.substr(0, location.find('#')), "");
  net::ClientRequest next = sent;
  next.url = ResolveReference(base, reference);
  ASSIGN_OR_RETURN(const net::Url target, net::ParseUrl(next.url));
  if (target.host != first_host) return std::optional<net::ClientRequest>();
  // A custom Host header is sent with relative redirects only.
  if (reference.find("//") == 0 || reference == next.url) next.headers.Remove("Host");
  return std::optional<net::ClientRequest>(std::move(next));
}

}  // namespace drakkar::node
