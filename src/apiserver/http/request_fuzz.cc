// The parts of an HTTP request, a line each: Accept, Content-Type, the target; the rest is the
// body.
#include <cstddef>
#include <cstdint>

#include "api/scheme/scheme.h"
#include "apiserver/http/negotiate.h"
#include "apiserver/http/request_body.h"
#include "apiserver/http/request_info.h"
#include "base/result/check.h"
#include "net/http/url.h"

namespace {

std::string_view TakeLine(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  using namespace drakkar::apiserver;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view accept = TakeLine(text), content_type = TakeLine(text),
                         target = TakeLine(text);
  for (const bool stream : {false, true}) {
    Negotiated negotiated;
    if (const auto failure = NegotiateAccept(accept, stream, negotiated)) {
      CHECK(failure->code == 406);
      continue;
    }
    CHECK(!stream || negotiated.media != MediaType::kYaml);
    CHECK(negotiated.shape != Shape::kTable || negotiated.media != MediaType::kProtobuf);
  }
  if (AcceptsGzip(accept)) CHECK(accept.find("gzip") != std::string_view::npos);
  CHECK(MediaTypeOf(content_type).find(';') == std::string_view::npos);

  const auto url = net::ParseTarget(target);
  if (!url.ok()) return 0;
  const auto query = net::Query::Parse(url->raw_query);
  if (!query.ok()) return 0;
  const RequestInfo info = ParseRequestPath(url->path);
  if (info.kind != nullptr) CHECK(info.is_resource && info.kind->plural == info.resource);
  for (const net::Method method : {net::Method::kGet, net::Method::kPost, net::Method::kPut,
                                   net::Method::kPatch, net::Method::kDelete}) {
    const auto verb = VerbOf(method, info, *query);
    if (!verb) continue;
    Request request;
    request.verb = *verb;
    request.kind = info.kind;
    if (const auto failure = ReadOptions(*query, request))
      CHECK(failure->code >= 400 && failure->code < 500);
    if (const auto failure = ReadBody(content_type, std::string(text), request)) {
      CHECK(failure->code >= 400 && failure->code < 500);
    } else if (*verb == Verb::kDelete) {
      CHECK(request.propagation_policy.empty() || request.propagation_policy == "Orphan" ||
            request.propagation_policy == "Background" ||
            request.propagation_policy == "Foreground");
    }
  }
  return 0;
}
