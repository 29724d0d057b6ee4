#include "apiserver/http/forwarding.h"

#include "apiserver/http/encode.h"
#include "apiserver/request/identity_headers.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kTokenProtocol = "base64url.bearer.authorization.k8s.io.";

// Also what the sender of `headers` declares to be of its connection (RFC 9110 section 7.6.1).
bool IsOfConnection(const net::Headers& headers, std::string_view name) {
  return net::IsConnectionHeader(name) || net::EqualsIgnoreCase(name, "te") ||
         net::EqualsIgnoreCase(name, "trailer") || headers.HasToken("connection", name);
}

bool IsCredential(std::string_view name) {
  return IsIdentityHeader(name) || net::EqualsIgnoreCase(name, "authorization") ||
         net::EqualsIgnoreCase(name, "proxy-authorization");
}

}  // namespace

bool IsUpgrade(const net::Headers& headers) {
  return headers.HasToken("connection", "upgrade") && !headers.Get("upgrade").empty();
}

bool HasNoBody(int status) {
  return status == 204 || status == 304;
}

void Refuse(net::ResponseWriter& writer, const Failure& failure) {
  EncodedBody encoded = EncodeFailure(Negotiated{}, failure);
  net::Headers headers = {{"Content-Type", encoded.content_type},
                          {"Cache-Control", "no-cache, private"}};
  if (failure.retry_after_seconds > 0) {
    headers.Set("Retry-After", std::to_string(failure.retry_after_seconds));
  }
  writer.Send(failure.code, headers, std::move(encoded.body));
}

net::Headers HeadersToForward(const net::ServerRequest& request) {
  net::Headers headers;
  std::string forwarded_for;
  for (const auto& [name, value] : request.headers) {
    if (net::EqualsIgnoreCase(name, "x-forwarded-for")) {
      forwarded_for += StrCat(value, ", ");
      continue;
    }
    if (IsOfConnection(request.headers, name) || IsCredential(name) ||
        net::EqualsIgnoreCase(name, "content-length") || net::EqualsIgnoreCase(name, "expect") ||
        net::EqualsIgnoreCase(name, "x-forwarded-proto") ||
        net::EqualsIgnoreCase(name, "x-forwarded-host") ||
        net::EqualsIgnoreCase(name, "x-forwarded-uri")) {
      continue;
    }
    // The token of a browser.
    if (net::EqualsIgnoreCase(name, "sec-websocket-protocol")) {
      std::vector<std::string> kept;
      for (const std::string_view each : Split(value, ',')) {
        if (!Trim(each).starts_with(kTokenProtocol)) kept.emplace_back(Trim(each));
      }
      if (!kept.empty()) headers.Add(name, Join(kept, ", "));
      continue;
    }
    headers.Add(name, value);
  }
  if (request.connection != nullptr) {
    const std::string& from = request.connection->remote_address;
    headers.Add("X-Forwarded-For", StrCat(forwarded_for, from.substr(0, from.rfind(':'))));
  }
  headers.Add("X-Forwarded-Proto", "https");
  if (const std::string_view host = request.headers.Get("host"); !host.empty()) {
    headers.Add("X-Forwarded-Host", std::string(host));
  }
  headers.Add("X-Forwarded-Uri", request.raw_path);
  return headers;
}

net::Headers HeadersOfAnswer(const net::Headers& answer) {
  net::Headers headers;
  for (const auto& [name, value] : answer) {
    if (IsOfConnection(answer, name) || net::EqualsIgnoreCase(name, "content-length") ||
        net::EqualsIgnoreCase(name, "date")) {
      continue;
    }
    headers.Add(name, value);
  }
  return headers;
}

}  // namespace drakkar::apiserver
