#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/test_server.h"

namespace drakkar::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// A node with four devices, one of them held by pod p of a Job in the namespace team.
class FreeWhoTest : public testing::CommandTest {
 protected:
  FreeWhoTest() {
    Create(R"(
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.example.com'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}, {name: gpu-2}, {name: gpu-3}]
---
apiVersion: v1
kind: Pod
metadata:
  name: p
  namespace: team
  labels: {app: llm}
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: train, uid: j, controller: true}]
spec: {nodeName: n1, containers: [{name: c, image: i}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: team}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
)");
    const std::string uid = Run("get pod p -n team -o jsonpath={.metadata.uid}").out;
    PatchStatus("resource.k8s.io", "ResourceClaim", "team", "c",
                StrCat(R"({"allocation":{"devices":{"results":[{"request":"r",)",
                       R"("driver":"gpu.example.com","pool":"n1","device":"gpu-1"}]}},)",
                       R"("reservedFor":[{"resource":"pods","name":"p","uid":")", uid, R"("}]})"));
    files_["/claim.yaml"] =
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: one}\n"
        "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}\n";
  }
  void Create(const std::string& manifest) {
    const Outcome outcome = Run("create -f -", manifest);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
};

TEST_F(FreeWhoTest, FreeCountsDevicesByClassNodeAndMore) {
  const Outcome free = Run("free");
  EXPECT_EQ(free.code, 0) << free.err;
  EXPECT_EQ(free.out,
            "CLASS  TOTAL  FREE  HELD  TAINTED  UNHEALTHY  UNUSABLE\n"
            "gpu        4     3     1        0          0         0\n");
  EXPECT_EQ(Run("free --by node --no-headers").out, "n1  4  3  1  0  0  0\n");
  EXPECT_THAT(Run("free -o json").out, HasSubstr("\"free\": 3"));
  EXPECT_THAT(Run("free -o yaml").out, HasSubstr("by: class\n"));
  EXPECT_EQ(Run("free --class other").out, "No devices found.\n");
}

TEST_F(FreeWhoTest, FreeAsksNodesForHealthIfTold) {
  node_devices_ = R"({"items":[
    {"driver":"gpu.example.com","pool":"n1","device":"gpu-0","health":"Unhealthy"}]})";
  EXPECT_THAT(Run("free --ask-nodes").out,
              HasSubstr("gpu        4     2     1        0          1         0\n"));
}

TEST_F(FreeWhoTest, FitsCountsHowManyMoreAndWhere) {
  EXPECT_THAT(Run("free --fits /claim.yaml").out,
              HasSubstr("3 more claims like one fit, on 1 node.\nNODE  MORE\nn1       3\n"));
  EXPECT_THAT(Run("free --fits /claim.yaml -o json").out, HasSubstr("\"total\": 3"));
  EXPECT_EQ(Run("free --fits /nothing.yaml").code, 1);
  files_["/pod.yaml"] = testing::PodManifest("p");
  EXPECT_EQ(Run("free --fits /pod.yaml").err,
            "error: /pod.yaml has no ResourceClaim or ResourceClaimTemplate\n");
}

TEST_F(FreeWhoTest, WhoNamesPodClaimOwnerAgeAndHealth) {
  const std::string held =
      "NODE  DEVICE  POD     CLAIM  SINCE  HEALTH\n"
      "n1    gpu-1   team/p  c      [0-9]+s +Unknown\n";
  const Outcome who = Run("who");
  EXPECT_EQ(who.code, 0) << who.err;
  EXPECT_THAT(who.out, MatchesRegex(held));
  EXPECT_THAT(Run("who gpu-1").out, MatchesRegex(held));
  EXPECT_THAT(Run("who -l app=llm --owner Job/train --node n1 -n team").out, MatchesRegex(held));
  EXPECT_EQ(Run("who gpu-0").out, "No matching device is held.\n");
  EXPECT_EQ(Run("who -n default").out, "No matching device is held.\n");
  EXPECT_THAT(Run("who -o wide").out, HasSubstr("team/p  team/c  Job/train"));
  EXPECT_THAT(Run("who --by owner").out, HasSubstr("team/Job/train        1       1     1"));
  EXPECT_THAT(Run("who -o json").out, HasSubstr("\"owner\": \"Job/train\""));
}

TEST_F(FreeWhoTest, TopShowsTotalsAndHoldersRepeatedly) {
  const Outcome top = Run("top devices --count 2 --interval 10ms");
  EXPECT_EQ(top.code, 0) << top.err;
  const std::string view =
      "[0-9:]+ 4 devices: 3 free, 1 held, 0 waiting, 0 tainted, 0 unhealthy\n"
      "NODE  DEVICE  POD     CLAIM  SINCE  HEALTH\nn1    gpu-1   team/p  c +[0-9]+s +Unknown\n";
  EXPECT_THAT(top.out, MatchesRegex(view + view));
}

TEST_F(FreeWhoTest, BadInputGetsAClearError) {
  EXPECT_EQ(Run("free --by a/b/c").code, kExitUsage);
  EXPECT_THAT(Run("free -o xml").err, HasSubstr("must be text, wide, json or yaml"));
  EXPECT_EQ(Run("who --by color").err,
            "error: --by takes node, namespace, owner or label=KEY, not \"color\"\n");
  EXPECT_EQ(Run("who -l a=b=c").code, kExitUsage);
  EXPECT_EQ(Run("top devices --interval 0s").err, "error: --interval must be greater than zero\n");
}

}  // namespace
}  // namespace drakkar::cli
