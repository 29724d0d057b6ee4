// Rules for pods that no object of the field sweep reaches.
#include <gmock/gmock.h>

#include "api/json/writer.h"
#include "apiserver/testing/core_fixture.h"
#include "apiserver/validation/pod_qos.h"
#include "apiserver/validation/pod_resize.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

api::TreePtr Parse(std::string_view json) {
  const auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return tree.ok() ? *tree : nullptr;
}

// The class of a pod with one container of these resources, or with the given spec.
std::string_view Class(std::string_view resources) {
  return QosClass(Parse(StrCat(R"({"containers":[{"resources":)", resources, "}]}"))->root());
}

TEST(PodQos, AGuaranteedPodHasEqualRequestsAndLimitsOfBoth) {
  EXPECT_EQ(Class("{}"), "BestEffort");
  EXPECT_EQ(Class(R"({"limits":{"cpu":"0"},"requests":{"memory":"0"}})"), "BestEffort");
  EXPECT_EQ(Class(R"({"requests":{"example.com/gpu":"1"},"limits":{"example.com/gpu":"1"}})"),
            "BestEffort");
  EXPECT_EQ(Class(R"({"requests":{"cpu":"1"}})"), "Burstable");
  EXPECT_EQ(Class(R"({"limits":{"memory":"1Gi"}})"), "Burstable");
  constexpr char kBoth[] = R"({"requests":{"cpu":"1","memory":"1Gi"},
      "limits":{"cpu":"1000m","memory":"1024Mi"}})";
  EXPECT_EQ(Class(kBoth), "Guaranteed");
  EXPECT_EQ(Class(R"({"requests":{"cpu":"1"},"limits":{"cpu":"1"}})"), "Burstable");
  EXPECT_EQ(Class(R"({"requests":{"cpu":"1","memory":"1Gi"},
      "limits":{"cpu":"2","memory":"1Gi"}})"),
            "Burstable");
  EXPECT_EQ(Class(R"({"requests":{"cpu":"1"},"limits":{"cpu":"1","memory":"1Gi"}})"), "Burstable");
  EXPECT_EQ(Class(R"({"requests":{"cpu":"1","memory":"1Gi"},
      "limits":{"cpu":"1","memory":"1Gi","example.com/gpu":"1"}})"),
            "Guaranteed");
}

TEST(PodQos, EveryContainerCountsUnlessThePodHasResourcesOfItsOwn) {
  const auto of = [](std::string_view spec) { return QosClass(Parse(spec)->root()); };
  constexpr std::string_view kBoth =
      R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1","memory":"1Gi"}})";
  const auto two = [&](std::string_view list, std::string_view other) {
    return of(StrCat(R"({")", list, R"(":[{"resources":)", other,
                     R"(}],"containers":[{"resources":)", kBoth, "}]}"));
  };
  EXPECT_EQ(two("initContainers", kBoth), "Guaranteed");
  EXPECT_EQ(two("initContainers", "{}"), "Burstable");
  EXPECT_EQ(two("ephemeralContainers", "{}"), "Guaranteed");
  EXPECT_EQ(of(StrCat(R"({"containers":[{"resources":)", kBoth, R"(},{"resources":{}}]})")),
            "Burstable");
  EXPECT_EQ(of(StrCat(R"({"resources":)", kBoth, R"(,"containers":[{"resources":{}}]})")),
            "Guaranteed");
  EXPECT_EQ(of(StrCat(R"({"resources":{"requests":{"cpu":"1"}},"containers":[{"resources":)", kBoth,
                      "}]}")),
            "Burstable");
  EXPECT_EQ(of(StrCat(R"({"resources":{"limits":{"cpu":"1"}},"containers":[{"resources":)", kBoth,
                      "}]}")),
            "Burstable");
}

FeatureGates ResizeGates() {
  return FeatureGates()
      .With(Gate::kInPlacePodVerticalScalingInitContainers, true)
      .With(Gate::kInPlacePodVerticalScalingMemoryBackedVolumes, true);
}

std::vector<std::string> Resize(std::string_view spec, std::string_view before,
                                std::string_view more = "",
                                const FeatureGates& gates = ResizeGates()) {
  const api::TreePtr now = Parse(StrCat(R"({"spec":)", spec, "}"));
  const api::TreePtr then = Parse(StrCat(R"({"spec":)", before, more, "}"));
  std::vector<std::string> texts;
  for (const api::FieldError& error : ValidatePodResize(now->root(), then->root(), gates)) {
    texts.push_back(error.ToString());
  }
  return texts;
}

std::string One(std::string_view resources, std::string_view more = "") {
  return StrCat(R"({"containers":[{"name":"c","resources":)", resources, more, "}]}");
}

TEST(PodResize, OnlyCpuAndMemoryChange) {
  const std::string before = One(R"({"requests":{"cpu":"1","example.com/gpu":"1"}})");
  constexpr char kOnly[] = "spec: Forbidden: only cpu and memory resources are mutable";
  EXPECT_THAT(Resize(One(R"({"requests":{"cpu":"2","example.com/gpu":"1000m"}})"), before),
              IsEmpty());
  EXPECT_THAT(
      Resize(One(R"({"requests":{"cpu":"1","memory":"1Gi","example.com/gpu":"1"}})"), before),
      IsEmpty());
  EXPECT_THAT(Resize(One(R"({"requests":{"cpu":"1","example.com/gpu":"2"}})"), before),
              ElementsAre(kOnly));
  EXPECT_THAT(Resize(One(R"({"requests":{"cpu":"1","example.com/gpu":"1","a.b/c":"1"}})"), before),
              ElementsAre(kOnly));
  EXPECT_THAT(Resize(One(R"({"requests":{"cpu":"1"}})"), before),
              ElementsAre("spec.containers[0].resources.requests: Forbidden: resource requests "
                          "cannot be removed",
                          kOnly));
  const std::string limited = One(R"({"requests":{"cpu":"1"},"limits":{"a.b/c":"1"}})");
  EXPECT_THAT(Resize(One(R"({"requests":{"cpu":"1"},"limits":{"a.b/c":"2"}})"), limited),
              ElementsAre(kOnly));
  EXPECT_THAT(Resize(One(R"({"requests":{"cpu":"1"}})"), limited),
              ElementsAre(HasSubstr("resources.limits: Forbidden: resource limits cannot be "
                                    "removed"),
                          kOnly));
}

TEST(PodResize, PoliciesStay) {
  constexpr char kPolicy[] = R"(,"resizePolicy":[{"resourceName":"cpu","restartPolicy":"x"}])";
  const std::string plain = One(R"({"requests":{"cpu":"1"}})");
  const std::string with = One(R"({"requests":{"cpu":"1"}})", kPolicy);
  EXPECT_THAT(Resize(with, with), IsEmpty());
  EXPECT_THAT(Resize(One(R"({"requests":{"cpu":"1"}})", R"(,"resizePolicy":[])"), plain),
              IsEmpty());
  EXPECT_EQ(Resize(with, plain).size(), 1u);
  EXPECT_EQ(Resize(plain, with).size(), 1u);
}

TEST(PodResize, TheClassOfServiceStays) {
  const std::string before = One(R"({"requests":{"cpu":"1"}})");
  const std::string after =
      One(R"({"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1","memory":"1Gi"}})");
  EXPECT_THAT(Resize(after, before),
              ElementsAre("spec: Invalid value: \"Guaranteed\": Pod QOS Class may not change as a "
                          "result of resizing"));
  EXPECT_THAT(Resize(after, before, R"(,"status":{"qosClass":"Guaranteed"})"), IsEmpty())
      << "the one in the status counts";
}

TEST(PodResize, ANodeShowsThatItCan) {
  const std::string spec = One(R"({"requests":{"cpu":"1"}})");
  const auto with = [&](std::string_view statuses) {
    return Resize(spec, spec, StrCat(R"(,"status":{"containerStatuses":)", statuses, "}"));
  };
  EXPECT_THAT(with(R"([{"state":{"running":{}},"resources":{}}])"), IsEmpty());
  EXPECT_THAT(with(R"([{"state":{"waiting":{}}}])"), IsEmpty());
  EXPECT_THAT(with(R"([{"state":{"waiting":{}}},{"state":{"running":{}}}])"),
              ElementsAre("spec: Forbidden: Pod running on node without support for resize"));
}

TEST(PodResize, SomePodsCannotBeResized) {
  const std::string spec = One(R"({"requests":{"cpu":"1"}})");
  EXPECT_THAT(
      Resize(spec, spec, R"(,"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"}})"),
      ElementsAre("spec: Forbidden: static pods cannot be resized"));
  EXPECT_THAT(Resize(spec, R"({"os":{"name":"windows"},"containers":[{"name":"c"}]})"),
              ElementsAre("spec: Forbidden: windows pods cannot be resized"));
  EXPECT_THAT(Resize(spec, R"({"os":{"name":"linux"},"containers":[{"name":"c","resources":
      {"requests":{"cpu":"2"}}}]})"),
              IsEmpty());
}

TEST(PodResize, ContainersKeepTheirNamesAndOrder) {
  const auto named = [](std::string_view list, std::string_view names) {
    std::string text = R"({"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}])";
    if (list == "containers") text = R"({"x":[])";
    text += StrCat(R"(,")", list, R"(":[)");
    for (const std::string_view name : Split(names, ' ')) {
      text += StrCat(text.back() == '[' ? "" : ",", R"({"name":")", name,
                     R"(","resources":{"requests":{"cpu":"1"}}})");
    }
    return text + "]}";
  };
  for (const char* list : {"containers", "initContainers"}) {
    EXPECT_THAT(Resize(named(list, "a b"), named(list, "a b")), IsEmpty());
    EXPECT_THAT(Resize(named(list, "a"), named(list, "a b")),
                ElementsAre(StrCat("spec.", list, ": Forbidden: ", list,
                                   " may not be added or removed on resize")));
    const std::string moved =
        StrCat(": Forbidden: ", list, " may not be renamed or reordered on resize");
    EXPECT_THAT(Resize(named(list, "b a"), named(list, "a b")),
                ElementsAre(StrCat("spec.", list, "[0].name", moved),
                            StrCat("spec.", list, "[1].name", moved)));
    EXPECT_THAT(Resize(named(list, "a c"), named(list, "a b")),
                ElementsAre(StrCat("spec.", list, "[1].name", moved)));
  }
}

TEST(PodResize, InitContainers) {
  const auto spec = [](std::string_view first, std::string_view second) {
    return StrCat(R"({"initContainers":[{"name":"a",)", first, R"(},{"name":"b",)", second,
                  R"(}],"containers":[{"name":"c"}]})");
  };
  constexpr std::string_view kSidecar = R"("restartPolicy":"Always","resources":)";
  constexpr std::string_view kOne = R"({"requests":{"cpu":"1","a.b/c":"1"}})";
  constexpr std::string_view kTwo = R"({"requests":{"cpu":"2","a.b/c":"1"}})";
  constexpr std::string_view kOther = R"({"requests":{"cpu":"1","a.b/c":"2"}})";
  const auto change = [&](std::string_view kind, std::string_view resources, bool allowed = true) {
    return Resize(spec(StrCat(kSidecar, kOne), StrCat(kind, resources)),
                  spec(StrCat(kSidecar, kOne), StrCat(kind, kOne)), "",
                  FeatureGates().With(Gate::kInPlacePodVerticalScalingInitContainers, allowed));
  };
  constexpr std::string_view kPlain = R"("resources":)";
  constexpr char kOnly[] =
      "spec.initContainers[1]: Forbidden: only cpu and memory resources for "
      "init or sidecar containers are mutable";
  EXPECT_THAT(change(kSidecar, kTwo), IsEmpty());
  EXPECT_THAT(change(kSidecar, kTwo, false), IsEmpty()) << "sidecars need no gate";
  EXPECT_THAT(change(kSidecar, kOther), ElementsAre(kOnly));
  EXPECT_THAT(
      change(kSidecar, R"({"requests":{"cpu":"1"}})"),
      ElementsAre(HasSubstr("spec.initContainers[1].resources.requests: Forbidden"), kOnly));
  EXPECT_THAT(change(kPlain, kTwo), IsEmpty());
  EXPECT_THAT(change(kPlain, kOther), ElementsAre(kOnly));
  EXPECT_THAT(change(kPlain, kTwo, false),
              ElementsAre("spec: Forbidden: resources for non-sidecar init containers are "
                          "immutable"));
  EXPECT_THAT(change(kPlain, kOne, false), IsEmpty());
  EXPECT_THAT(change(kPlain, R"({"requests":{"cpu":"1","a.b/c":"1"},"limits":{"cpu":"3"}})", false),
              ElementsAre(HasSubstr("are immutable")));
  constexpr std::string_view kRestarted =
      R"("resizePolicy":[{"resourceName":"memory","restartPolicy":"NotRequired"},)"
      R"({"resourceName":"cpu","restartPolicy":"RestartContainer"}],"resources":)";
  EXPECT_THAT(change(kRestarted, kTwo),
              ElementsAre("spec.initContainers[1]: Forbidden: non-sidecar init containers with a "
                          "resize policy of RestartContainer cannot be resized"));
  EXPECT_THAT(change(kRestarted, kOne), IsEmpty());
  EXPECT_THAT(change(StrCat(R"("restartPolicy":"Always",)", kRestarted), kTwo), IsEmpty());
}

TEST(PodResize, Volumes) {
  const auto spec = [](std::string_view volumes) {
    return StrCat(R"({"containers":[{"name":"c"}],"volumes":)", volumes, "}");
  };
  const auto change = [&](std::string_view now, std::string_view before) {
    return Resize(spec(now), spec(before));
  };
  const auto memory = [](std::string_view limit) {
    return StrCat(R"([{"name":"m","emptyDir":{"medium":"Memory")",
                  limit.empty() ? "" : StrCat(R"(,"sizeLimit":")", limit, "\""), "}}]");
  };
  const auto disk = [](std::string_view limit) {
    return StrCat(R"([{"name":"m","emptyDir":{"sizeLimit":")", limit, R"("}}])");
  };
  EXPECT_THAT(change(memory("2Mi"), memory("1Mi")), IsEmpty());
  EXPECT_THAT(change(memory(""), memory("0")), IsEmpty()) << "neither limits anything";
  EXPECT_THAT(change(memory(""), memory("1Mi")), ElementsAre(HasSubstr("adding or removing")));
  EXPECT_THAT(change(memory("1Mi"), memory("0")), ElementsAre(HasSubstr("adding or removing")));
  EXPECT_THAT(change(disk("1024Ki"), disk("1Mi")), IsEmpty());
  EXPECT_THAT(change(disk("2Mi"), disk("1Mi")),
              ElementsAre(HasSubstr("only mutable for memory-backed emptyDir volumes")));
  EXPECT_THAT(change(R"([{"name":"n","emptyDir":{}},{"name":"m","emptyDir":{}}])",
                     R"([{"name":"m","emptyDir":{}},{"name":"n","emptyDir":{}}])"),
              ElementsAre(HasSubstr("spec.volumes[0].name: Forbidden"),
                          HasSubstr("spec.volumes[1].name: Forbidden")));
  EXPECT_THAT(change(R"([{"name":"m","configMap":{"name":"a"}}])",
                     R"([{"name":"m","configMap":{"name":"b"}}])"),
              ElementsAre(HasSubstr("only sizeLimit of memory-backed emptyDir volumes")));
  EXPECT_THAT(
      change(R"([{"name":"m","emptyDir":{}}])", R"([{"name":"m","hostPath":{"path":"/"}}])"),
      ElementsAre(HasSubstr("only sizeLimit of memory-backed emptyDir volumes")));
  EXPECT_THAT(Resize(spec(memory("2Mi")), spec(memory("1Mi")), "", FeatureGates()),
              ElementsAre(HasSubstr("volumes are immutable on resize")));
  EXPECT_THAT(Resize(spec(memory("1Mi")), spec(memory("1Mi")), "", FeatureGates()), IsEmpty());
}

TEST(PodResize, OfThePodAsAWhole) {
  const auto spec = [](std::string_view resources) {
    return StrCat(R"({"resources":)", resources, R"(,"containers":[{"name":"c"}]})");
  };
  constexpr std::string_view kOne = R"({"requests":{"cpu":"1","hugepages-2Mi":"2Mi"}})";
  const auto change = [&](std::string_view now, std::string_view before, bool on = true) {
    return Resize(spec(now), spec(before), "",
                  FeatureGates().With(Gate::kInPlacePodLevelResourcesVerticalScaling, on));
  };
  EXPECT_THAT(change(R"({"requests":{"cpu":"2","hugepages-2Mi":"2Mi"}})", kOne), IsEmpty());
  EXPECT_THAT(change(R"({"requests":{"cpu":"1","hugepages-2Mi":"4Mi"}})", kOne),
              ElementsAre("spec: Forbidden: only cpu and memory resources are mutable at "
                          "pod-level"));
  EXPECT_THAT(change(R"({"requests":{"hugepages-2Mi":"2Mi"}})",
                     R"({"requests":{"memory":"1Gi","hugepages-2Mi":"2Mi"},"limits":{"cpu":"1"}})"),
              testing::Contains(HasSubstr("spec.resources.limits: Forbidden: pod-level resource "
                                          "limits cannot be removed")));
  EXPECT_THAT(change("{}", kOne, false), testing::Contains(HasSubstr("is forbidden when")));
  EXPECT_THAT(change(R"({"limits":{"cpu":"1"}})", "{}", false),
              testing::Contains(HasSubstr("is forbidden when")));
  EXPECT_THAT(change("{}", "{}", false), IsEmpty());
}

class PodRulesTest : public CoreFixture {
 protected:
  PodRulesTest() { StartCore(nullptr); }
  std::string Made(std::string_view spec, std::string_view name = "p") {
    return Problems(TryCreate(StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")",
                                     name, R"("},"spec":{)", spec, "}}")));
  }
  // With one container that has these members, too.
  std::string Container(std::string_view more, std::string_view spec = "") {
    const std::string found = Made(StrCat(R"("containers":[{"name":"c","image":"i",)", more, "}]",
                                          spec.empty() ? "" : ",", spec));
    if (found == "ok") Delete("v1", "Pod", "default", "p");
    return found;
  }
  std::string Change(const std::function<void(api::Draft&)>& change, std::string subresource = "") {
    api::Draft pod(core_->Find("", "pods", "default/p")->tree());
    change(pod);
    Request request = RequestFor(Verb::kUpdate, api::WriteJson(pod.Freeze()->root()), AdminUser());
    request.subresource = std::move(subresource);
    return Problems(Handle(std::move(request)));
  }
  static std::string Problems(const Response& response) {
    if (!response.failure) return "ok";
    const std::size_t at = response.failure->message.find("is invalid: ");
    return at == std::string::npos ? response.failure->message
                                   : response.failure->message.substr(at + 12);
  }
};

TEST_F(PodRulesTest, AContainerUsesAClaimAsAWholeOrByRequest) {
  constexpr char kClaims[] = R"("resourceClaims":[{"name":"a","resourceClaimName":"x"},
      {"name":"b","resourceClaimName":"y"}])";
  const auto used = [&](std::string_view claims) {
    return Container(StrCat(R"("resources":{"claims":[)", claims, "]}"), kClaims);
  };
  EXPECT_EQ(used(R"({"name":"a"},{"name":"b"})"), "ok");
  EXPECT_EQ(used(R"({"name":"a","request":"r"},{"name":"a","request":"s"})"), "ok");
  EXPECT_EQ(used(R"({"name":"a"},{"name":"a"})"),
            "spec.containers[0].resources.claims[1]: Duplicate value: \"a\"");
  EXPECT_EQ(used(R"({"name":"a","request":"r"},{"name":"a","request":"r"})"),
            "spec.containers[0].resources.claims[1]: Duplicate value: \"a/r\"");
  EXPECT_EQ(used(R"({"name":"a"},{"name":"a","request":"r"})"),
            "spec.containers[0].resources.claims[1]: Duplicate value: \"a\"");
  EXPECT_EQ(used(R"({"name":"a","request":"r"},{"name":"a"})"),
            "spec.containers[0].resources.claims[1]: Duplicate value: \"a\"");
  EXPECT_THAT(used(R"({"name":"c"})"),
              HasSubstr("must be one of the names in pod.spec.resourceClaims: a, b"));
}

TEST_F(PodRulesTest, ExitCodesRestartAContainer) {
  gates_ = gates_.With(Gate::kContainerRestartRules, true)
               .With(Gate::kRestartAllContainersOnContainerExits, false);
  const auto rule = [&](std::string_view text) {
    return Container(StrCat(R"("restartPolicy":"Never","restartPolicyRules":[)", text, "]"));
  };
  constexpr char kGood[] = R"({"action":"Restart","exitCodes":{"operator":"In","values":[1]}})";
  EXPECT_EQ(rule(kGood), "ok");
  EXPECT_EQ(rule(R"({"action":"Restart","exitCodes":{"operator":"NotIn","values":[1]}})"), "ok");
  EXPECT_THAT(Container(StrCat(R"("restartPolicyRules":[)", kGood, "]")),
              HasSubstr("must specify restartPolicy when restart rules are used"));
  EXPECT_THAT(
      rule(R"({"action":"RestartAllContainers","exitCodes":{"operator":"In","values":[1]}})"),
      HasSubstr("Unsupported value: \"RestartAllContainers\": supported values: \"Restart\""));
  EXPECT_THAT(rule(R"({"action":"Restart"})"), HasSubstr("exitCodes: Required value"));
  EXPECT_THAT(rule(R"({"action":"Restart","exitCodes":{"operator":"Like","values":[1]}})"),
              HasSubstr("exitCodes.operator: Unsupported value: \"Like\""));
  const auto many = [&](int rules, int codes) {
    std::string text;
    for (int i = 0; i < rules; ++i) {
      std::string values;
      for (int j = 0; j < codes; ++j) values += StrCat(j == 0 ? "" : ",", j + 1);
      text +=
          StrCat(i == 0 ? "" : ",",
                 R"({"action":"Restart","exitCodes":{"operator":"In","values":[)", values, "]}}");
    }
    return rule(text);
  };
  EXPECT_EQ(many(20, 1), "ok");
  EXPECT_THAT(many(21, 1), HasSubstr("restartPolicyRules: Too many: 21"));
  EXPECT_EQ(many(1, 255), "ok");
  EXPECT_THAT(many(1, 256), HasSubstr("exitCodes.values: Too many: 256"));
}

TEST_F(PodRulesTest, WhatAContainerNeeds) {
  EXPECT_EQ(Made(R"("containers":[])"), "spec.containers: Required value");
  EXPECT_THAT(Made(R"("containers":[{"image":"i"}])"),
              HasSubstr("spec.containers[0].name: Required"));
  EXPECT_THAT(Made(R"("containers":[{"name":"A","image":"i"}])"),
              HasSubstr("spec.containers[0].name: Invalid value: \"A\""));
  EXPECT_THAT(Made(R"("containers":[{"name":"a"}])"),
              HasSubstr("spec.containers[0].image: Required"));
  EXPECT_THAT(Made(R"("containers":[{"name":"a","image":" i"}])"),
              HasSubstr("must not have leading or trailing whitespace"));
  EXPECT_EQ(Made(R"("initContainers":[{"name":"a","image":"i"}],
      "containers":[{"name":"a","image":"i"}])"),
            "spec.initContainers[0].name: Duplicate value: \"a\"");
  EXPECT_THAT(Container(R"("imagePullPolicy":"Sometimes")"),
              HasSubstr("imagePullPolicy: Unsupported value: \"Sometimes\""));
  EXPECT_THAT(Container(R"("env":[{"value":"x"}])"), HasSubstr("env[0].name: Required value"));
  EXPECT_EQ(Container(R"("env":[{"name":"A","value":"","valueFrom":{"fieldRef":
      {"fieldPath":"metadata.name"}}}])"),
            "ok");
  EXPECT_THAT(Container(R"("env":[{"name":"A","value":"x","valueFrom":{"fieldRef":
      {"fieldPath":"metadata.name"}}}])"),
              HasSubstr("may not be specified when `value` is not empty"));
}

TEST_F(PodRulesTest, RequestsAreWithinTheirLimits) {
  const auto resources = [&](std::string_view requests, std::string_view limits) {
    return Container(StrCat(R"("resources":{"requests":)", requests, R"(,"limits":)", limits, "}"));
  };
  EXPECT_EQ(resources(R"({"cpu":"1"})", R"({"cpu":"1"})"), "ok");
  EXPECT_EQ(resources(R"({"cpu":"1"})", R"({"memory":"1"})"), "ok");
  EXPECT_EQ(resources(R"({"cpu":"1001m"})", R"({"cpu":"1"})"),
            "spec.containers[0].resources.requests: Invalid value: \"1001m\": must be less than or "
            "equal to cpu limit of 1");
  EXPECT_THAT(resources(R"({"cpu":"-1"})", "{}"), HasSubstr("must be greater than or equal to 0"));
  EXPECT_THAT(resources("{}", R"({"cpu":"-1"})"),
              HasSubstr("resources.limits[cpu]: Invalid value: \"-1\""));
}

TEST_F(PodRulesTest, VolumesAreMountedOncePerPath) {
  const auto mounts = [&](std::string_view list) {
    return Container(
        StrCat(R"("volumeMounts":[)", list, "]"),
        R"("volumes":[{"name":"v","emptyDir":{}},{"name":"i","image":{"reference":"r"}}])");
  };
  gates_ = gates_.With(Gate::kVolumeBindMountOptions, true);
  EXPECT_EQ(mounts(R"({"name":"v","mountPath":"/a"},{"name":"v","mountPath":"/b"})"), "ok");
  EXPECT_THAT(mounts(R"({"name":"v","mountPath":"/a"},{"name":"i","mountPath":"/a"})"),
              HasSubstr("volumeMounts[1].mountPath: Invalid value: \"/a\": must be unique"));
  EXPECT_THAT(mounts(R"({"name":"v"})"), HasSubstr("volumeMounts[0].mountPath: Required value"));
  EXPECT_THAT(mounts(R"({"name":"w","mountPath":"/a"})"),
              HasSubstr("volumeMounts[0].name: Not found: \"w\""));
  EXPECT_EQ(
      mounts(R"({"name":"v","mountPath":"/a","bindMountOptions":["nodev","noexec","nosuid"]})"),
      "ok");
  EXPECT_THAT(mounts(R"({"name":"v","mountPath":"/a","bindMountOptions":["nodev","suid"]})"),
              HasSubstr("bindMountOptions[1]: Unsupported value: \"suid\""));
  EXPECT_THAT(mounts(R"({"name":"v","mountPath":"/a","bindMountOptions":["nodev","nodev"]})"),
              HasSubstr("bindMountOptions[1]: Duplicate value: \"nodev\""));
  EXPECT_THAT(mounts(R"({"name":"i","mountPath":"/a","bindMountOptions":["nodev"]})"),
              HasSubstr("bindMountOptions may not be used with image volumes"));
}

TEST_F(PodRulesTest, APodRunsForAWhile) {
  const auto deadline = [&](std::int64_t seconds) {
    return Container(R"("tty":false)", StrCat(R"("activeDeadlineSeconds":)", seconds));
  };
  EXPECT_EQ(deadline(1), "ok");
  EXPECT_EQ(deadline(2'147'483'647), "ok");
  for (const std::int64_t seconds : {std::int64_t{0}, std::int64_t{2'147'483'648}}) {
    EXPECT_THAT(deadline(seconds), HasSubstr("must be between 1 and 2147483647, inclusive"));
  }
  EXPECT_EQ(Container(R"("tty":false)", R"("terminationGracePeriodSeconds":0)"), "ok");
  EXPECT_THAT(Container(R"("tty":false)", R"("restartPolicy":"Sometimes")"),
              HasSubstr("spec.restartPolicy: Unsupported value: \"Sometimes\""));
}

TEST_F(PodRulesTest, WhatAnUpdateMayChange) {
  ASSERT_EQ(
      Made(R"("activeDeadlineSeconds":100,"schedulingGates":[{"name":"a.b/c"},{"name":"a.b/d"}],
      "tolerations":[{"key":"a","operator":"Exists"},{"key":"b","operator":"Exists"}],
      "initContainers":[{"name":"i","image":"i:1"}],"containers":[{"name":"c","image":"i:1"}])"),
      "ok");
  const auto spec = [&](const std::function<void(api::Draft&)>& change) {
    return Change([&](api::Draft& pod) { change(pod["spec"]); });
  };
  EXPECT_EQ(spec([](api::Draft& s) { s["containers"].at(0)["image"] = "i:2"; }), "ok");
  EXPECT_EQ(spec([](api::Draft& s) { s["initContainers"].at(0)["image"] = "i:2"; }), "ok");
  EXPECT_EQ(spec([](api::Draft& s) { s["activeDeadlineSeconds"] = 100; }), "ok");
  EXPECT_EQ(spec([](api::Draft& s) { s["activeDeadlineSeconds"] = 99; }), "ok");
  EXPECT_THAT(spec([](api::Draft& s) { s["activeDeadlineSeconds"] = 100; }),
              HasSubstr("must be less than or equal to previous value"));
  EXPECT_THAT(spec([](api::Draft& s) { s["activeDeadlineSeconds"] = -1; }),
              HasSubstr("must be between 0 and 2147483647, inclusive"));
  EXPECT_THAT(spec([](api::Draft& s) { s.Remove("activeDeadlineSeconds"); }),
              HasSubstr("must not update from a positive integer to nil value"));
  EXPECT_EQ(spec([](api::Draft& s) {
              s["tolerations"].Append({{"key", "c"}, {"operator", "Exists"}});
            }),
            "ok");
  EXPECT_THAT(spec([](api::Draft& s) { s["tolerations"].RemoveAt(1); }),
              HasSubstr("existing toleration can not be modified"));
  EXPECT_THAT(spec([](api::Draft& s) {
                s["schedulingGates"].Append({{"name", "a.b/e"}});
              }),
              HasSubstr("only deletion is allowed, but found new scheduling gate 'a.b/e'"));
  EXPECT_EQ(spec([](api::Draft& s) { s["schedulingGates"].RemoveAt(0); }), "ok");
  EXPECT_THAT(spec([](api::Draft& s) { s["hostname"] = "h"; }),
              HasSubstr("pod updates may not change fields other than"));
}

TEST_F(PodRulesTest, TheStatusNamesClaimsOfThePod) {
  ASSERT_EQ(Made(R"("resourceClaims":[{"name":"a","resourceClaimTemplateName":"x"},
      {"name":"b","resourceClaimTemplateName":"x"}],"containers":[{"name":"c","image":"i"}])"),
            "ok");
  const auto statuses = [&](std::string_view list) {
    return Change(
        [&](api::Draft& pod) {
          pod["status"]["resourceClaimStatuses"] = api::Draft(*api::ParseJson(list));
        },
        "status");
  };
  EXPECT_EQ(statuses(R"([{"name":"a","resourceClaimName":"p-a"},{"name":"b"}])"), "ok");
  EXPECT_THAT(statuses(R"([{"name":"a"},{"name":"c"}])"),
              HasSubstr("status.resourceClaimStatuses[1].name: Invalid value: \"c\""));
  EXPECT_THAT(statuses(R"([{"name":"a"},{"name":"a"}])"),
              HasSubstr("status.resourceClaimStatuses[1].name: Duplicate value: \"a\""));
  EXPECT_THAT(statuses(R"([{"name":"a","resourceClaimName":"Not valid"}])"),
              HasSubstr("resourceClaimStatuses[0].resourceClaimName: Invalid value"));
}

}  // namespace
}  // namespace drakkar::apiserver
