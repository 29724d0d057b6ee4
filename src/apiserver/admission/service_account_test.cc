#include "apiserver/admission/service_account.h"

#include "api/json/writer.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kPath = "/var/run/secrets/kubernetes.io/serviceaccount";

class ServiceAccountAdmissionTest : public CoreFixture {
 protected:
  ServiceAccountAdmissionTest() {
    std::vector<std::unique_ptr<AdmissionStep>> steps;
    steps.push_back(std::make_unique<ServiceAccountAdmission>());
    StartCore(nullptr, std::move(steps));
    CreateAccount("default", "default");
  }
  void CreateAccount(std::string_view home, std::string_view name, std::string_view members = "") {
    Create(StrCat(R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":")", name,
                  R"(","namespace":")", home, R"("})", members, "}"));
  }
  static std::string PodText(std::string_view spec, std::string_view home = "default") {
    return StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":")", home,
                  R"("},"spec":{)", spec, "}}");
  }
  Response CreatePod(std::string_view spec) {
    return TryCreate(PodText(StrCat(R"("containers":[{"name":"c","image":"i:1"}])", spec)));
  }
  static bool HasToken(const Response& made) {
    return (*made.object)["spec"]["containers"].at(0)["volumeMounts"].size() > 0;
  }
};

TEST_F(ServiceAccountAdmissionTest, EveryContainerGetsATokenTheAuthorityAndTheNamespace) {
  const Response made = TryCreate(PodText(
      R"("initContainers":[{"name":"i","image":"i:1"}],"containers":[{"name":"c","image":"i:1"}])"));
  ASSERT_FALSE(made.failure) << made.failure->message;
  const api::Value spec = (*made.object)["spec"];
  EXPECT_EQ(spec["serviceAccountName"].str(), "default");
  EXPECT_EQ(spec["serviceAccount"].str(), "default");
  ASSERT_EQ(spec["volumes"].size(), 1u);
  const std::string name(spec["volumes"].at(0)["name"].str());
  EXPECT_TRUE(name.starts_with("kube-api-access-"));
  EXPECT_EQ(name.size(), std::string_view("kube-api-access-xxxxx").size());
  EXPECT_EQ(
      api::WriteJson(spec["volumes"].at(0)["projected"]),
      R"({"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},)"
      R"({"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],"name":"kube-root-ca.crt"}},)"
      R"({"downwardAPI":{"items":[{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"},"path":"namespace"}]}}]})");
  for (const api::FieldName list : api::FieldNames{"initContainers", "containers"}) {
    const api::Value mounts = spec[list].at(0)["volumeMounts"];
    ASSERT_EQ(mounts.size(), 1u);
    EXPECT_EQ(mounts.at(0)["name"].str(), name);
    EXPECT_EQ(mounts.at(0)["mountPath"].str(), kPath);
    EXPECT_TRUE(mounts.at(0)["readOnly"].boolean());
  }
}

TEST_F(ServiceAccountAdmissionTest, PodAndAccountCanOptOut) {
  CreateAccount("default", "quiet", R"(,"automountServiceAccountToken":false)");
  EXPECT_FALSE(HasToken(CreatePod(R"(,"automountServiceAccountToken":false)")));
  Delete("v1", "Pod", "default", "p");
  EXPECT_FALSE(HasToken(CreatePod(R"(,"serviceAccountName":"quiet")")));
  Delete("v1", "Pod", "default", "p");
  EXPECT_TRUE(
      HasToken(CreatePod(R"(,"serviceAccountName":"quiet","automountServiceAccountToken":true)")));
}

TEST_F(ServiceAccountAdmissionTest, APodsOwnVolumesAreLeftAlone) {
  const Response own = TryCreate(PodText(
      StrCat(R"("volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"c","image":"i:1",)",
             R"("volumeMounts":[{"name":"v","mountPath":")", kPath, R"("}]}])")));
  ASSERT_FALSE(own.failure) << own.failure->message;
  EXPECT_EQ((*own.object)["spec"]["volumes"].size(), 1u);
  EXPECT_EQ((*own.object)["spec"]["containers"].at(0)["volumeMounts"].size(), 1u);
  Delete("v1", "Pod", "default", "p");
  // A pod copied from one that was admitted before has the volume already.
  const Response copied =
      CreatePod(R"(,"volumes":[{"name":"kube-api-access-zzzzz","emptyDir":{}}])");
  ASSERT_FALSE(copied.failure) << copied.failure->message;
  EXPECT_EQ((*copied.object)["spec"]["volumes"].size(), 1u);
  EXPECT_EQ((*copied.object)["spec"]["containers"].at(0)["volumeMounts"].at(0)["name"].str(),
            "kube-api-access-zzzzz");
}

TEST_F(ServiceAccountAdmissionTest, TheAccountMustExist) {
  EXPECT_EQ(CreatePod(R"(,"serviceAccountName":"ghost")").failure->message,
            "pods \"p\" is forbidden: error looking up service account default/ghost: "
            "serviceaccount \"ghost\" not found");
  std::optional<Response> answer;
  core_->Handle(
      RequestFor(Verb::kCreate, PodText(R"("containers":[{"name":"c","image":"i:1"}])", "other"),
                 AdminUser()),
      [&](Response response) { answer = std::move(response); });
  loop_.Advance(Core::kMaxWait - std::chrono::milliseconds(1));
  EXPECT_FALSE(answer);
  loop_.Advance(std::chrono::milliseconds(1));
  ASSERT_TRUE(answer && answer->failure);
  EXPECT_EQ(answer->failure->message,
            "pods \"p\" is forbidden: error looking up service account other/default: "
            "serviceaccount \"default\" not found");
}

TEST_F(ServiceAccountAdmissionTest, APodInANewNamespaceWaitsForTheAccountToAppear) {
  std::optional<Response> answer;
  core_->Handle(
      RequestFor(
          Verb::kCreate,
          R"({"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"p-","namespace":"other"},
                 "spec":{"containers":[{"name":"c","image":"i:1"}]}})",
          AdminUser()),
      [&](Response response) { answer = std::move(response); });
  EXPECT_FALSE(answer);
  CreateAccount("other", "somebody");
  EXPECT_FALSE(answer);
  CreateAccount("other", "default");
  loop_.RunUntilIdle();
  ASSERT_TRUE(answer);
  ASSERT_FALSE(answer->failure) << answer->failure->message;
  EXPECT_TRUE(HasToken(*answer));
}

TEST_F(ServiceAccountAdmissionTest, WaitingIsBounded) {
  std::size_t refused = 0;
  for (std::size_t i = 0; i <= Core::kMaxWaiting; ++i) {
    core_->Handle(
        RequestFor(
            Verb::kCreate,
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"p-","namespace":"other"},
                   "spec":{"containers":[{"name":"c","image":"i:1"}]}})",
            AdminUser()),
        [&](const Response& response) { refused += response.failure ? 1 : 0; });
  }
  EXPECT_EQ(refused, 1u);
  loop_.Advance(Core::kMaxWait);
  EXPECT_EQ(refused, Core::kMaxWaiting + 1);
}

TEST_F(ServiceAccountAdmissionTest, PullSecretsDefaultToTheAccounts) {
  CreateAccount("default", "puller", R"(,"imagePullSecrets":[{"name":"registry"}])");
  const Response made = CreatePod(R"(,"serviceAccountName":"puller")");
  EXPECT_EQ((*made.object)["spec"]["imagePullSecrets"].at(0)["name"].str(), "registry");
  Delete("v1", "Pod", "default", "p");
  const Response own =
      CreatePod(R"(,"serviceAccountName":"puller","imagePullSecrets":[{"name":"mine"}])");
  ASSERT_EQ((*own.object)["spec"]["imagePullSecrets"].size(), 1u);
  EXPECT_EQ((*own.object)["spec"]["imagePullSecrets"].at(0)["name"].str(), "mine");
}

TEST_F(ServiceAccountAdmissionTest, AnAnnotatedAccountAllowsOnlyItsOwnSecrets) {
  Create(R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"strict","annotations":)"
         R"({"kubernetes.io/enforce-mountable-secrets":"true"}},"secrets":[{"name":"mine"}]})");
  const auto refusal = [&](std::string_view container, std::string_view spec) {
    const Response made = TryCreate(
        PodText(StrCat(R"("serviceAccountName":"strict","containers":[{"name":"c","image":"i:1")",
                       container, "}]", spec)));
    Delete("v1", "Pod", "default", "p");
    return made.failure ? made.failure->message : std::string();
  };
  const std::string because =
      " is not allowed because service account strict does not reference that secret";
  EXPECT_EQ(refusal("", R"(,"volumes":[{"name":"v","secret":{"secretName":"mine"}}])"), "");
  EXPECT_EQ(refusal("", R"(,"volumes":[{"name":"v","secret":{"secretName":"hers"}}])"),
            StrCat("pods \"p\" is forbidden: volume with secret.secretName=\"hers\"", because));
  EXPECT_EQ(
      refusal(R"(,"env":[{"name":"E","valueFrom":{"secretKeyRef":{"name":"hers","key":"k"}}}])",
              ""),
      StrCat("pods \"p\" is forbidden: container c with envVar E referencing "
             "secret.secretName=\"hers\"",
             because));
  EXPECT_EQ(refusal(R"(,"envFrom":[{"secretRef":{"name":"hers"}}])", ""),
            StrCat("pods \"p\" is forbidden: container c with envFrom referencing "
                   "secret.secretName=\"hers\"",
                   because));
  EXPECT_EQ(refusal("", R"(,"imagePullSecrets":[{"name":"hers"}])"),
            "pods \"p\" is forbidden: imagePullSecrets[0].name=\"hers\" is not allowed because "
            "service account strict does not reference that imagePullSecret");
}

TEST_F(ServiceAccountAdmissionTest, AMirrorPodIsNotChanged) {
  const auto mirror = [&](std::string_view members) {
    return TryCreate(StrCat(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"m","annotations":{"kubernetes.io/config.mirror":"x"}},)",
        R"("spec":{"nodeName":"n1","containers":[{"name":"c","image":"i:1"}])", members, "}}"));
  };
  EXPECT_EQ(mirror(R"(,"serviceAccountName":"default")").failure->message,
            "pods \"m\" is forbidden: a mirror pod may not reference service accounts");
  const Response made = mirror("");
  ASSERT_FALSE(made.failure) << made.failure->message;
  EXPECT_FALSE(HasToken(made));
}

TEST_F(ServiceAccountAdmissionTest, AMirrorPodMayNotReferenceAccountsSecretsOrTokens) {
  const auto create = [&](std::string_view spec) {
    const Response made = TryCreate(
        StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","annotations":{)",
               R"("kubernetes.io/config.mirror":"x"}},"spec":{"nodeName":"n1",)",
               R"("containers":[{"name":"c","image":"i:1"}])", spec, "}}"));
    return made.failure ? made.failure->message : "allowed";
  };
  EXPECT_EQ(create(R"(,"serviceAccountName":"default")"),
            "pods \"p\" is forbidden: a mirror pod may not reference service accounts");
  EXPECT_EQ(create(R"(,"imagePullSecrets":[{"name":"s"}])"),
            "pods \"p\" is forbidden: a mirror pod may not reference secrets");
  EXPECT_EQ(create(R"(,"volumes":[{"name":"v","projected":{"sources":[)"
                   R"({"serviceAccountToken":{"path":"t"}}]}}])"),
            "pods \"p\" is forbidden: a mirror pod may not use ServiceAccountToken volume "
            "projections");
  EXPECT_EQ(create(""), "allowed");
  EXPECT_EQ((*core_->Find("", "pods", "default/p"))["spec"]["serviceAccountName"].str(), "");
}

}  // namespace
}  // namespace drakkar::apiserver
