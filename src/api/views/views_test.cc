#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/views/apps_v1.h"
#include "api/views/authentication_v1.h"
#include "api/views/authorization_v1.h"
#include "api/views/autoscaling_v1.h"
#include "api/views/coordination_v1.h"
#include "api/views/core_v1.h"
#include "api/views/events_v1.h"
#include "api/views/meta_v1.h"
#include "api/views/node_v1.h"
#include "api/views/policy_v1.h"
#include "api/views/rbac_v1.h"
#include "api/views/resource_v1.h"
#include "api/views/resource_v1alpha3.h"
#include "api/views/resource_v1beta1.h"
#include "api/views/resource_v1beta2.h"
#include "api/views/scheduling_v1.h"
#include "api/views/storage_v1.h"

namespace drakkar::api {
namespace {

TreePtr Parse(std::string_view json) {
  Result<TreePtr> tree = ParseJson(json);
  EXPECT_TRUE(tree.ok());
  return tree.ok() ? *tree : nullptr;
}

constexpr std::string_view kPod = R"({
  "apiVersion": "v1", "kind": "Pod",
  "metadata": {"name": "p", "namespace": "n", "labels": {"app": "web", "tier": ""},
               "deletionGracePeriodSeconds": 0},
  "spec": {
    "nodeName": "worker-0", "hostNetwork": true, "priority": 7, "dnsPolicy": null,
    "containers": [
      {"name": "a", "args": ["x", "y"],
       "resources": {"requests": {"cpu": "500m"}, "claims": [{"name": "gpu"}]}},
      {"name": "b", "livenessProbe": {"httpGet": {"port": "http"}}}],
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "claim"}]}})";

TEST(Views, ReadAPod) {
  const TreePtr tree = Parse(kPod);
  const core_v1::PodView pod(tree->root());
  EXPECT_EQ(pod.kind(), "Pod");
  EXPECT_EQ(pod.metadata().name(), "p");
  EXPECT_EQ(pod.metadata().namespace_(), "n");
  EXPECT_EQ(pod.spec().node_name(), "worker-0");
  EXPECT_TRUE(pod.spec().host_network());
  EXPECT_EQ(pod.spec().priority(), 7);
  ASSERT_EQ(pod.spec().containers().size(), 2u);
  EXPECT_EQ(pod.spec().containers()[0].args()[1], "y");
  EXPECT_EQ(pod.spec().containers()[0].resources().requests().Find("cpu"), "500m");
  EXPECT_EQ(pod.spec().containers()[1].liveness_probe().http_get().port().str(), "http");
  EXPECT_EQ(pod.spec().resource_claims()[0].resource_claim_name(), "claim");
}

TEST(Views, AbsentPartsReadAsZeroAndSaySo) {
  const TreePtr tree = Parse(kPod);
  const core_v1::PodView pod(tree->root());
  EXPECT_FALSE(pod.status().exists());
  EXPECT_FALSE(pod.has_status());
  EXPECT_EQ(pod.status().phase(), "");
  EXPECT_TRUE(pod.status().conditions().empty());
  EXPECT_EQ(pod.spec().active_deadline_seconds(), 0);
  EXPECT_FALSE(pod.spec().has_active_deadline_seconds());
  EXPECT_FALSE(pod.spec().has_dns_policy()) << "null counts as absent";
  EXPECT_TRUE(pod.metadata().has_deletion_grace_period_seconds()) << "zero is there";
  EXPECT_FALSE(pod.spec()
                   .affinity()
                   .node_affinity()
                   .required_during_scheduling_ignored_during_execution()
                   .exists());
  EXPECT_FALSE(core_v1::PodView().exists());
  EXPECT_EQ(pod.spec().containers()[2].name(), "");
}

TEST(Views, ListsAndMapsAreIterable) {
  const TreePtr tree = Parse(kPod);
  const core_v1::PodView pod(tree->root());
  std::string names;
  for (const core_v1::ContainerView container : pod.spec().containers()) names += container.name();
  EXPECT_EQ(names, "ab");
  std::string labels;
  for (const auto [name, value] : pod.metadata().labels()) {
    labels.append(name).append("=").append(value).append(";");
  }
  EXPECT_EQ(labels, "app=web;tier=;");
  EXPECT_EQ(pod.metadata().labels().Find("tier"), "");
  EXPECT_EQ(pod.metadata().labels().Find("other"), std::nullopt);
  EXPECT_TRUE(pod.metadata().labels().Contains("app"));
}

TEST(Views, ValuesOfAnotherShapeReadAsEmpty) {
  const TreePtr tree = Parse(R"({"spec": {"containers": {"name": "x"}, "nodeName": 3,
                                          "nodeSelector": ["a"]}, "metadata": 4})");
  const core_v1::PodView pod(tree->root());
  EXPECT_EQ(pod.spec().containers().size(), 0u);
  for (const auto container : pod.spec().containers()) ADD_FAILURE() << container.name();
  EXPECT_EQ(pod.spec().node_name(), "");
  EXPECT_EQ(pod.spec().node_selector().size(), 0u);
  for (const auto entry : pod.spec().node_selector()) ADD_FAILURE() << entry.name;
  EXPECT_EQ(pod.metadata().name(), "");
}

TEST(Views, ReadASliceWithAttributesOfEveryType) {
  const TreePtr tree = Parse(R"({"spec": {
    "driver": "gpu.example.com", "pool": {"name": "p", "generation": 3, "resourceSliceCount": 1},
    "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "In",
                                                                   "values": ["v"]}]}]},
    "skipNodeOperations": true,
    "devices": [{"name": "d0",
      "attributes": {"i": {"int": 4}, "b": {"bool": true}, "s": {"string": "t"},
                     "v": {"version": "1.2.3"}, "l": {"ints": [1, 2]}},
      "capacity": {"memory": {"value": "40Gi"}},
      "taints": [{"key": "k", "value": "w", "effect": "NoSchedule"}]}]}})");
  const resource_v1::ResourceSliceView slice(tree->root());
  EXPECT_EQ(slice.spec().pool().generation(), 3);
  EXPECT_EQ(
      slice.spec().node_selector().node_selector_terms()[0].match_expressions()[0].operator_(),
      "In");
  EXPECT_TRUE(slice.spec().skip_node_operations().boolean());
  const resource_v1::DeviceView device = slice.spec().devices()[0];
  EXPECT_EQ(device.attributes().Find("i")->int_(), 4);
  EXPECT_TRUE(device.attributes().Find("b")->bool_());
  EXPECT_EQ(device.attributes().Find("s")->string(), "t");
  EXPECT_FALSE(device.attributes().Find("s")->has_version());
  EXPECT_EQ(device.attributes().Find("l")->ints()[1], 2);
  EXPECT_EQ(device.capacity().Find("memory")->value_(), "40Gi");
  EXPECT_EQ(device.taints()[0].value_(), "w");
  EXPECT_TRUE(device.taints()[0].has_value());
}

TEST(Views, OfOtherGroupsReadTheSameWay) {
  const TreePtr tree = Parse(R"({"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15},
                                 "items": [{"metadata": {"uid": "u"}}, 3]})");
  EXPECT_EQ(coordination_v1::LeaseView(tree->root()).spec().lease_duration_seconds(), 15);
  const meta_v1::AnyListView list(tree->root());
  ASSERT_EQ(list.items().size(), 2u);
  EXPECT_EQ(list.items()[1].integer(), 3);
  EXPECT_EQ(apps_v1::DeploymentListView(tree->root()).items()[0].metadata().uid(), "u");
}

}  // namespace
}  // namespace drakkar::api
