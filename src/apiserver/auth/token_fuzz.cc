// Verifies service account tokens: arbitrary text, and arbitrary headers and claims (two lines)
// with a valid signature. $UID and $POD stand for the UIDs of an existing account and pod.
#include <cstddef>
#include <cstdint>

#include "apiserver/auth/service_account_tokens.h"
#include "base/hash/base64.h"
#include "base/result/check.h"
#include "base/text/text.h"
#include "net/tls/certificates.h"
#include "tests/support/api_server.h"

namespace drakkar::apiserver {
namespace {

struct World {
  World() {
    tokens->Attach(server.core());
    account =
        server.Create(R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"bot"}})")
            ->uid();
    pod = server
              .Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{)"
                      R"("containers":[{"name":"c","image":"i:1"}]}})")
              ->uid();
  }
  std::string Filled(std::string_view line) const {
    return ReplaceAll(ReplaceAll(std::string(line), "$UID", account), "$POD", pod);
  }
  static std::string ReplaceAll(std::string text, std::string_view word, std::string_view by) {
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += by.size())
      text.replace(at, word.size(), by);
    return text;
  }
  SeededLoop loop;
  testing::TestApiServer server{loop};
  const std::string key = *net::GenerateKeyPem();
  std::unique_ptr<ServiceAccountTokens> tokens =
      *ServiceAccountTokens::Create(key, loop.clock(), loop.random());
  std::unique_ptr<const net::JwsSigner> signer = *net::JwsSigner::Create(key);
  std::string account, pod;
};

}  // namespace
}  // namespace drakkar::apiserver

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  static const apiserver::World world;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> meant_for;
  // No input is a valid token without our key.
  CHECK(!world.tokens->Verify(text, {}, meant_for));
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string head = world.Filled(text.substr(0, end));
  const std::string claims = world.Filled(text.substr(std::min(end + 1, text.size())));
  const std::string body = StrCat(Base64UrlEncode(head), ".", Base64UrlEncode(claims));
  const std::string token = StrCat(body, ".", Base64UrlEncode(*world.signer->Sign(body)));
  meant_for.clear();
  const auto user = world.tokens->Verify(token, {}, meant_for);
  if (!user) return 0;
  CHECK(user->name == "system:serviceaccount:default:bot" && user->uid == world.account);
  CHECK(!meant_for.empty() && meant_for.front() == apiserver::ServiceAccountTokens::kIssuer);
  meant_for.clear();
  CHECK(!world.tokens->Verify(token, {"somebody else"}, meant_for));
  return 0;
}
