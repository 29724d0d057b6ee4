#include "apiserver/registry/quota_strategies.h"

#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class QuotaStrategiesTest : public CoreFixture {
 protected:
  void SetUp() override { StartCore(nullptr); }
  std::string Made(std::string_view kind, std::string_view spec) {
    const Response made = TryCreate(StrCat(R"({"apiVersion":"v1","kind":")", kind,
                                           R"(","metadata":{"name":"x"},"spec":)", spec, "}"));
    return made.failure ? made.failure->message : "ok";
  }
};

TEST_F(QuotaStrategiesTest, QuotasLimitKnownResourcesByValidAmounts) {
  EXPECT_EQ(Made("ResourceQuota", R"({"hard":{"unknown":"1"}})"),
            "ResourceQuota \"x\" is invalid: [spec.hard[unknown]: Invalid value: \"unknown\": must "
            "be a standard resource type or fully qualified, spec.hard[unknown]: Invalid value: "
            "\"unknown\": must be a standard resource for quota]");
  EXPECT_EQ(Made("ResourceQuota", R"({"hard":{"pods":"1500m"}})"),
            "ResourceQuota \"x\" is invalid: spec.hard[pods]: Invalid value: \"1500m\": must be an "
            "integer");
  EXPECT_EQ(
      Made("ResourceQuota", R"({"hard":{"cpu":"-1"}})"),
      "ResourceQuota \"x\" is invalid: spec.hard[cpu]: Invalid value: \"-1\": must be greater "
      "than or equal to 0");
  EXPECT_EQ(Made("ResourceQuota", R"({"hard":{"services":"1"},"scopes":["Terminating"]})"),
            "ResourceQuota \"x\" is invalid: spec.scopes: Invalid value: [\"Terminating\"]: "
            "unsupported scope applied to resource");
  EXPECT_EQ(
      Made("ResourceQuota", R"({"hard":{"pods":"1"},"scopes":["BestEffort","NotBestEffort"]})"),
      "ResourceQuota \"x\" is invalid: spec.scopes: Invalid value: "
      "[\"BestEffort\",\"NotBestEffort\"]: conflicting scopes");
  EXPECT_EQ(Made("ResourceQuota", R"({"hard":{"pods":"1","requests.cpu":"1","count/jobs.batch":"2",
      "gpu.deviceclass.resource.k8s.io/devices":"4","requests.example.com/gpu":"1"}})"),
            "ok");
}

TEST_F(QuotaStrategiesTest, TheScopesOfAQuotaCannotChange) {
  Create(R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q"},
      "spec":{"hard":{"pods":"1"},"scopes":["BestEffort"]}})");
  const Response updated = Handle(RequestFor(
      Verb::kUpdate, R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q"},
      "spec":{"hard":{"pods":"1"}}})",
      AdminUser()));
  ASSERT_TRUE(updated.failure);
  EXPECT_NE(updated.failure->message.find("field is immutable"), std::string::npos);
}

TEST_F(QuotaStrategiesTest, LimitsOfARangeMustFitTogether) {
  EXPECT_EQ(Made("LimitRange", R"({"limits":[{"type":"Container","min":{"cpu":"2"},
      "max":{"cpu":"1"}}]})")
                .substr(0, 109),
            "LimitRange \"x\" is invalid: [spec.limits[0].min[cpu]: Invalid value: \"2\": min "
            "value 2 is greater than max valu");
  EXPECT_EQ(Made("LimitRange", R"({"limits":[{"type":"Pod","default":{"cpu":"2"}}]})"),
            "LimitRange \"x\" is invalid: spec.limits[0].default: Forbidden: may not be specified "
            "when `type` is 'Pod'");
  EXPECT_EQ(Made("LimitRange", R"({"limits":[{"type":"PersistentVolumeClaim"}]})"),
            "LimitRange \"x\" is invalid: spec.limits[0].limits: Required value: either minimum or "
            "maximum storage value is required, but neither was provided");
  EXPECT_EQ(Made("LimitRange", R"({"limits":[{"type":"Node"}]})"),
            "LimitRange \"x\" is invalid: spec.limits[0].type: Invalid value: \"Node\": must be a "
            "standard limit type or fully qualified");
}

TEST_F(QuotaStrategiesTest, DefaultsOfARangeFollowFromEachOther) {
  const api::ObjectPtr range = Create(R"({"apiVersion":"v1","kind":"LimitRange",
      "metadata":{"name":"x"},"spec":{"limits":[{"type":"Container","max":{"cpu":"2"},
      "min":{"memory":"1Mi"}}]}})");
  const api::Value item = (*range)["spec"]["limits"].at(0);
  EXPECT_EQ(item["default"].Entry("cpu").str(), "2");
  EXPECT_EQ(item["defaultRequest"].Entry("cpu").str(), "2");
  EXPECT_EQ(item["defaultRequest"].Entry("memory").str(), "1Mi");
}

TEST_F(QuotaStrategiesTest, APodHasNoDefaults) {
  for (const char* field : {"default", "defaultRequest"}) {
    EXPECT_EQ(
        Made("LimitRange", StrCat(R"({"limits":[{"type":"Pod",")", field, R"(":{"cpu":"1"}}]})")),
        StrCat("LimitRange \"x\" is invalid: spec.limits[0].", field,
               ": Forbidden: may not be specified when `type` is 'Pod'"));
  }
}

TEST_F(QuotaStrategiesTest, AClaimOfAVolumeNeedsOneBound) {
  for (const char* field : {"min", "max"}) {
    EXPECT_EQ(Made("LimitRange", StrCat(R"({"limits":[{"type":"PersistentVolumeClaim",")", field,
                                        R"(":{"storage":"1Gi"}}]})")),
              "ok");
    Delete("v1", "LimitRange", "default", "x");
  }
  EXPECT_NE(Made("LimitRange", R"({"limits":[{"type":"PersistentVolumeClaim",
      "min":{"cpu":"1"}}]})")
                .find("either minimum or maximum storage value is required"),
            std::string::npos);
}

}  // namespace
}  // namespace drakkar::apiserver
