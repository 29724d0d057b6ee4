#include "apiserver/registry/config_strategies.h"

#include "apiserver/testing/core_fixture.h"
#include "apiserver/validation/value_rules.h"
#include "base/hash/base64.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class ConfigTest : public CoreFixture {
 protected:
  ConfigTest() { StartCore(nullptr); }

  std::string Body(std::string_view kind, std::string_view rest) {
    return StrCat(R"({"apiVersion":"v1","kind":")", kind, R"(","metadata":{"name":"x"},)", rest,
                  "}");
  }
  std::string Refusal(const Response& response) {
    return response.failure ? StrCat(response.failure->code, " ", response.failure->message)
                            : "none";
  }
  std::string CreateRefusal(std::string_view kind, std::string_view rest) {
    return Refusal(TryCreate(Body(kind, rest)));
  }
  Response Update(std::string_view kind, std::string_view rest) {
    return Handle(RequestFor(Verb::kUpdate, Body(kind, rest), AdminUser()));
  }
};

TEST_F(ConfigTest, StringDataOfASecretBecomesDataAndIsNotReturned) {
  const api::ObjectPtr made = Create(
      Body("Secret", R"("data":{"a":"b2xk","b":"a2VwdA=="},"stringData":{"a":"new","c":"päß"})"));
  EXPECT_FALSE((*made)["stringData"].exists());
  EXPECT_EQ((*made)["data"].Entry("a").str(), Base64Encode("new")) << "the text wins";
  EXPECT_EQ((*made)["data"].Entry("b").str(), "a2VwdA==");
  EXPECT_EQ((*made)["data"].Entry("c").str(), Base64Encode("päß"));
  EXPECT_EQ((*made)["type"].str(), "Opaque");
  Request patch;
  patch.user = AdminUser();
  patch.verb = Verb::kPatch;
  patch.patch = PatchKind::kMerge;
  patch.kind = api::FindKind("", "v1", "Secret");
  patch.namespace_ = "default";
  patch.name = "x";
  patch.text = R"({"stringData":{"b":"patched"}})";
  const Response patched = Handle(std::move(patch));
  ASSERT_FALSE(patched.failure) << patched.failure->message;
  EXPECT_EQ((*patched.object)["data"].Entry("b").str(), Base64Encode("patched"));
  EXPECT_EQ((*patched.object)["data"].Entry("a").str(), Base64Encode("new"));
  EXPECT_FALSE((*patched.object)["stringData"].exists());
}

TEST_F(ConfigTest, ASecretKeepsItsTypeAndTheKeysThatItRequires) {
  Create(Body("Secret", R"("data":{"a":"YQ=="})"));
  EXPECT_EQ(Refusal(Update("Secret", R"("type":"example.com/other","data":{"a":"YQ=="})")),
            "422 Secret \"x\" is invalid: type: Invalid value: \"example.com/other\": field is "
            "immutable");
  EXPECT_EQ(Refusal(Update("Secret", R"("data":{"a":"Yg=="})")), "none");
  EXPECT_EQ(CreateRefusal("Secret", R"("type":"kubernetes.io/tls","data":{"tls.crt":"YQ=="})"),
            "422 Secret \"x\" is invalid: data[tls.key]: Required value");
  EXPECT_EQ(
      CreateRefusal("Secret", R"("type":"kubernetes.io/basic-auth")"),
      "422 Secret \"x\" is invalid: [data[username]: Required value, data[password]: Required "
      "value]");
  EXPECT_EQ(CreateRefusal(
                "Secret",
                R"("type":"kubernetes.io/dockerconfigjson","stringData":{".dockerconfigjson":"x"})")
                .find("422 Secret \"x\" is invalid: data[.dockerconfigjson]: Invalid value: "
                      "\"<secret contents redacted>\": "),
            0u);
}

TEST_F(ConfigTest, ImmutableDataCannotBeChanged) {
  Create(Body("Secret", R"("immutable":true,"data":{"a":"YQ=="})"));
  EXPECT_EQ(
      Refusal(Update("Secret", R"("immutable":true,"data":{"a":"Yg=="})")),
      "422 Secret \"x\" is invalid: data: Forbidden: field is immutable when `immutable` is set");
  EXPECT_EQ(
      Refusal(Update("Secret", R"("data":{"a":"YQ=="})")),
      "422 Secret \"x\" is invalid: immutable: Forbidden: field is immutable when `immutable` is "
      "set");
  Create(Body("ConfigMap", R"("immutable":true,"data":{"a":"1"},"binaryData":{"b":"YQ=="})"));
  EXPECT_EQ(
      Refusal(
          Update("ConfigMap", R"("immutable":true,"data":{"a":"2"},"binaryData":{"b":"Yg=="})")),
      "422 ConfigMap \"x\" is invalid: [data: Forbidden: field is immutable when `immutable` is "
      "set, binaryData: Forbidden: field is immutable when `immutable` is set]");
  Request labelled = RequestFor(
      Verb::kUpdate,
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","labels":{"l":"v"}},)"
      R"("immutable":true,"data":{"a":"1"},"binaryData":{"b":"YQ=="}})",
      AdminUser());
  EXPECT_FALSE(Handle(std::move(labelled)).failure) << "labels may change";
}

TEST_F(ConfigTest, KeysAreValidFileNames) {
  constexpr std::string_view kRule =
      "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
      "'key.name',  or "
      "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
  EXPECT_EQ(CreateRefusal("ConfigMap", R"("data":{"../../etc/passwd":"x"})"),
            StrCat("422 ConfigMap \"x\" is invalid: [data[../../etc/passwd]: Invalid value: "
                   "\"../../etc/passwd\": ",
                   kRule,
                   ", data[../../etc/passwd]: Invalid value: \"../../etc/passwd\": must not start "
                   "with '..']"));
  EXPECT_EQ(CreateRefusal("Secret", R"("data":{"a/b":"YQ=="})"),
            StrCat("422 Secret \"x\" is invalid: data[a/b]: Invalid value: \"a/b\": ", kRule));
  EXPECT_EQ(ConfigKeyProblems("."), api::Problems{"must not be '.'"});
  EXPECT_EQ(ConfigKeyProblems(".."), api::Problems{"must not be '..'"});
  EXPECT_EQ(ConfigKeyProblems("..a"), api::Problems{"must not start with '..'"});
  EXPECT_EQ(ConfigKeyProblems(std::string(254, 'a')),
            api::Problems{"must be no more than 253 characters"});
  EXPECT_TRUE(ConfigKeyProblems(std::string(253, 'a')).empty());
  EXPECT_TRUE(ConfigKeyProblems(".dockerconfigjson").empty());
  EXPECT_EQ(
      CreateRefusal("ConfigMap", R"("data":{"a":"x"},"binaryData":{"a":"YQ=="})"),
      "422 ConfigMap \"x\" is invalid: [data[a]: Invalid value: \"a\": duplicate of key present in "
      "binaryData, binaryData[a]: Invalid value: \"a\": duplicate of key present in data]");
}

TEST_F(ConfigTest, TheTotalSizeIsLimited) {
  const std::string half(kMaxConfigBytes / 2, 'x');
  EXPECT_EQ(
      CreateRefusal("ConfigMap", StrCat(R"("data":{"a":")", half, R"(","b":")", half, R"("})")),
      "none");
  EXPECT_NE(
      Refusal(Update("ConfigMap", StrCat(R"("data":{"a":")", half, R"(","b":"x)", half, R"("})")))
          .find("Too long: may not be more than 1048576 bytes"),
      std::string::npos);
  EXPECT_EQ(
      CreateRefusal("Secret", StrCat(R"("stringData":{"a":")", half, R"(","b":")", half, R"("})")),
      "none");
  EXPECT_EQ(Refusal(Update("Secret",
                           StrCat(R"("stringData":{"a":")", half, R"(","b":"x)", half, R"("})"))),
            "422 Secret \"x\" is invalid: data: Too long: may not be more than 1048576 bytes");
}

}  // namespace
}  // namespace drakkar::apiserver
