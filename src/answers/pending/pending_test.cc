#include "answers/pending/pending.h"

#include <gtest/gtest.h>

#include "answers/testing/snapshots.h"

namespace drakkar::answers {
namespace {

using testing::FromYaml;

std::string Pod(std::string_view name, std::string_view created, std::string_view rest) {
  return StrCat("---\nkind: Pod\nmetadata: {name: ", name, ", creationTimestamp: '2026-01-01T",
                created, "Z'}\n", rest, "\n");
}

std::vector<std::string> Lines(const std::string& yaml) {
  std::vector<std::string> lines;
  for (const PendingPod& pod : FindPending(FromYaml(yaml))) {
    lines.push_back(StrCat(pod.name, " ", StageName(pod.stage), " ", pod.message));
  }
  return lines;
}

using Expected = std::vector<std::string>;

TEST(Pending, UnschedulablePodsComeFirstThenTheOldest) {
  const std::string refused =
      "status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', message: "
      "full}]}";
  EXPECT_EQ(Lines(Pod("new", "11:00:00", "status: {phase: Pending}") +
                  Pod("young", "11:30:00", refused) + Pod("old", "10:30:00", refused) +
                  Pod("gated", "09:00:00", "spec: {schedulingGates: [{name: g}]}\n" + refused)),
            (Expected{"old Unschedulable full", "young Unschedulable full", "new Queued ",
                      "gated Gated full"}));
}

TEST(Pending, PodsWithANodeCountOnlyIfTheyHaveClaimsAndDoNotRun) {
  const std::string claims = "resourceClaims: [{name: c, resourceClaimName: x}]";
  EXPECT_EQ(Lines(Pod("starting", "11:00:00",
                      "spec: {nodeName: n1, " + claims + "}\nstatus: {phase: Pending}") +
                  Pod("running", "11:00:00",
                      "spec: {nodeName: n1, " + claims + "}\nstatus: {phase: Running}") +
                  Pod("plain", "11:00:00", "spec: {nodeName: n1}\nstatus: {phase: Pending}") +
                  Pod("done", "11:00:00", "spec: {" + claims + "}\nstatus: {phase: Failed}")),
            (Expected{"starting Starting "}));
}

TEST(Pending, PodsThatAreDeletedCountAsLongAsTheyHoldDevices) {
  const std::string deleted =
      "---\nkind: Pod\nmetadata: {name: leaving, deletionTimestamp: '2026-01-01T11:00:00Z'}\nspec: "
      "{nodeName: n1, resourceClaims: [{name: c}]}\nstatus: {phase: Running}\n";
  const std::vector<PendingPod> found = FindPending(FromYaml(deleted));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].stage, PendingPod::Stage::kTerminating);
  EXPECT_EQ(found[0].since, "2026-01-01T11:00:00Z");
}

}  // namespace
}  // namespace drakkar::answers
