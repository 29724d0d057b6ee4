#include "answers/claims/claims.h"

#include <gtest/gtest.h>

#include "answers/testing/snapshots.h"

namespace drakkar::answers {
namespace {

using testing::FromYaml;
using testing::HeldClaim;
using testing::Node;
using testing::RunningPod;
using testing::Slice;

using Lines = std::vector<std::string>;

Lines Claims(const Snapshot& snapshot) {
  const DeviceTable table(snapshot);
  Lines lines;
  for (const ClaimSummary& claim : ListClaims(snapshot, table)) {
    lines.push_back(StrCat(claim.claim->qualified_name(), " ", StateName(claim.state), " ",
                           claim.devices, " ", Join(claim.pods, ",")));
  }
  return lines;
}

Lines TimelineOf(const Snapshot& snapshot, std::string_view name) {
  for (const api::ObjectPtr& claim : snapshot.claims) {
    if (claim->name() != name) continue;
    Lines lines;
    for (const TimelineEntry& entry : ClaimTimeline(snapshot, claim)) {
      lines.push_back(StrCat(entry.at.empty() ? "now" : entry.at.substr(11, 8), " ",
                             KindName(entry.kind), " ", entry.what,
                             entry.detail.empty() ? "" : ": ", entry.detail));
    }
    return lines;
  }
  return {};
}

const std::string kCluster = Node("n1") + Slice("n1", "[{name: gpu-0}, {name: gpu-1}]");
const std::string kOwned =
    "---\nkind: ResourceClaim\nmetadata: {name: wanted, creationTimestamp: '2026-01-01T08:00:00Z', "
    "ownerReferences: [{kind: Pod, name: hungry}]}\n";

TEST(Claims, HaveAStateAndTheirPods) {
  EXPECT_EQ(Claims(FromYaml(kCluster + HeldClaim("used", "n1", {"gpu-0"}, "p") +
                            RunningPod("p", "n1") + HeldClaim("idle", "n1", {"gpu-1"}) + kOwned)),
            (Lines{"default/idle Allocated 1 ", "default/used InUse 1 default/p",
                   "default/wanted Pending 0 default/hungry"}));
}

TEST(Claims, NameThePodsThatWaitForThem) {
  const auto pod = [](std::string_view name, std::string_view phase) {
    return StrCat("---\nkind: Pod\nmetadata: {name: ", name,
                  "}\nspec: {resourceClaims: [{name: a, ",
                  "resourceClaimName: shared}]}\nstatus: {phase: ", phase, "}\n");
  };
  const Snapshot snapshot = FromYaml(
      "---\nkind: ResourceClaim\nmetadata: {name: shared, creationTimestamp: "
      "'2026-01-01T08:00:00Z'}\n"
      "---\nkind: ResourceClaim\nmetadata: {name: spare, creationTimestamp: "
      "'2026-01-01T08:00:00Z'}\n" +
      pod("first", "Pending") + pod("over", "Failed") + pod("second", "Pending"));
  EXPECT_EQ(Claims(snapshot), (Lines{"default/shared Pending 0 default/first,default/second",
                                     "default/spare Pending 0 "}));
  EXPECT_EQ(TimelineOf(snapshot, "shared").back(),
            "now waiting waits for devices: default/first, default/second");
  EXPECT_EQ(TimelineOf(snapshot, "spare").back(), "now waiting waits for a pod that uses it");
}

TEST(Claims, AreDeletingOnceTheirDeletionWasRequested) {
  EXPECT_EQ(Claims(FromYaml("---\nkind: ResourceClaim\nmetadata: {name: c, deletionTimestamp: "
                            "'2026-01-01T08:00:00Z'}\n")),
            (Lines{"default/c Deleting 0 "}));
}

TEST(ClaimTimeline, TellsTheLifeOfAClaimInOrder) {
  const Snapshot snapshot = FromYaml(
      kCluster + HeldClaim("c", "n1", {"gpu-0"}, "p") +
      "---\nkind: Pod\nmetadata: {name: p}\nspec: {nodeName: n1}\nstatus: {phase: Running, "
      "conditions: [{type: Ready, status: 'True', lastTransitionTime: '2026-01-01T10:00:09Z'}, "
      "{type: PodScheduled, status: 'True', lastTransitionTime: '2026-01-01T10:00:01Z'}]}\n"
      "---\nkind: Event\nmetadata: {name: e}\ntype: Warning\nreason: Odd\nmessage: strange\n"
      "lastTimestamp: '2026-01-01T10:00:05Z'\n");
  EXPECT_EQ(TimelineOf(snapshot, "c"),
            (Lines{"09:00:00 done created", "10:00:01 done allocated: gpu.example.com/n1/gpu-0",
                   "10:00:01 done pod default/p bound: to node n1", "10:00:05 failed Odd: strange",
                   "10:00:09 done pod default/p ready"}));
}

TEST(ClaimTimeline, EndsWithWhatTheClaimWaitsFor) {
  EXPECT_EQ(TimelineOf(FromYaml(kCluster + kOwned), "wanted"),
            (Lines{"08:00:00 done created: for pod default/hungry",
                   "now waiting waits for devices: default/hungry"}));
  EXPECT_EQ(TimelineOf(FromYaml(kCluster + HeldClaim("idle", "n1", {"gpu-1"})), "idle").back(),
            "now waiting no pod uses it");
}

TEST(ClaimTimeline, ShowsConditionsOfDevices) {
  const Snapshot snapshot = FromYaml(
      kCluster +
      "---\nkind: ResourceClaim\nmetadata: {name: c, creationTimestamp: '2026-01-01T08:00:00Z'}\n"
      "status: {allocation: {devices: {results: [{request: r, driver: gpu.example.com, pool: n1, "
      "device: gpu-0, bindingConditions: [Attached, Ready]}]}, allocationTimestamp: "
      "'2026-01-01T08:00:01Z'}, devices: [{driver: gpu.example.com, pool: n1, device: gpu-0, "
      "conditions: [{type: Attached, status: 'True', reason: Done, lastTransitionTime: "
      "'2026-01-01T08:00:04Z'}]}]}\n");
  const Lines lines = TimelineOf(snapshot, "c");
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[2], "08:00:04 done Attached: gpu.example.com/n1/gpu-0: Done");
  EXPECT_EQ(lines[3], "now waiting waits for condition Ready: gpu.example.com/n1/gpu-0");
}

}  // namespace
}  // namespace drakkar::answers
