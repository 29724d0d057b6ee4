// What a list or a watch carries in its query: the continue token, selectors, the version.
#include "apiserver/rest/selection.h"

#include <cstddef>
#include <cstdint>

#include "api/scheme/scheme.h"
#include "base/hash/base64.h"
#include "base/result/check.h"

namespace drakkar::apiserver {
namespace {

// A token that is accepted survives a round trip.
void CheckToken(const std::string& text) {
  ContinueToken token, again;
  if (const auto failure = DecodeContinue(text, token)) {
    CHECK(failure->code == 400);
    return;
  }
  CHECK(!token.last_key.empty() &&
        (token.revision > 0 || token.revision == ContinueToken::kNewest));
  CHECK(!DecodeContinue(EncodeContinue(token), again));
  CHECK(again.revision == token.revision && again.last_key == token.last_key);
}

}  // namespace
}  // namespace drakkar::apiserver

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  using namespace drakkar::apiserver;
  static const api::Object object([] {
    api::Draft pod{{"metadata", {{"name", "a"}, {"labels", api::Draft::Map({{"app", "b"}})}}},
                   {"spec", {{"nodeName", "n"}}}};
    return pod.Freeze();
  }());
  const std::string text(reinterpret_cast<const char*>(data), size);
  CheckToken(text);
  CheckToken(Base64UrlEncode(text));
  storage::Revision revision = 0;
  if (!ParseResourceVersion(text, revision)) CHECK(revision >= 0);
  Request request;
  request.kind = api::FindKind("", "v1", "Pod");
  for (std::string Request::*selector : {&Request::label_selector, &Request::field_selector}) {
    Request with = request;
    with.*selector = text;
    Selection selection;
    if (const auto failure = BuildSelection(with, selection)) CHECK(failure->code == 400);
    if (selection) static_cast<void>(selection(object));
  }
  return 0;
}
