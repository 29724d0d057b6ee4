#include "apiserver/admission/resource_quota.h"

#include "apiserver/admission/limit_ranger.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class ResourceQuotaTest : public CoreFixture {
 protected:
  ResourceQuotaTest() {
    std::vector<std::unique_ptr<AdmissionStep>> steps;
    steps.push_back(std::make_unique<LimitRangerDefaults>());
    steps.push_back(std::make_unique<LimitRanger>());
    steps.push_back(std::make_unique<ResourceQuotaAdmission>());
    StartCore(nullptr, std::move(steps));
  }
  void Quota(std::string_view hard, std::string_view more = "") {
    Create(StrCat(R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q"},
        "spec":{"hard":{)",
                  hard, "}", more, "}}"));
  }
  void Range(std::string_view limits) {
    Create(StrCat(R"({"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"l"},
        "spec":{"limits":[)",
                  limits, "]}}"));
  }
  // The reason why a pod is rejected; empty if it is accepted.
  std::string Pod(std::string_view name, std::string_view resources = "{}",
                  std::string_view name_space = "default") {
    last_ = TryCreate(StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                             R"(","namespace":")", name_space,
                             R"("},"spec":{"containers":[{"name":"c","image":"i","resources":)",
                             resources, "}]}}"));
    return last_.failure ? last_.failure->message : std::string();
  }

  Response last_;
};

TEST_F(ResourceQuotaTest, ARequestBeyondTheQuotaIsForbidden) {
  Quota(R"("pods":"2")");
  EXPECT_EQ(Pod("a"), "");
  EXPECT_EQ(Pod("b"), "");
  EXPECT_EQ(Pod("c"),
            "pods \"c\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: "
            "pods=2");
  EXPECT_EQ(last_.failure->code, 403);
  EXPECT_EQ(Pod("c", "{}", "other"), "") << "another namespace";
  Delete("v1", "Pod", "default", "a");
  EXPECT_EQ(Pod("c"), "") << "a deleted pod no longer counts";
}

TEST_F(ResourceQuotaTest, ComputeResourcesAreCountedAndMustBeSpecified) {
  Quota(R"("requests.cpu":"1","limits.memory":"1Gi")");
  EXPECT_EQ(Pod("a"),
            "pods \"a\" is forbidden: failed quota: q: must specify limits.memory for: c; "
            "requests.cpu for: c");
  const auto amounts = [](std::string_view cpu) {
    return StrCat(R"({"requests":{"cpu":")", cpu, R"("},"limits":{"memory":"256Mi"}})");
  };
  EXPECT_EQ(Pod("a", amounts("600m")), "");
  EXPECT_EQ(Pod("b", amounts("500m")),
            "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: "
            "requests.cpu=600m, limited: requests.cpu=1");
  EXPECT_EQ(Pod("b", amounts("400m")), "");
}

TEST_F(ResourceQuotaTest, DevicesAreLimitedPerClass) {
  Quota(
      R"("gpu.deviceclass.resource.k8s.io/devices":"3","count/resourceclaims.resource.k8s.io":"5")");
  const auto claim = [&](std::string_view name, int count) {
    const Response made = TryCreate(StrCat(
        R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":")", name,
        R"("},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu",
            "count":)",
        count, "}}]}}}"));
    return made.failure ? made.failure->message : std::string();
  };
  EXPECT_EQ(claim("a", 2), "");
  EXPECT_EQ(claim("b", 2),
            "resourceclaims.resource.k8s.io \"b\" is forbidden: exceeded quota: q, requested: "
            "gpu.deviceclass.resource.k8s.io/devices=2, used: "
            "gpu.deviceclass.resource.k8s.io/devices=2, limited: "
            "gpu.deviceclass.resource.k8s.io/devices=3");
  EXPECT_EQ(claim("b", 1), "");
}

TEST_F(ResourceQuotaTest, PodsAndClaimsShareTheQuotaOfAnExtendedResource) {
  Create(R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"gpu"},
      "spec":{"extendedResourceName":"e.x/gpu"}})");
  Quota(R"("requests.e.x/gpu":"3")");
  const auto claim = [&](std::string_view name, std::string_view metadata) {
    last_ = TryCreate(
        StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":")",
               name, "\"", metadata, R"(},"spec":{"devices":{"requests":[{"name":"r","exactly":{)",
               R"("deviceClassName":"gpu"}}]}}})"));
    return last_.failure ? last_.failure->message : std::string();
  };
  constexpr char kTwo[] = R"({"requests":{"e.x/gpu":"2"},"limits":{"e.x/gpu":"2"}})";
  EXPECT_EQ(Pod("a", kTwo), "");
  const std::string uid(core_->Find("", "pods", "default/a")->uid());
  EXPECT_EQ(claim("for-a", StrCat(R"(,"annotations":{)",
                                  R"("resource.kubernetes.io/extended-resource-claim":"true"},)",
                                  R"("ownerReferences":[{"apiVersion":"v1","kind":"Pod",)",
                                  R"("name":"a","controller":true,"uid":")", uid, "\"}]")),
            "")
      << "the pod has been counted";
  EXPECT_EQ(claim("own", ""), "");
  EXPECT_EQ(claim("more", ""),
            "resourceclaims.resource.k8s.io \"more\" is forbidden: exceeded quota: q, requested: "
            "requests.e.x/gpu=1, used: requests.e.x/gpu=3, limited: requests.e.x/gpu=3");
  EXPECT_NE(Pod("b", kTwo), "");
  gates_ = FeatureGates().With(Gate::kDRAExtendedResource, false);
  EXPECT_EQ(claim("more", ""), "");
}

TEST_F(ResourceQuotaTest, AnyKindCanBeCounted) {
  Quota(R"("count/deployments.apps":"0","configmaps":"1")");
  EXPECT_TRUE(TryCreate(R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},
      "spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
      "spec":{"containers":[{"name":"c","image":"i"}]}}}})")
                  .failure);
  Create(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}})");
  EXPECT_TRUE(
      TryCreate(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}})").failure);
  // An update adds nothing.
  const Response updated = Handle(
      RequestFor(Verb::kUpdate, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},
      "data":{"k":"v"}})",
                 AdminUser()));
  EXPECT_FALSE(updated.failure);
}

TEST_F(ResourceQuotaTest, ScopesLimitOnlyTheirPods) {
  Quota(R"("pods":"0")", R"(,"scopes":["BestEffort"])");
  EXPECT_NE(Pod("a"), "");
  EXPECT_EQ(Pod("a", R"({"requests":{"cpu":"1"}})"), "");
}

TEST_F(ResourceQuotaTest, AmountsBeyond64BitsAreCountedExactly) {
  Quota(R"("requests.memory":"9223372036854775807","requests.cpu":"20")");
  const auto amounts = [](std::string_view cpu, std::string_view memory) {
    return StrCat(R"({"requests":{"cpu":")", cpu, R"(","memory":")", memory, R"("}})");
  };
  // 2^63-1 and a little, in all notations: neither wraps around nor counts as nothing.
  for (const std::string_view cpu : {"1e18", "9223372036854775807", "8Ei", "1E", "1e30"}) {
    EXPECT_NE(Pod("a", amounts(cpu, "1")), "") << cpu;
  }
  EXPECT_EQ(Pod("a", amounts("1", "9223372036854775806")), "");
  EXPECT_EQ(Pod("b", amounts("1", "1")), "");
  EXPECT_EQ(Pod("c", amounts("1", "1")),
            "pods \"c\" is forbidden: exceeded quota: q, requested: requests.memory=1, used: "
            "requests.memory=9223372036854775807, limited: requests.memory=9223372036854775807");
  EXPECT_NE(Pod("c", amounts("1", "9223372036854775807")), "") << "the sum exceeds 64 bits";
  EXPECT_EQ(Pod("c", amounts("18", "0")), "");
  EXPECT_NE(Pod("d", amounts("1m", "0")), "");
}

TEST(ResourceQuotaCost, RejectionsInALargeNamespaceDoNotCountItEachTime) {
  FakeClock clock;
  const UserInfo user;
  const FeatureGates gates;
  const auto object = [](std::string_view json) {
    return std::make_shared<const api::Object>(*api::ParseJson(json));
  };
  const api::ObjectPtr quota = object(R"({"metadata":{"name":"q","namespace":"n","uid":"u"},
      "spec":{"hard":{"pods":"1"}}})");
  const api::ObjectPtr pod = object(R"({"spec":{"containers":[{"name":"c"}]}})");
  int counts = 0;
  bool is_full = true;
  const StrategyContext context{
      .clock = clock,
      .random = RealRandom(),
      .gates = gates,
      .user = user,
      .lookup = nullptr,
      .authorize = nullptr,
      .visit = [&](std::string_view, std::string_view plural, std::string_view,
                   const std::function<void(const api::ObjectPtr&)>& each) {
        if (plural == "resourcequotas") return each(quota);
        ++counts;
        clock.Advance(std::chrono::milliseconds(100));
        if (is_full) each(pod);
      }};
  ResourceQuotaAdmission step;
  Request request;
  request.kind = api::FindKind("", "v1", "Pod");
  request.verb = Verb::kCreate;
  request.namespace_ = "n";
  const auto is_rejected = [&] {
    std::vector<std::string> warnings;
    return step.Check(request, pod->root(), api::Value(), context, warnings).has_value();
  };
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(is_rejected());
  EXPECT_EQ(counts, 1);
  is_full = false;
  clock.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(is_rejected()) << "judged by the last count";
  clock.Advance(std::chrono::seconds(1));
  EXPECT_FALSE(is_rejected());
  EXPECT_EQ(counts, 2);
}

TEST_F(ResourceQuotaTest, ADryRunUsesNothing) {
  Quota(R"("configmaps":"1")");
  Request request =
      RequestFor(Verb::kCreate, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}})",
                 AdminUser());
  request.dry_run = true;
  EXPECT_FALSE(Handle(std::move(request)).failure);
  Create(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}})");
}

TEST_F(ResourceQuotaTest, ARaisedQuotaAdmitsMore) {
  Quota(R"("pods":"1")");
  EXPECT_EQ(Pod("a"), "");
  EXPECT_NE(Pod("b"), "");
  const Response raised = Handle(RequestFor(
      Verb::kUpdate, R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q"},
      "spec":{"hard":{"pods":"2"}}})",
      AdminUser()));
  EXPECT_FALSE(raised.failure);
  EXPECT_EQ(Pod("b"), "");
}

TEST_F(ResourceQuotaTest, LimitRangesGiveContainersDefaults) {
  Range(R"({"type":"Container","default":{"cpu":"500m"},"defaultRequest":{"cpu":"100m"},
            "max":{"memory":"1Gi"}})");
  EXPECT_EQ(Pod("a", R"({"requests":{"memory":"10Mi"}})"), "");
  const api::Value resources = (*last_.object)["spec"]["containers"].at(0)["resources"];
  EXPECT_EQ(resources["requests"].Entry("cpu").str(), "100m");
  EXPECT_EQ(resources["requests"].Entry("memory").str(), "10Mi");
  EXPECT_EQ(resources["limits"].Entry("cpu").str(), "500m");
  EXPECT_EQ(resources["limits"].Entry("memory").str(), "1Gi") << "the maximum is the default";
  EXPECT_EQ((*last_.object)["metadata"]["annotations"].Entry("kubernetes.io/limit-ranger").str(),
            "LimitRanger plugin set: cpu request for container c; cpu, memory limit for container "
            "c");
}

TEST_F(ResourceQuotaTest, LimitRangesLimitContainersPodsAndVolumeClaims) {
  Range(R"({"type":"Container","min":{"cpu":"100m"},"max":{"cpu":"1"},
            "maxLimitRequestRatio":{"cpu":"2"}},
           {"type":"Pod","max":{"memory":"1Gi"}},
           {"type":"PersistentVolumeClaim","max":{"storage":"5Gi"}})");
  const auto amounts = [](std::string_view request, std::string_view limit,
                          std::string_view memory = "1Gi") {
    return StrCat(R"({"requests":{"cpu":")", request, R"("},"limits":{"cpu":")", limit,
                  R"(","memory":")", memory, R"("}})");
  };
  EXPECT_EQ(Pod("a", amounts("500m", "1")), "");
  EXPECT_EQ(Pod("b", amounts("50m", "80m")),
            "pods \"b\" is forbidden: minimum cpu usage per Container is 100m, but request is 50m");
  EXPECT_EQ(Pod("b", amounts("1500m", "2")),
            "pods \"b\" is forbidden: maximum cpu usage per Container is 1, but limit is 2");
  EXPECT_EQ(Pod("b", amounts("200m", "1")),
            "pods \"b\" is forbidden: cpu max limit to request ratio per Container is 2, but "
            "provided ratio is 5.000000");
  EXPECT_EQ(Pod("b", amounts("1", "1", "2Gi")),
            "pods \"b\" is forbidden: maximum memory usage per Pod is 1Gi, but limit is 2Gi");
  EXPECT_EQ(TryCreate(R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"v"},
      "spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"6Gi"}}}})")
                .failure->message,
            "persistentvolumeclaims \"v\" is forbidden: maximum storage usage per "
            "PersistentVolumeClaim is 5Gi, but request is 6Gi");
}

}  // namespace
}  // namespace drakkar::apiserver
