#include "quota/usage.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::quota {
namespace {

const WallTime kNow = *api::ParseTime("2030-01-01T00:00:00Z");

std::string Usage(std::string_view group, std::string_view plural, std::string_view json) {
  return Format(UsageOf(group, plural, (*api::ParseJson(json))->root(), {.now = kNow}));
}

TEST(QuotaUsage, APodCountsWithItsRequestsAndLimits) {
  EXPECT_EQ(Usage("", "pods", R"({"spec":{"containers":[
      {"name":"a","resources":{"requests":{"cpu":"100m","memory":"1Gi"},"limits":{"cpu":"1"}}},
      {"name":"b","resources":{"requests":{"cpu":"200m","example.com/gpu":"2"}}}],
      "initContainers":[{"name":"i","resources":{"requests":{"cpu":"250m","memory":"2Gi"}}}]}})"),
            "count/pods=1,cpu=300m,limits.cpu=1,memory=2Gi,pods=1,requests.cpu=300m,"
            "requests.example.com/gpu=2,requests.memory=2Gi");
}

TEST(QuotaUsage, SidecarsRunBesideTheContainersAndLaterInitContainers) {
  EXPECT_EQ(Usage("", "pods", R"({"spec":{"overhead":{"cpu":"5m"},
      "containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}],
      "initContainers":[{"name":"s","restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}},
                        {"name":"i","resources":{"requests":{"cpu":"3"}}}]}})"),
            "count/pods=1,cpu=5005m,pods=1,requests.cpu=5005m");
}

TEST(QuotaUsage, APodThatHasEndedCountsOnlyAsAnObject) {
  for (const auto status : {R"({"status":{"phase":"Failed"}})", R"({"metadata":{
      "deletionTimestamp":"2029-01-01T00:00:00Z","deletionGracePeriodSeconds":30}})"}) {
    EXPECT_EQ(Usage("", "pods", status), "count/pods=1");
  }
}

TEST(QuotaUsage, AClaimCountsItsDevicesPerClassInTheWorstCase) {
  EXPECT_EQ(Usage("resource.k8s.io", "resourceclaims", R"({"spec":{"devices":{"requests":[
      {"exactly":{"deviceClassName":"gpu","allocationMode":"ExactCount","count":2}},
      {"exactly":{"deviceClassName":"nic","allocationMode":"All"}},
      {"firstAvailable":[{"deviceClassName":"gpu","allocationMode":"ExactCount","count":3},
                         {"deviceClassName":"gpu","allocationMode":"ExactCount","count":1},
                         {"deviceClassName":"old","allocationMode":"ExactCount","count":4}]}]}}})"),
            "count/resourceclaims.resource.k8s.io=1,gpu.deviceclass.resource.k8s.io/devices=5,"
            "nic.deviceclass.resource.k8s.io/devices=32,old.deviceclass.resource.k8s.io/devices=4");
}

// A class "gpu" that provides e.x/gpu, a class "nic", and a pod "p" with claims.
class ExtendedUsage : public ::testing::Test {
 protected:
  static api::ObjectPtr Parse(std::string_view json) {
    return std::make_shared<const api::Object>(*api::ParseJson(json));
  }
  // A claim for two devices of a class.
  static api::ObjectPtr Claim(std::string_view name, std::string_view device_class,
                              bool is_extended = true, std::string_view owner = "1") {
    return Parse(StrCat(
        R"({"metadata":{"namespace":"ns","name":")", name,
        R"(","creationTimestamp":"2029-01-01T00:00:00Z",)",
        is_extended ? R"("annotations":{"resource.kubernetes.io/extended-resource-claim":"true"},)"
                    : "",
        R"("ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","controller":true,)",
        R"("uid":")", owner, R"("}]},"spec":{"devices":{"requests":[{"name":"r","exactly":{)",
        R"("deviceClassName":")", device_class,
        R"(","allocationMode":"ExactCount","count":2}}]}}})"));
  }
  void SetPod(std::string_view requests, std::string_view status = "") {
    pod_ = Parse(StrCat(R"({"metadata":{"namespace":"ns","name":"p","uid":"1"},"spec":{)",
                        R"("containers":[{"name":"c","resources":{"requests":{)", requests,
                        R"(}}}]},"status":{)", status, "}}"));
  }
  std::string Usage(const api::ObjectPtr& claim) {
    Surroundings around{.now = kNow};
    around.find_class = [](const std::string& name) {
      return name == "gpu"   ? Parse(R"({"spec":{"extendedResourceName":"e.x/gpu"}})")
             : name == "nic" ? Parse(R"({"spec":{}})")
                             : nullptr;
    };
    around.find_pod = [this](const std::string& key) { return key == "ns/p" ? pod_ : nullptr; };
    around.visit_claims = [this](std::string_view ns, const auto& each) {
      EXPECT_EQ(ns, "ns");
      for (const api::ObjectPtr& other : claims_) each(*other);
    };
    Amounts usage = UsageOf("resource.k8s.io", "resourceclaims", claim->root(), around);
    std::erase_if(usage, [](const auto& each) { return !each.first.starts_with("requests."); });
    return Format(usage);
  }
  static constexpr char kAll[] =
      "requests.deviceclass.resource.kubernetes.io/gpu=2,requests.e.x/gpu=2";

  api::ObjectPtr pod_;
  std::vector<api::ObjectPtr> claims_;
};

TEST_F(ExtendedUsage, EveryClaimCountsTowardsTheExtendedResourcesOfItsClasses) {
  EXPECT_EQ(Usage(Claim("c", "gpu", false)), kAll);
  EXPECT_EQ(Usage(Claim("c", "nic", false)), "requests.deviceclass.resource.kubernetes.io/nic=2");
  EXPECT_EQ(Usage(Claim("c", "unknown", false)), "");
  SetPod(R"("e.x/gpu":"2")");
  EXPECT_EQ(Usage(Claim("c", "gpu", false)), kAll) << "it was not made for the pod's requests";
}

TEST_F(ExtendedUsage, WhatThePodRequestsIsCountedWithThePod) {
  SetPod(R"("e.x/gpu":"2")");
  EXPECT_EQ(Usage(Claim("c", "gpu")), "requests.deviceclass.resource.kubernetes.io/gpu=2");
  SetPod(R"("deviceclass.resource.kubernetes.io/gpu":"1")");
  EXPECT_EQ(Usage(Claim("c", "gpu")),
            "requests.deviceclass.resource.kubernetes.io/gpu=1,requests.e.x/gpu=2");
  EXPECT_EQ(Usage(Claim("c", "gpu", true, "2")), kAll) << "made for another pod of this name";
  SetPod(R"("e.x/gpu":"2","deviceclass.resource.kubernetes.io/gpu":"2")", R"("phase":"Failed")");
  EXPECT_EQ(Usage(Claim("c", "gpu")), kAll) << "the pod no longer counts";
  pod_ = nullptr;
  EXPECT_EQ(Usage(Claim("c", "gpu")), kAll);
}

TEST_F(ExtendedUsage, OnlyOneClaimStandsForThePod) {
  SetPod(R"("e.x/gpu":"2","deviceclass.resource.kubernetes.io/gpu":"2")");
  claims_ = {Claim("a", "gpu"), Claim("b", "gpu")};
  EXPECT_EQ(Usage(Claim("a", "gpu")), "") << "the first as long as the pod names none";
  EXPECT_EQ(Usage(Claim("b", "gpu")), kAll);
  SetPod(R"("e.x/gpu":"2","deviceclass.resource.kubernetes.io/gpu":"2")",
         R"("extendedResourceClaimStatus":{"resourceClaimName":"b"})");
  EXPECT_EQ(Usage(Claim("a", "gpu")), kAll);
  EXPECT_EQ(Usage(Claim("b", "gpu")), "");
  claims_ = {Claim("a", "gpu")};
  EXPECT_EQ(Usage(Claim("a", "gpu")), "") << "the claim that the pod names is gone";
}

TEST(QuotaUsage, OtherKindsCountAsObjects) {
  EXPECT_EQ(Usage("", "secrets", "{}"), "count/secrets=1,secrets=1");
  EXPECT_EQ(Usage("apps", "deployments", "{}"), "count/deployments.apps=1");
  EXPECT_EQ(Usage("", "services", R"({"spec":{"type":"NodePort","ports":[{},{}]}})"),
            "count/services=1,services=1,services.nodeports=2");
  EXPECT_EQ(Usage("", "persistentvolumeclaims", R"({"spec":{"storageClassName":"fast",
      "resources":{"requests":{"storage":"5Gi"}}}})"),
            "count/persistentvolumeclaims=1,fast.storageclass.storage.k8s.io/persistentvolumeclaims"
            "=1,fast.storageclass.storage.k8s.io/requests.storage=5Gi,persistentvolumeclaims=1,"
            "requests.storage=5Gi");
}

TEST(QuotaUsage, NamesTellWhatTheyCount) {
  const auto counted = [](std::string_view name) {
    std::string text;
    for (const ResourceName& found : CountedResources(name)) {
      text += StrCat(text.empty() ? "" : " ", found.group, "/", found.plural);
    }
    return text.empty() ? "-" : text;
  };
  EXPECT_EQ(counted("requests.example.com/gpu"), "/pods resource.k8s.io/resourceclaims");
  EXPECT_EQ(counted("requests.deviceclass.resource.kubernetes.io/gpu"),
            "/pods resource.k8s.io/resourceclaims");
  EXPECT_EQ(counted("requests.cpu"), "/pods");
  EXPECT_EQ(counted("requests.storage"), "/persistentvolumeclaims");
  EXPECT_EQ(counted("services.nodeports"), "/services");
  EXPECT_EQ(counted("count/jobs.batch"), "batch/jobs");
  EXPECT_EQ(counted("count/pods"), "/pods");
  EXPECT_EQ(counted("gpu.deviceclass.resource.k8s.io/devices"), "resource.k8s.io/resourceclaims");
  EXPECT_EQ(counted("example.com/other"), "-");
}

TEST(QuotaUsage, ScopesChoosePods) {
  const auto in_scope = [](std::string_view spec, std::string_view pod) {
    const api::TreePtr quota = *api::ParseJson(spec);
    const api::TreePtr object = *api::ParseJson(pod);
    return IsInScope(quota->root(), "", "pods", object->root());
  };
  constexpr std::string_view kJob = R"({"spec":{"activeDeadlineSeconds":5,"priorityClassName":"p",
      "containers":[{"name":"c"}]}})";
  EXPECT_TRUE(in_scope(R"({"spec":{}})", kJob));
  EXPECT_TRUE(in_scope(R"({"spec":{"scopes":["Terminating","BestEffort"]}})", kJob));
  EXPECT_FALSE(in_scope(R"({"spec":{"scopes":["NotTerminating"]}})", kJob));
  EXPECT_TRUE(in_scope(R"({"spec":{"scopeSelector":{"matchExpressions":[
      {"scopeName":"PriorityClass","operator":"In","values":["p"]}]}}})",
                       kJob));
  EXPECT_FALSE(in_scope(R"({"spec":{"scopeSelector":{"matchExpressions":[
      {"scopeName":"PriorityClass","operator":"NotIn","values":["p"]}]}}})",
                        kJob));
}

TEST(QuotaUsage, ContainersMustSpecifyWhatTheQuotaLimits) {
  const api::TreePtr hard = *api::ParseJson(R"({"cpu":"1","limits.memory":"1Gi","pods":"3"})");
  const api::TreePtr spec = *api::ParseJson(R"({"containers":[
      {"name":"b"},{"name":"a","resources":{"requests":{"cpu":"1"}}}]})");
  EXPECT_EQ(MissingResources(hard->root(), spec->root()),
            "must specify cpu for: b; limits.memory for: a,b");
}

}  // namespace
}  // namespace drakkar::quota
