#include "answers/free/fits.h"

#include <gtest/gtest.h>

#include "answers/render/devices.h"
#include "answers/testing/snapshots.h"
#include "base/testing/seeded_loop.h"
#include "device/cel_expressions.h"

namespace drakkar::answers {
namespace {

using testing::FromYaml;
using testing::HeldClaim;
using testing::Node;
using testing::Slice;

constexpr std::string_view kClass =
    "---\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {selectors: [{cel: {expression: "
    "\"device.driver == 'gpu.example.com'\"}}]}\n";

class FitsTest : public ::testing::Test {
 protected:
  Result<FitsAnswer> Count(const Snapshot& snapshot, std::string_view claim) {
    return CountFits(snapshot, api::ParseYaml(claim).value().at(0)->root(),
                     {.loop = loop_,
                      .random = loop_.random(),
                      .compiler = compiler_,
                      .gates = {},
                      .declared_features = nullptr,
                      .profile = {}});
  }
  std::string Render(const Snapshot& snapshot, std::string_view claim) {
    return RenderFits(Count(snapshot, claim).value(), {});
  }

  SeededLoop loop_;
  device::CelExpressions compiler_;
};

TEST_F(FitsTest, CountsWhatIsLeftNodeByNode) {
  const Snapshot snapshot =
      FromYaml(Node("n1") + Node("n2") + Node("n3", "{unschedulable: true}") +
               Slice("n1", "[{name: a}, {name: b}, {name: c}, {name: d}, {name: e}]") +
               Slice("n2", "[{name: a}, {name: b}]") + Slice("n3", "[{name: a}, {name: b}]") +
               HeldClaim("c", "n1", {"a"}) + std::string(kClass));
  EXPECT_EQ(Render(snapshot,
                   "kind: ResourceClaim\nmetadata: {name: pair}\nspec: {devices: {requests: "
                   "[{name: r, exactly: {deviceClassName: gpu, count: 2}}]}}\n"),
            "3 more claims like pair fit, on 2 nodes.\n"
            "NODE  MORE\n"
            "n1       2\n"
            "n2       1\n")
      << "the node n3 is cordoned";
  EXPECT_EQ(Render(snapshot,
                   "kind: ResourceClaimTemplate\nmetadata: {name: many}\nspec: {spec: {devices: "
                   "{requests: [{name: r, exactly: {deviceClassName: gpu, count: 9}}]}}}\n"),
            "No more claims like many fit on any node. `drakkar why claim NAME` says why.\n");
}

TEST_F(FitsTest, ASharedPoolIsHandedOutOnce) {
  const Snapshot snapshot = FromYaml(
      Node("n1") + Node("n2") +
      "---\nkind: ResourceSlice\nmetadata: {name: fabric}\nspec: {driver: gpu.example.com, "
      "allNodes: true, pool: {name: fabric, generation: 1, resourceSliceCount: 1}, devices: "
      "[{name: a}, {name: b}, {name: c}]}\n" +
      std::string(kClass));
  EXPECT_EQ(Count(snapshot,
                  "kind: ResourceClaim\nmetadata: {name: one}\nspec: {devices: {requests: [{name: "
                  "r, exactly: {deviceClassName: gpu}}]}}\n")
                ->total,
            3u);
}

TEST_F(FitsTest, AdminAccessFitsAnyNumberOfTimes) {
  const Snapshot snapshot = FromYaml(Node("n1") + Slice("n1", "[{name: a}]") + std::string(kClass));
  const FitsAnswer answer =
      Count(snapshot,
            "kind: ResourceClaim\nmetadata: {name: look}\nspec: {devices: {requests: [{name: r, "
            "exactly: {deviceClassName: gpu, adminAccess: true}}]}}\n")
          .value();
  EXPECT_TRUE(answer.at_least);
}

TEST_F(FitsTest, BadClaimsGetASentence) {
  const Snapshot snapshot = FromYaml(Node("n1") + Slice("n1", "[{name: a}]") + std::string(kClass));
  EXPECT_EQ(
      Count(snapshot, "kind: ResourceClaim\nmetadata: {name: none}\nspec: {}\n").error().message,
      "spec.devices.requests: the claim asks for no device");
  EXPECT_EQ(Count(snapshot,
                  "kind: ResourceClaim\nmetadata: {name: odd}\nspec: {devices: {requests: [{name: "
                  "r, exactly: {deviceClassName: missing}}]}}\n")
                ->why_none,
            "request r: device class missing does not exist");
}

}  // namespace
}  // namespace drakkar::answers
