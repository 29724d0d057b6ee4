#include "answers/counts/counts.h"

#include <gtest/gtest.h>

#include "answers/testing/snapshots.h"
#include "device/cel_expressions.h"

namespace drakkar::answers {
namespace {

using namespace testing;

TEST(ClusterCounts, CountsDevicesByClassAndStateAndClaimsByStateAndAge) {
  const Snapshot snapshot = FromYaml(StrCat(
      Node("n1"),
      "---\nkind: DeviceClass\nmetadata: {name: gpu}\n"
      "spec: {selectors: [{cel: {expression: \"device.driver == 'gpu.example.com'\"}}]}\n",
      "---\nkind: DeviceClass\nmetadata: {name: none}\n"
      "spec: {selectors: [{cel: {expression: \"device.driver == 'other'\"}}]}\n",
      Slice("n1", "[{name: a}, {name: b}, {name: c, taints: [{key: k, effect: NoSchedule}]}]"),
      Slice("n1", "[{name: x}]", "nic.example.com"), HeldClaim("held", "n1", {"a"}, "p"),
      RunningPod("p", "n1"),
      "---\nkind: ResourceClaim\nmetadata: {name: new, creationTimestamp: "
      "'2026-01-01T11:59:30Z'}\nspec: {}\n"));
  device::CelExpressions compiler;
  const ClusterCounts counts = CountCluster(snapshot, compiler);
  const auto devices = [&](std::string name, std::string state) {
    return counts.devices.at({std::move(name), std::move(state)});
  };
  EXPECT_EQ(devices("gpu", "free"), 1u);
  EXPECT_EQ(devices("gpu", "held"), 1u);
  EXPECT_EQ(devices("gpu", "tainted"), 1u);
  EXPECT_EQ(devices("gpu", "unhealthy"), 0u);
  EXPECT_EQ(devices("none", "free"), 0u) << "a class without devices is shown";
  EXPECT_EQ(devices("", "free"), 1u) << "of no class";
  EXPECT_EQ(counts.claims.at("used").by_age.at("1d"), 1u);
  EXPECT_EQ(counts.claims.at("used").oldest, std::chrono::hours(3));
  EXPECT_EQ(counts.claims.at("pending").by_age.at("1m"), 1u);
  EXPECT_EQ(counts.claims.at("deleting").by_age.at("1m"), 0u);
}

}  // namespace
}  // namespace drakkar::answers
