#include "apiserver/admission/pod_security/pod_security.h"

#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class PodSecurityTest : public CoreFixture {
 protected:
  void SetUp() override {
    std::vector<std::unique_ptr<AdmissionStep>> steps;
    steps.push_back(std::make_unique<PodSecurity>());
    StartCore(nullptr, std::move(steps));
  }

  static std::string NamespaceText(std::string_view name, std::string_view labels) {
    return StrCat(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":")", name,
                  R"(","labels":{)", labels, "}}}");
  }
  static std::string PodText(std::string_view name, std::string_view spec_fields = "",
                             std::string_view image = "i") {
    return StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"guarded","name":")",
                  name, R"("},"spec":{)", spec_fields, R"("containers":[{"name":"a","image":")",
                  image, R"("}]}})");
  }
  static std::string Enforce(std::string_view level) {
    return StrCat(R"("pod-security.kubernetes.io/enforce":")", level, "\"");
  }
  Response Relabel(std::string_view name, std::string_view labels) {
    return Handle(RequestFor(Verb::kUpdate, NamespaceText(name, labels), AdminUser()));
  }
};

TEST_F(PodSecurityTest, APodThatViolatesTheEnforcedLevelIsRejectedWithTheMessageOfKubernetes) {
  Create(NamespaceText("guarded", Enforce("baseline")));
  const Response refused = TryCreate(PodText("bad", R"("hostNetwork":true,)"));
  ASSERT_TRUE(refused.failure.has_value());
  EXPECT_EQ(refused.failure->code, 403);
  EXPECT_EQ(refused.failure->message,
            "pods \"bad\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces "
            "(hostNetwork=true)");
  EXPECT_FALSE(TryCreate(PodText("good")).failure.has_value());
}

TEST_F(PodSecurityTest, ANamespaceWithoutLabelsAcceptsEverythingWithoutWarnings) {
  Create(NamespaceText("guarded", ""));
  const Response taken = TryCreate(PodText("bad", R"("hostNetwork":true,)"));
  EXPECT_FALSE(taken.failure.has_value());
  EXPECT_TRUE(taken.warnings.empty());
}

TEST_F(PodSecurityTest, APodThatViolatesTheWarnLevelIsAcceptedWithAWarning) {
  Create(NamespaceText("guarded", R"("pod-security.kubernetes.io/warn":"baseline",
      "pod-security.kubernetes.io/warn-version":"v1.30")"));
  const Response taken = TryCreate(PodText("p", R"("hostPID":true,)"));
  ASSERT_FALSE(taken.failure.has_value());
  ASSERT_EQ(taken.warnings.size(), 1u);
  EXPECT_EQ(taken.warnings[0],
            "would violate PodSecurity \"baseline:v1.30\": host namespaces (hostPID=true)");
}

TEST_F(PodSecurityTest, AuditedViolationsCauseNeitherErrorsNorWarnings) {
  Create(NamespaceText("guarded", R"("pod-security.kubernetes.io/audit":"restricted")"));
  const Response taken = TryCreate(PodText("p"));
  EXPECT_FALSE(taken.failure.has_value());
  EXPECT_TRUE(taken.warnings.empty());
}

TEST_F(PodSecurityTest, WorkloadsAreAcceptedWithAWarning) {
  Create(NamespaceText("guarded", Enforce("baseline")));
  const std::string pod_template =
      R"({"metadata":{"labels":{"a":"b"}},"spec":{"hostIPC":true,"containers":[{"name":"a",
          "image":"i"}]}})";
  const std::string head = R"("metadata":{"namespace":"guarded","name":"w"},)";
  const std::string expected =
      "would violate PodSecurity \"baseline:latest\": host namespaces (hostIPC=true)";
  for (const char* kind : {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"}) {
    const Response taken = TryCreate(
        StrCat(R"({"apiVersion":"apps/v1","kind":")", kind, "\",", head,
               R"("spec":{"selector":{"matchLabels":{"a":"b"}},"template":)", pod_template, "}}"));
    ASSERT_FALSE(taken.failure.has_value()) << kind << taken.failure->message;
    EXPECT_EQ(taken.warnings.front(), expected) << kind;
  }
  const Response controller =
      TryCreate(StrCat(R"({"apiVersion":"v1","kind":"ReplicationController",)", head,
                       R"("spec":{"selector":{"a":"b"},"template":)", pod_template, "}}"));
  EXPECT_EQ(controller.warnings.front(), expected);
  const Response plain = TryCreate(StrCat(R"({"apiVersion":"v1","kind":"PodTemplate",)", head,
                                          R"("template":)", pod_template, "}"));
  EXPECT_EQ(plain.warnings.front(), expected);
}

TEST_F(PodSecurityTest, OnlyAnUpdateWithANewImageIsCheckedAgain) {
  Create(NamespaceText("guarded", ""));
  api::ObjectPtr pod = Create(PodText("p", R"("hostNetwork":true,)"));
  ASSERT_FALSE(Relabel("guarded", Enforce("baseline")).failure.has_value());
  const auto update = [&](const std::function<void(api::Draft&)>& change) {
    api::Draft draft(core_->Find("", "pods", "guarded/p")->tree());
    change(draft);
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kUpdate;
    request.kind = api::FindKind("", "v1", "Pod");
    request.namespace_ = "guarded";
    request.name = "p";
    request.object = draft.Freeze();
    return Handle(std::move(request));
  };
  EXPECT_FALSE(update([](api::Draft& draft) {
                 draft["metadata"]["labels"].Entry("x") = "y";
               }).failure.has_value());
  const Response refused =
      update([](api::Draft& draft) { draft["spec"]["containers"].at(0)["image"] = "other"; });
  ASSERT_TRUE(refused.failure.has_value());
  EXPECT_EQ(refused.failure->code, 403);
}

TEST_F(PodSecurityTest, AnEphemeralContainerIsChecked) {
  Create(NamespaceText("guarded", Enforce("baseline")));
  Create(PodText("p"));
  Request request;
  request.user = AdminUser();
  request.verb = Verb::kPatch;
  request.patch = PatchKind::kStrategicMerge;
  request.kind = api::FindKind("", "v1", "Pod");
  request.namespace_ = "guarded";
  request.name = "p";
  request.subresource = "ephemeralcontainers";
  request.text = R"({"spec":{"ephemeralContainers":[{"name":"e","image":"i",
      "securityContext":{"privileged":true}}]}})";
  const Response refused = Handle(std::move(request));
  ASSERT_TRUE(refused.failure.has_value());
  EXPECT_EQ(refused.failure->message,
            "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": privileged "
            "(container \"e\" must not set securityContext.privileged=true)");
}

TEST_F(PodSecurityTest, InvalidLabelsAreRejected) {
  const Response refused = TryCreate(NamespaceText("guarded", Enforce("strict")));
  ASSERT_TRUE(refused.failure.has_value());
  EXPECT_EQ(refused.failure->code, 422);
  EXPECT_EQ(
      refused.failure->message,
      "Namespace \"guarded\" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: "
      "Invalid value: \"strict\": must be one of privileged, baseline, restricted");
  Create(NamespaceText("guarded", ""));
  EXPECT_TRUE(Relabel("guarded", Enforce("strict")).failure.has_value());
}

TEST_F(PodSecurityTest, RaisingTheEnforcedLevelNamesThePodsThatWouldViolateIt) {
  Create(NamespaceText("guarded", ""));
  Create(PodText("b", R"("hostNetwork":true,)"));
  Create(PodText("a", R"("hostNetwork":true,)"));
  Create(PodText("c", R"("hostPID":true,"volumes":[{"name":"v","hostPath":{"path":"/"}}],)"));
  Create(PodText("fine"));
  const Response raised = Relabel("guarded", Enforce("baseline"));
  ASSERT_FALSE(raised.failure.has_value());
  EXPECT_EQ(raised.warnings,
            (std::vector<std::string>{"existing pods in namespace \"guarded\" violate the new "
                                      "PodSecurity enforce level \"baseline:latest\"",
                                      "a (and 1 other pod): host namespaces",
                                      "c: host namespaces, hostPath volumes"}));
  EXPECT_TRUE(Relabel("guarded", Enforce("baseline")).warnings.empty()) << "nothing changed";
  EXPECT_TRUE(Relabel("guarded", Enforce("privileged")).warnings.empty()) << "lowered";
}

TEST_F(PodSecurityTest, PodsOfOtherNamespacesDoNotAffectALevel) {
  Create(NamespaceText("guarded", ""));
  Create(NamespaceText("guarded-too", ""));
  Create(PodText("b", R"("hostNetwork":true,)"));
  EXPECT_TRUE(Relabel("guarded-too", Enforce("baseline")).warnings.empty());
}

TEST_F(PodSecurityTest, AnInvalidPodFailsValidationFirst) {
  Create(NamespaceText("guarded", Enforce("baseline")));
  const Response refused = TryCreate(PodText("bad", R"("hostNetwork":true,)", ""));
  ASSERT_TRUE(refused.failure.has_value());
  EXPECT_EQ(refused.failure->code, 422);
}

}  // namespace
}  // namespace drakkar::apiserver
