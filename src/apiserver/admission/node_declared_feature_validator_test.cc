#include "apiserver/admission/node_declared_feature_validator.h"

#include <gmock/gmock.h>

#include "api/tree/draft.h"
#include "api/tree/draft_view.h"
#include "apiserver/admission/admission.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"
#include "features/catalog/catalog.h"
#include "features/testing/static_cpu_feature.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

features::Framework WithMadeUpFeature(std::optional<features::Version> last = std::nullopt) {
  features::FeatureList more;
  more.push_back(std::make_unique<features::StaticCpuFeature>(std::move(last)));
  return features::FrameworkWith(std::move(more)).value();
}

// Its inference fails for a pod whose hostname is "riddle".
class PuzzledFeature : public features::Feature {
 public:
  std::string_view Name() const override { return "TestPuzzled"; }
  features::FeatureRequirements Requirements() const override {
    return {.enabled_feature_gates = {"TestPuzzledGate"},
            .static_configuration = {},
            .runtime_features = {}};
  }
  features::NeededBecauseOf InferForUpdate(const features::PodInfo&,
                                           const features::PodInfo& pod) const override {
    if (pod.spec["hostname"].str() != "riddle") return std::nullopt;
    return InvalidArgument("the pod is a riddle");
  }
};

class NodeDeclaredFeatureValidatorTest : public CoreFixture {
 protected:
  void Start(const features::Framework& framework = WithMadeUpFeature()) {
    StartCore(nullptr, MakeAdmissionChain({.metrics = &metrics_, .framework = &framework}));
    Create(R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}})");
    CreateNode("plain", "[]");
    CreateNode("able", R"(["InPlacePodLevelResourcesVerticalScaling","TestStaticCpu"])");
  }
  void CreateNode(std::string_view name, std::string_view features) {
    Create(StrCat(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")", name,
                  R"("},"status":{"declaredFeatures":)", features, "}}"));
  }
  void CreatePod(std::string_view name, std::string_view node) {
    Create(StrCat(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name, R"("},"spec":{)",
        node.empty() ? "" : StrCat(R"("nodeName":")", node, R"(",)"),
        R"("resources":{"requests":{"cpu":"1"}},"containers":[{"name":"c","image":"i"}]}})"));
  }
  // Changes the pod; returns "allowed" or the error message.
  std::string Change(const std::string& name, const std::string& subresource,
                     const std::function<void(api::Draft&)>& change) {
    api::Draft draft(core_->Find("", "pods", "default/" + name)->tree());
    change(draft);
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kUpdate;
    request.kind = api::FindKind("", "v1", "Pod");
    request.namespace_ = "default";
    request.name = name;
    request.subresource = subresource;
    request.object = draft.Freeze();
    const Response response = Handle(std::move(request));
    return response.failure ? response.failure->message : "allowed";
  }
  // This toleration requires the made-up feature.
  static void Tolerate(api::Draft& pod) {
    pod["spec"]["tolerations"].Append(
        {{"key", api::Draft("exclusive-cpus")}, {"operator", api::Draft("Exists")}});
  }

  // Runs only this step, with a request for a subresource.
  std::string Ask(const std::string& name, const std::string& subresource,
                  const std::function<void(api::Draft&)>& change) {
    NodeDeclaredFeatureValidator step(WithMadeUpFeature());
    const api::ObjectPtr before = core_->Find("", "pods", "default/" + name);
    api::Draft draft(before->tree());
    change(draft);
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kUpdate;
    request.kind = api::FindKind("", "v1", "Pod");
    request.namespace_ = "default";
    request.name = name;
    request.subresource = subresource;
    const StrategyContext context{
        .clock = loop_.clock(),
        .random = loop_.random(),
        .gates = gates_,
        .user = request.user,
        .verb = request.verb,
        .lookup = [this](std::string_view group, std::string_view plural,
                         const std::string& key) { return core_->Find(group, plural, key); },
        .authorize = {}};
    std::vector<std::string> warnings;
    const api::DraftView view(draft);
    const auto failure = step.Check(request, view.root(), before->root(), context, warnings);
    return failure ? failure->message : "allowed";
  }
  static void Resize(api::Draft& pod) { pod["spec"]["resources"]["requests"].Entry("cpu") = "2"; }
  // Sends the request of kubectl patch --subresource=resize.
  Response PatchResize(const std::string& name, std::string patch) {
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kPatch;
    request.patch = PatchKind::kStrategicMerge;
    request.kind = api::FindKind("", "v1", "Pod");
    request.namespace_ = "default";
    request.name = name;
    request.subresource = "resize";
    request.text = std::move(patch);
    return Handle(std::move(request));
  }
  static constexpr char kTwoCpus[] = R"({"spec":{"resources":{"requests":{"cpu":"2"}}}})";
  std::string CpuOf(const std::string& pod) {
    return std::string(core_->Find("", "pods", "default/" + pod)
                           ->root()["spec"]["resources"]["requests"]
                           .Entry("cpu")
                           .str());
  }

  Metrics metrics_;
};

TEST_F(NodeDeclaredFeatureValidatorTest,
       AnUpdateThatTheNodeDoesNotSupportIsRejectedAndNamesTheFeature) {
  Start();
  CreatePod("p", "plain");
  CreatePod("q", "able");
  EXPECT_EQ(Change("p", "", Tolerate),
            "pods \"p\" is forbidden: pod update requires features TestStaticCpu which are not "
            "available on node \"plain\"");
  EXPECT_EQ(Change("q", "", Tolerate), "allowed");
}

TEST_F(NodeDeclaredFeatureValidatorTest, AnInvalidUpdateFailsValidationFirst) {
  Start();
  CreatePod("p", "plain");
  const std::string refused = Change("p", "", [](api::Draft& pod) {
    Tolerate(pod);
    pod["spec"]["hostname"] = "other";
  });
  EXPECT_THAT(refused, HasSubstr("Pod \"p\" is invalid: spec: Forbidden: pod updates may not"));
}

// Devices that consume a node's own resources need a node that accounts for them.
class NodeAllocatableSliceTest : public NodeDeclaredFeatureValidatorTest {
 protected:
  void SetUp() override {
    Start();
    CreateNode("counts", R"(["DRANodeAllocatableResources"])");
    gates_ = FeatureGates().With(Gate::kDRANodeAllocatableResources, true);
  }
  static constexpr std::string_view kHungry =
      R"("nodeAllocatableResources":{"cpu":{"mapping":{"deviceMultiplier":"1"}}})";
  std::string Publish(std::string_view where) {
    return Publish(where, StrCat(R"({"name":"plain"},{"name":"hungry",)", kHungry, "}"));
  }
  std::string Publish(std::string_view where, std::string_view devices) {
    const Response response = TryCreate(StrCat(
        R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{)",
        R"("generateName":"s-"},"spec":{"driver":"d.example.com","pool":{"name":"p",)",
        R"("generation":1,"resourceSliceCount":1},)", where, R"(,"devices":[)", devices, "]}}"));
    if (!response.failure) return "allowed";
    const std::string& text = response.failure->message;
    const std::size_t why = text.find("is forbidden: ");
    return why == std::string::npos ? text : text.substr(why + 14);
  }
};

TEST_F(NodeAllocatableSliceTest, IsAcceptedOnlyForNodesThatDeclareTheFeature) {
  EXPECT_EQ(Publish(R"("nodeName":"counts")"), "allowed");
  EXPECT_EQ(Publish(R"("nodeName":"plain")"),
            "node \"plain\" does not support DRANodeAllocatableResources feature");
  EXPECT_EQ(Publish(R"("nodeName":"gone")"), "node \"gone\" not found for device \"hungry\"");
  EXPECT_EQ(Publish(R"("allNodes":true)"),
            "node \"able\" does not support DRANodeAllocatableResources feature");
}

TEST_F(NodeAllocatableSliceTest, ChecksOnlyTheNodesThatASelectorMatches) {
  const auto selector = [](std::string_view name) {
    return StrCat(R"("nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name",)",
                  R"("operator":"In","values":[")", name, R"("]}]}]})");
  };
  EXPECT_EQ(Publish(selector("counts")), "allowed");
  EXPECT_EQ(Publish(selector("plain")),
            "node \"plain\" does not support DRANodeAllocatableResources feature");
}

TEST_F(NodeAllocatableSliceTest, MayNameTheNodeOfEachDevice) {
  const auto publish = [&](std::string_view hungry_on) {
    return Publish(R"("perDeviceNodeSelection":true)",
                   StrCat(R"({"name":"plain","nodeName":"plain"},{"name":"hungry",)", kHungry,
                          R"(,"nodeName":")", hungry_on, "\"}"));
  };
  EXPECT_EQ(publish("counts"), "allowed") << "only what takes of the node matters";
  EXPECT_EQ(publish("plain"),
            "node \"plain\" does not support DRANodeAllocatableResources feature");
}

TEST_F(NodeAllocatableSliceTest, IsNotCheckedWhileAGateIsOff) {
  gates_ = FeatureGates();
  EXPECT_EQ(Publish(R"("nodeName":"plain")"), "allowed") << "the field is dropped";
  gates_ = FeatureGates()
               .With(Gate::kDRANodeAllocatableResources, true)
               .With(Gate::kNodeDeclaredFeatures, false);
  EXPECT_EQ(Publish(R"("nodeName":"plain")"), "allowed");
}

TEST_F(NodeDeclaredFeatureValidatorTest, AResizeOfThePodIsCheckedToo) {
  Start();
  CreatePod("p", "plain");
  CreatePod("q", "able");
  EXPECT_EQ(Ask("p", "resize", Resize),
            "pods \"p\" is forbidden: pod update requires features "
            "InPlacePodLevelResourcesVerticalScaling which are not available on node \"plain\"");
  EXPECT_EQ(Ask("q", "resize", Resize), "allowed");
  EXPECT_EQ(Ask("p", "resize",
                [](api::Draft& pod) {
                  Resize(pod);
                  Tolerate(pod);
                }),
            "pods \"p\" is forbidden: pod update requires features "
            "InPlacePodLevelResourcesVerticalScaling, TestStaticCpu which are not available on "
            "node \"plain\"");
}

TEST_F(NodeDeclaredFeatureValidatorTest, AResizeThroughTheApiIsRejectedIfTheNodeDoesNotSupportIt) {
  Start();
  CreatePod("p", "plain");
  CreatePod("q", "able");
  CreatePod("free", "");
  const Response refused = PatchResize("p", kTwoCpus);
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->code, 403);
  EXPECT_EQ(refused.failure->message,
            "pods \"p\" is forbidden: pod update requires features "
            "InPlacePodLevelResourcesVerticalScaling which are not available on node \"plain\"");
  EXPECT_EQ(CpuOf("p"), "1") << "nothing was written";
  EXPECT_EQ(Change("p", "resize", Resize), refused.failure->message)
      << "an update is no way around it";

  const Response allowed = PatchResize("q", kTwoCpus);
  EXPECT_FALSE(allowed.failure) << allowed.failure->message;
  EXPECT_EQ(CpuOf("q"), "2");
  EXPECT_EQ(core_->Find("", "pods", "default/q")->root()["metadata"]["generation"].integer(), 2);
  EXPECT_FALSE(PatchResize("free", kTwoCpus).failure) << "bound to no node";
  EXPECT_EQ(CpuOf("free"), "2");
}

TEST_F(NodeDeclaredFeatureValidatorTest, AResizeOfAContainerNeedsNoFeature) {
  Start();
  Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"plain",)"
         R"("containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}})");
  EXPECT_FALSE(
      PatchResize("p",
                  R"({"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}})")
          .failure);
}

TEST_F(NodeDeclaredFeatureValidatorTest, AResizeOnAnUnknownNodeIsRejected) {
  Start();
  CreatePod("p", "missing");
  const Response refused = PatchResize("p", kTwoCpus);
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->code, 403);
  EXPECT_EQ(refused.failure->message, "pods \"p\" is forbidden: node \"missing\" not found");
  EXPECT_EQ(CpuOf("p"), "1");
}

TEST_F(NodeDeclaredFeatureValidatorTest, AnUpdateWhoseRequirementsCannotBeInferredIsRejected) {
  features::FeatureList more;
  more.push_back(std::make_unique<PuzzledFeature>());
  const features::Framework framework = features::FrameworkWith(std::move(more)).value();
  Start(framework);
  Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"able",)"
         R"("hostname":"riddle","resources":{"requests":{"cpu":"1"}},)"
         R"("containers":[{"name":"c","image":"i"}]}})");
  CreatePod("q", "able");
  const std::string expected =
      "pods \"p\" is forbidden: failed to infer pod capability requirements: feature TestPuzzled: "
      "the pod is a riddle";
  const Response refused = PatchResize("p", kTwoCpus);
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->code, 403);
  EXPECT_EQ(refused.failure->message, expected);
  EXPECT_EQ(Change("p", "", Tolerate), expected);
  EXPECT_FALSE(PatchResize("q", kTwoCpus).failure) << "others are not held up";
}

TEST_F(NodeDeclaredFeatureValidatorTest, WithTheGateOffAResizeIsNotChecked) {
  gates_ = FeatureGates().With(Gate::kNodeDeclaredFeatures, false);
  Start();
  CreatePod("p", "plain");
  EXPECT_FALSE(PatchResize("p", kTwoCpus).failure);
  EXPECT_EQ(CpuOf("p"), "2");
  gates_ = FeatureGates();
  EXPECT_TRUE(PatchResize("p", R"({"spec":{"resources":{"requests":{"cpu":"3"}}}})").failure);
}

TEST_F(NodeDeclaredFeatureValidatorTest, EverythingElsePasses) {
  Start();
  CreatePod("free", "");
  CreatePod("p", "plain");
  EXPECT_EQ(Change("free", "", Tolerate), "allowed") << "bound to no node";
  EXPECT_EQ(Change("p", "", [](api::Draft& pod) { pod["metadata"]["labels"].Entry("a") = "b"; }),
            "allowed");
  EXPECT_EQ(Change("p", "", [](api::Draft& pod) { pod["spec"]["activeDeadlineSeconds"] = 5; }),
            "allowed");
  EXPECT_EQ(Change("p", "status", [](api::Draft& pod) { pod["status"]["phase"] = "Running"; }),
            "allowed");
  EXPECT_EQ(Ask("p", "ephemeralcontainers", Tolerate), "allowed") << "another subresource";
  EXPECT_EQ(Delete("v1", "Pod", "default", "p").failure.has_value(), false);
}

TEST_F(NodeDeclaredFeatureValidatorTest, AMissingNodeRejectsTheUpdate) {
  Start();
  CreatePod("p", "missing");
  EXPECT_EQ(Change("p", "", Tolerate), "pods \"p\" is forbidden: node \"missing\" not found");
  EXPECT_EQ(Change("p", "", [](api::Draft& pod) { pod["spec"]["activeDeadlineSeconds"] = 5; }),
            "allowed")
      << "nothing is asked of the node";
}

TEST_F(NodeDeclaredFeatureValidatorTest, WithTheGateOffNothingIsChecked) {
  gates_ = FeatureGates().With(Gate::kNodeDeclaredFeatures, false);
  Start();
  CreatePod("p", "plain");
  EXPECT_EQ(Change("p", "", Tolerate), "allowed");
  // Turned on again.
  gates_ = FeatureGates();
  CreatePod("r", "plain");
  EXPECT_THAT(Change("r", "", Tolerate), HasSubstr("TestStaticCpu"));
}

TEST_F(NodeDeclaredFeatureValidatorTest, InfersWithTheVersionOfTheServer) {
  const features::Framework framework = WithMadeUpFeature(features::VersionOf({1, 36}));
  Start(framework);
  CreatePod("p", "plain");
  EXPECT_EQ(Change("p", "", Tolerate), "allowed") << "every node has it by 1.37";
  gates_ = FeatureGates::Create({.emulated = {1, 36}, .overrides = {}, .turned_on = {}}).value();
  CreatePod("q", "plain");
  EXPECT_THAT(Change("q", "", Tolerate), HasSubstr("TestStaticCpu"));
}

TEST_F(NodeDeclaredFeatureValidatorTest, IsMeasured) {
  Start();
  CreatePod("p", "plain");
  (void)Change("p", "", Tolerate);
  (void)Change("p", "", [](api::Draft& pod) { pod["spec"]["activeDeadlineSeconds"] = 5; });
  const std::string text = metrics_.Text();
  for (const char* rejected : {"true", "false"}) {
    EXPECT_THAT(text, HasSubstr(StrCat(
                          "apiserver_admission_controller_admission_duration_seconds_count{name=\""
                          "NodeDeclaredFeatureValidator\",operation=\"UPDATE\",rejected=\"",
                          rejected, "\",type=\"validate\"} 1")));
  }
}

TEST_F(NodeDeclaredFeatureValidatorTest, ARejectionIsLogged) {
  std::string log;
  SetLogSink([&](std::string_view line) { log += line; });
  Start();
  CreatePod("p", "plain");
  (void)Change("p", "", Tolerate);
  SetLogSink({});
  EXPECT_THAT(log, HasSubstr("NodeDeclaredFeatureValidator"));
  EXPECT_THAT(log, HasSubstr("pod update requires features TestStaticCpu"));
}

// The list is atomic: a write replaces all of it.
TEST_F(NodeDeclaredFeatureValidatorTest, TheListIsAtomicAndServedToAllClients) {
  Start();
  const auto apply = [&](const char* manager, std::string_view features) {
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kPatch;
    request.patch = PatchKind::kApply;
    request.kind = api::FindKind("", "v1", "Node");
    request.name = "plain";
    request.subresource = "status";
    request.field_manager = manager;
    request.force = true;
    request.text =
        StrCat(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"plain"},"status":{)",
               R"("declaredFeatures":)", features, "}}");
    const Response response = Handle(std::move(request));
    return response.failure ? response.failure->message : "allowed";
  };
  ASSERT_EQ(apply("one", R"(["A","B"])"), "allowed");
  ASSERT_EQ(apply("other", R"(["C"])"), "allowed");
  for (const Verb verb : {Verb::kGet, Verb::kList}) {
    Request request;
    request.user = AdminUser();
    request.verb = verb;
    request.kind = api::FindKind("", "v1", "Node");
    if (verb == Verb::kGet) request.name = "plain";
    const Response response = Handle(std::move(request));
    const api::ObjectPtr node = verb == Verb::kGet ? response.object : response.items.back();
    ASSERT_EQ(node->name(), "plain");
    EXPECT_EQ(node->root()["status"]["declaredFeatures"].size(), 1u);
    EXPECT_EQ(node->root()["status"]["declaredFeatures"].at(0).str(), "C");
  }
}

TEST_F(NodeDeclaredFeatureValidatorTest, TheDeclaredFeaturesOfANodeAreValidated) {
  Start();
  const auto declare = [&](std::string_view features) -> std::string {
    api::Draft draft(core_->Find("", "nodes", "plain")->tree());
    draft["status"]["declaredFeatures"] = api::Draft(api::ParseJson(features).value());
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kUpdate;
    request.kind = api::FindKind("", "v1", "Node");
    request.name = "plain";
    request.subresource = "status";
    request.object = draft.Freeze();
    const Response response = Handle(std::move(request));
    return response.failure ? response.failure->message : "allowed";
  };
  EXPECT_EQ(declare(R"(["A","B/c","Unknown"])"), "allowed");
  EXPECT_EQ(core_->Find("", "nodes", "plain")->root()["status"]["declaredFeatures"].size(), 3u)
      << "served as written";
  EXPECT_THAT(declare(R"(["B","A"])"), HasSubstr("list must be sorted alphabetically"));
  EXPECT_THAT(declare(R"(["A","A"])"),
              HasSubstr("status.declaredFeatures[1]: Duplicate value: \"A\""));
  for (const char* name : {"lower", "With-Dash", "A/", "A//b", "", "A b"}) {
    EXPECT_THAT(declare(StrCat("[", Quote(name), "]")), HasSubstr("UpperCamelCase")) << name;
  }
  EXPECT_THAT(declare(StrCat("[", Quote("A" + std::string(253, 'a')), "]")),
              HasSubstr("must be no more than 253 characters"));
  EXPECT_EQ(declare(StrCat("[", Quote("A" + std::string(252, 'a')), "]")), "allowed");
}

TEST_F(NodeDeclaredFeatureValidatorTest, TheFieldIsDroppedWithTheGateOffUnlessItIsInUse) {
  gates_ = FeatureGates().With(Gate::kNodeDeclaredFeatures, false);
  Start();
  const auto field = [&](const char* node) {
    return core_->Find("", "nodes", node)->root()["status"]["declaredFeatures"].size();
  };
  EXPECT_EQ(field("able"), 0u);
  gates_ = FeatureGates();
  CreateNode("old", R"(["A"])");
  EXPECT_EQ(field("old"), 1u);
  gates_ = FeatureGates().With(Gate::kNodeDeclaredFeatures, false);
  api::Draft draft(core_->Find("", "nodes", "old")->tree());
  draft["metadata"]["labels"].Entry("a") = "b";
  Request request;
  request.user = AdminUser();
  request.verb = Verb::kUpdate;
  request.kind = api::FindKind("", "v1", "Node");
  request.name = "old";
  request.object = draft.Freeze();
  EXPECT_FALSE(Handle(std::move(request)).failure);
  EXPECT_EQ(field("old"), 1u) << "survives unrelated updates";
}

// Restart rules are the feature in the KEP's walkthrough.
TEST_F(NodeDeclaredFeatureValidatorTest, RestartRulesOfContainersAreValidated) {
  Start();
  int number = 0;
  const auto create = [&](std::string_view container) -> std::string {
    const Response response = TryCreate(
        StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"r)", number++,
               R"("},"spec":{"containers":[{"name":"c","image":"i",)", container, "}]}}"));
    return response.failure ? response.failure->message : "allowed";
  };
  const auto rule = [](const char* action, const char* codes) {
    return StrCat(R"("restartPolicy":"Never","restartPolicyRules":[{"action":")", action,
                  R"(","exitCodes":)", codes, "}]");
  };
  const char* good = R"({"operator":"In","values":[42]})";
  EXPECT_EQ(create(rule("Restart", good)), "allowed");
  EXPECT_EQ(create(rule("RestartAllContainers", good)), "allowed");
  EXPECT_THAT(
      create(
          R"("restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[1]}}])"),
      HasSubstr("spec.containers[0].restartPolicy: Required value: must specify "
                "restartPolicy when restart rules are used"));
  EXPECT_THAT(
      create(rule("DoNotRestart", good)),
      HasSubstr("spec.containers[0].restartPolicyRules[0].action: Unsupported value: "
                "\"DoNotRestart\": supported values: \"Restart\", \"RestartAllContainers\""));
  EXPECT_THAT(create(rule("Restart", R"({"operator":"Equals","values":[1]})")),
              HasSubstr("exitCodes.operator: Unsupported value: \"Equals\": supported values: "
                        "\"In\", \"NotIn\""));
  EXPECT_THAT(create(R"("restartPolicy":"Never","restartPolicyRules":[{"action":"Restart"}])"),
              HasSubstr("exitCodes: Required value"));
  EXPECT_THAT(create(R"("restartPolicy":"Sometimes")"),
              HasSubstr("spec.containers[0].restartPolicy"));
  gates_ = FeatureGates().With(Gate::kRestartAllContainersOnContainerExits, false);
  EXPECT_THAT(create(rule("RestartAllContainers", good)),
              HasSubstr("supported values: \"Restart\""));
  gates_ = gates_.With(Gate::kContainerRestartRules, false);
  EXPECT_EQ(create(rule("Restart", good)), "allowed") << "dropped";
  EXPECT_FALSE(core_->Find("", "pods", StrCat("default/r", number - 1))
                   ->root()["spec"]["containers"]
                   .at(0)["restartPolicyRules"]
                   .has_value());
}

}  // namespace
}  // namespace drakkar::apiserver
