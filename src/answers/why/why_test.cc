#include "answers/why/why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "answers/render/why.h"
#include "answers/testing/snapshots.h"
#include "answers/why/summary.h"
#include "base/testing/seeded_loop.h"
#include "device/cel_expressions.h"

namespace drakkar::answers {
namespace {

using ::testing::ElementsAre;
using testing::FromYaml;
using ::testing::HasSubstr;
using testing::HeldClaim;
using ::testing::IsEmpty;
using testing::Node;
using testing::RunningPod;
using testing::Slice;

constexpr char kClass[] =
    "---\nkind: DeviceClass\nmetadata: {name: gpu.example.com}\nspec: {selectors: [{cel: "
    "{expression: \"device.driver == 'gpu.example.com'\"}}]}\n";

std::string Devices(int count, std::string_view more = {}) {
  std::string list = "[";
  for (int i = 0; i < count; ++i) list += StrCat(i == 0 ? "" : ", ", "{name: gpu-", i, more, "}");
  return list + "]";
}

// A claim for `count` devices and the pod that uses it, both named `name`.
std::string Wanting(std::string_view name, int count, std::string_view request = {},
                    std::string_view pod_spec = {}, std::string_view pod_metadata = {}) {
  return StrCat("---\nkind: ResourceClaim\nmetadata: {name: ", name,
                ", namespace: team-a}\nspec: {devices: {requests: [{name: gpu, exactly: "
                "{deviceClassName: gpu.example.com, allocationMode: ExactCount, count: ",
                count, request, "}}]}}\n---\nkind: Pod\nmetadata: {name: ", name,
                ", namespace: team-a", pod_metadata,
                "}\nspec: {containers: [{name: c}], resourceClaims: [{name: g, "
                "resourceClaimName: ",
                name, "}]", pod_spec, "}\n");
}

class WhyTest : public ::testing::Test {
 protected:
  Result<WhyAnswer> Ask(const Snapshot& snapshot, WhySubject subject, std::string node = {},
                        bool with_nodes = false) {
    loop_.fake_clock().JumpWall(snapshot.now - loop_.clock().Now());
    Result<WhyAnswer> answer = ExplainWhy(snapshot, subject,
                                          {.loop = loop_,
                                           .random = loop_.random(),
                                           .compiler = compiler_,
                                           .settings = settings_,
                                           .with_nodes = with_nodes,
                                           .node = std::move(node)});
    if (answer.ok()) Summarize(*answer, snapshot.now);
    return answer;
  }
  WhyAnswer AskPod(const Snapshot& snapshot, std::string name = "train") {
    return Ask(snapshot, {WhySubject::Kind::kPod, "team-a", std::move(name)}).value();
  }
  WhyAnswer AskClaim(const Snapshot& snapshot, std::string name) {
    return Ask(snapshot, {WhySubject::Kind::kClaim, "team-a", std::move(name)}).value();
  }
  std::string Render(const WhyAnswer& answer, const Snapshot& snapshot) {
    return RenderWhy(answer, {.now = snapshot.now});
  }

  SeededLoop loop_;
  device::CelExpressions compiler_;
  scheduler::Settings settings_;
};

// Three full nodes, one with half of its devices held by tune-9, and one with another driver.
Snapshot BusyCluster(int wanted) {
  std::string text = kClass;
  for (const char* node : {"gpu-1", "gpu-2", "gpu-10"}) {
    text += Node(node) + Slice(node, Devices(8));
    text += HeldClaim(StrCat("all-", node), node,
                      {"gpu-0", "gpu-1", "gpu-2", "gpu-3", "gpu-4", "gpu-5", "gpu-6", "gpu-7"},
                      StrCat("p-", node), "team-c");
  }
  text += Node("gpu-15") + Slice("gpu-15", Devices(8)) +
          HeldClaim("tune-9", "gpu-15", {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}, "tune-9", "team-b") +
          RunningPod("tune-9", "gpu-15", "team-b",
                     ", ownerReferences: [{kind: Job, name: tune, controller: true}]");
  text += Node("nic-1") + Slice("nic-1", "[{name: nic-0}]", "nic.example.com");
  return FromYaml(text + Wanting("train", wanted));
}

TEST_F(WhyTest, TheSentenceCountsNodesByReasonAndNamesTheClosestAndItsHolder) {
  const Snapshot snapshot = BusyCluster(8);
  const WhyAnswer answer = AskPod(snapshot);
  EXPECT_FALSE(answer.fits);
  EXPECT_EQ(
      answer.sentence,
      "0 of 5 nodes: 3 full, 1 short by 4 devices, 1 wrong class; closest is gpu-15, short by "
      "4, held by team-b/tune-9");
  EXPECT_EQ(Render(answer, snapshot),
            "pod team-a/train: 0 of 5 nodes: 3 full, 1 short by 4 devices, 1 wrong class;\n"
            "closest is gpu-15, short by 4, held by team-b/tune-9\n"
            "\n"
            "NODES  REASON              WHICH\n"
            "    3  full                gpu-1, gpu-2, gpu-10\n"
            "    1  short by 4 devices  gpu-15\n"
            "    1  wrong class         nic-1\n"
            "\n"
            "Held on gpu-15:\n"
            "POD            CLAIM   OWNER     DEVICES  SINCE\n"
            "team-b/tune-9  tune-9  Job/tune        4  120m\n"
            "\n"
            "What would help:\n"
            "- end pod team-b/tune-9: frees 4 devices on gpu-15\n"
            "- ask for 4 devices in request gpu of claim team-a/train: fits gpu-15\n");
}

TEST_F(WhyTest, AClaimIsExplainedLikeAPodWithNothingElse) {
  const Snapshot snapshot = BusyCluster(8);
  const WhyAnswer answer = AskClaim(snapshot, "train");
  EXPECT_THAT(answer.sentence, HasSubstr("0 of 5 nodes: 3 full"));
  EXPECT_THAT(answer.notes,
              ElementsAre("pod train uses the claim and may need more: drakkar why pod train"));
}

TEST_F(WhyTest, AnAskerSeesOnlyTheNamesThatAreTheirs) {
  const Snapshot snapshot = BusyCluster(8);
  WhyAnswer answer = AskPod(snapshot);
  Redact(answer,
         {.nodes = false, .sees_namespace = [](std::string_view ns) { return ns == "team-a"; }});
  Summarize(answer, snapshot.now);
  EXPECT_EQ(Render(answer, snapshot),
            "pod team-a/train: 0 of 5 nodes: 3 full, 1 short by 4 devices, 1 wrong class;\n"
            "closest is a node, short by 4, held by another namespace\n"
            "\n"
            "NODES  REASON\n"
            "    3  full\n"
            "    1  short by 4 devices\n"
            "    1  wrong class\n"
            "\n"
            "Held on the closest node:\n"
            "POD                  CLAIM  OWNER  DEVICES  SINCE\n"
            "(another namespace)                      4\n"
            "\n"
            "What would help:\n"
            "- end 1 pod of other namespaces: frees 4 devices\n"
            "- ask for 4 devices in request gpu of claim team-a/train\n");
  const std::string json = WhyToJson(answer);
  for (const char* secret : {"gpu-15", "tune", "team-b", "gpu-1", "nic-1"}) {
    EXPECT_THAT(json, ::testing::Not(HasSubstr(secret)));
  }
}

TEST_F(WhyTest, SaysWhichNodesFit) {
  const Snapshot snapshot = BusyCluster(2);
  const WhyAnswer answer = AskPod(snapshot);
  EXPECT_TRUE(answer.fits);
  EXPECT_EQ(answer.sentence, "fits 1 of 5 nodes: gpu-15");
  EXPECT_THAT(answer.help, IsEmpty());
}

TEST_F(WhyTest, SaysWhatAPodThatFitsWouldWaitFor) {
  const Snapshot snapshot = FromYaml(
      kClass + Node("n1") +
      Slice("n1",
            Devices(1, ", bindingConditions: [attached], bindingFailureConditions: [broken]")) +
      Wanting("train", 1));
  EXPECT_EQ(AskPod(snapshot).sentence,
            "fits 1 of 1 node: n1; there it first waits for condition attached of device "
            "gpu.example.com/n1/gpu-0");
}

TEST_F(WhyTest, OneNodeIsShownInFull) {
  const Snapshot snapshot = BusyCluster(8);
  const WhyAnswer answer =
      Ask(snapshot, {WhySubject::Kind::kPod, "team-a", "train"}, "gpu-15").value();
  EXPECT_THAT(Render(answer, snapshot),
              HasSubstr("node gpu-15: does not fit\n"
                        "DynamicResources: cannot allocate all claims\n"));
  EXPECT_THAT(Render(answer, snapshot), HasSubstr("4 held by another claim"));
  EXPECT_EQ(Ask(snapshot, {WhySubject::Kind::kPod, "team-a", "train"}, "gpu-99").error().message,
            "there is no node \"gpu-99\"");
  EXPECT_EQ(Ask(snapshot, {WhySubject::Kind::kPod, "team-a", "nobody"}).error().message,
            "pods \"nobody\" not found in namespace team-a");
}

TEST_F(WhyTest, ReasonsThatHaveNothingToDoWithDevicesComeFirst) {
  const Snapshot snapshot = FromYaml(
      kClass + Node("n1", "{unschedulable: true}") + Slice("n1", Devices(1)) +
      Node("n2", "{taints: [{key: k, effect: NoSchedule}]}") + Slice("n2", Devices(1)) +
      "---\nkind: Node\nmetadata: {name: n3}\nstatus: {allocatable: {cpu: 8, memory: 8Gi, pods: "
      "110}, conditions: [{type: Ready, status: 'False'}]}\n" +
      Slice("n3", Devices(1)) +
      "---\nkind: Node\nmetadata: {name: n4}\nstatus: {allocatable: {cpu: 1, memory: 8Gi, pods: "
      "110}}\n" +
      Slice("n4", Devices(1)) + Wanting("train", 1, "", ", overhead: {cpu: 2}"));
  const WhyAnswer answer = AskPod(snapshot);
  EXPECT_EQ(answer.sentence,
            "0 of 4 nodes: 1 cordoned, 1 insufficient cpu, 1 not ready, 1 tainted");
  ASSERT_EQ(answer.help.size(), 1u);
  EXPECT_EQ(answer.help[0].kind, Help::Kind::kUncordon);
  EXPECT_EQ(answer.help[0].node, "n1");
}

TEST_F(WhyTest, NamesTaintsSelectorsCapacityAndPoolsAsReasons) {
  const auto reason = [this](const std::string& slice, const std::string& request = "") {
    const Snapshot snapshot = FromYaml(kClass + Node("n1") + slice + Wanting("train", 1, request));
    const WhyAnswer answer = AskPod(snapshot);
    return answer.groups.empty() ? answer.sentence : answer.groups[0].reason;
  };
  EXPECT_EQ(reason(""), "no devices");
  EXPECT_EQ(reason(Slice("n1", Devices(1, ", taints: [{key: k, effect: NoSchedule}]"))),
            "tainted devices");
  EXPECT_EQ(reason(Slice("n1", Devices(1)), ", selectors: [{cel: {expression: \"false\"}}]"),
            "no device that the request selects");
  EXPECT_EQ(reason(Slice("n1", Devices(1), "other.example.com")), "wrong class");
  EXPECT_EQ(reason("---\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: gpu.example.com, "
                   "nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 2}, devices: "
                   "[{name: a}]}\n"),
            "incomplete pool");
}

TEST_F(WhyTest, AskingForMoreThanThereIsSaysSo) {
  const Snapshot snapshot =
      FromYaml(kClass + Node("n1") + Slice("n1", Devices(4)) + Wanting("train", 6));
  const WhyAnswer answer = AskPod(snapshot);
  EXPECT_EQ(answer.sentence, "0 of 1 node: 1 too few devices (4 of 6)");
  EXPECT_FALSE(answer.closest.has_value()) << "nobody holds anything";
}

TEST_F(WhyTest, SuggestsATolerationOrAnotherSelector) {
  const Snapshot snapshot =
      FromYaml(kClass + Node("n1") +
               Slice("n1", Devices(1, ", taints: [{key: maintenance, effect: NoSchedule}]")) +
               Wanting("train", 1));
  const WhyAnswer answer = AskPod(snapshot);
  ASSERT_EQ(answer.help.size(), 1u);
  EXPECT_THAT(
      Render(answer, snapshot),
      HasSubstr("- change claim team-a/train: spec.devices.requests[0].exactly.tolerations:\n"
                "  maintenance:NoSchedule of gpu.example.com/n1/gpu-0: fits n1\n"));
}

TEST_F(WhyTest, ABoundPodHasItsDevices) {
  const Snapshot snapshot =
      FromYaml(kClass + Node("n1") + Slice("n1", Devices(2)) +
               HeldClaim("c", "n1", {"gpu-1"}, "train", "team-a") +
               "---\nkind: Pod\nmetadata: {name: train, namespace: team-a}\nspec: {nodeName: n1, "
               "resourceClaims: [{name: g, resourceClaimName: c}]}\nstatus: {phase: Running, "
               "startTime: '2026-01-01T11:00:00Z'}\n");
  const WhyAnswer answer = AskPod(snapshot);
  EXPECT_TRUE(answer.fits);
  EXPECT_EQ(answer.sentence, "is on node n1 with device gpu-1 for 60m");
  const WhyAnswer claim = AskClaim(snapshot, "c");
  EXPECT_TRUE(claim.fits);
  EXPECT_EQ(claim.sentence, "is on node n1 with device gpu-1 for 60m");
}

TEST_F(WhyTest, AClaimThatIsNotPreparedNamesTheDriverAndItsLastError) {
  Snapshot snapshot =
      FromYaml(kClass + Node("n1") + Slice("n1", Devices(1)) +
               HeldClaim("c", "n1", {"gpu-0"}, "train", "team-a") +
               "---\nkind: Pod\nmetadata: {name: train, namespace: team-a}\nspec: {nodeName: n1, "
               "resourceClaims: [{name: g, resourceClaimName: c}]}\nstatus: {phase: Pending, "
               "startTime: '2026-01-01T11:55:00Z'}\n"
               "---\nkind: Event\nmetadata: {name: e1}\nreason: FailedPrepareDynamicResources\n"
               "message: an old error\nlastTimestamp: '2026-01-01T11:56:00Z'\n"
               "---\nkind: Event\nmetadata: {name: e2}\nreason: FailedPrepareDynamicResources\n"
               "message: 'gpu.example.com: device is busy'\nlastTimestamp: '2026-01-01T11:59:00Z'\n"
               "---\nkind: Event\nmetadata: {name: e3}\nreason: Scheduled\nmessage: assigned\n");
  const WhyAnswer answer = AskPod(snapshot);
  EXPECT_TRUE(answer.fits);
  EXPECT_EQ(answer.sentence,
            "is on node n1 for 5m, but claim team-a/c is not prepared by gpu.example.com: "
            "gpu.example.com: device is busy");
  EXPECT_THAT(Render(answer, snapshot), HasSubstr("Not prepared:\n- claim team-a/c on node n1"));
}

TEST_F(WhyTest, AWaitForBindingConditionsHasAnAgeAndADeadline) {
  std::string claim = HeldClaim("train", "n1", {"gpu-0"}, "train", "team-a");
  claim.replace(claim.find("device: gpu-0"), 13, "device: gpu-0, bindingConditions: [attached]");
  claim.replace(claim.find("  allocation:\n"), 14,
                "  allocation:\n    allocationTimestamp: '2026-01-01T11:57:00Z'\n");
  const std::string pod = Wanting("train", 1);
  const Snapshot snapshot = FromYaml(kClass + Node("n1") + Slice("n1", Devices(1)) + claim +
                                     "  devices: [{driver: gpu.example.com, pool: n1, device: "
                                     "gpu-0, conditions: [{type: attached, status: 'False', "
                                     "reason: Moving, message: cable 7}]}]\n" +
                                     pod.substr(pod.find("---\nkind: Pod")));
  const WhyAnswer answer = AskPod(snapshot);
  EXPECT_TRUE(answer.fits);
  EXPECT_EQ(answer.sentence,
            "waits for 3m until attached of gpu.example.com/n1/gpu-0 is true (Moving: cable 7); "
            "gives up in 7m");
  EXPECT_THAT(Render(answer, snapshot), HasSubstr("2026-01-01T12:07:00Z\n"));
}

TEST_F(WhyTest, ADeletionNamesTheFinalizerAndWhoRemovesIt) {
  const Snapshot snapshot = FromYaml(
      kClass + Node("n1") +
      "---\nkind: ResourceClaim\nmetadata: {name: c, namespace: team-a, deletionTimestamp: "
      "'2026-01-01T11:50:00Z', finalizers: [resource.kubernetes.io/delete-protection]}\nspec: {}\n"
      "status: {reservedFor: [{resource: pods, name: train, uid: u}]}\n"
      "---\nkind: Pod\nmetadata: {name: train, namespace: team-a, deletionTimestamp: "
      "'2026-01-01T11:50:30Z', deletionGracePeriodSeconds: 30, finalizers: [example.com/hold]}\n"
      "spec: {nodeName: n1, resourceClaims: [{name: g, resourceClaimName: c}]}\nstatus: {phase: "
      "Running}\n"
      "---\nkind: Pod\nmetadata: {name: stuck, namespace: team-a, deletionTimestamp: "
      "'2026-01-01T11:50:30Z', deletionGracePeriodSeconds: 30}\nspec: {nodeName: gone}\nstatus: "
      "{phase: Running}\n");
  EXPECT_EQ(
      AskPod(snapshot).sentence,
      "pod team-a/train is being deleted for 10m and has finalizer example.com/hold; it waits "
      "for the controller of example.com");
  EXPECT_EQ(AskClaim(snapshot, "c").sentence,
            "claim team-a/c is being deleted for 10m and has finalizer "
            "resource.kubernetes.io/delete-protection; it waits for the resource claim controller, "
            "when pod team-a/train has ended");
  EXPECT_EQ(
      AskPod(snapshot, "stuck").sentence,
      "pod team-a/stuck is being deleted for 10m; it waits for node gone, when the containers "
      "have stopped and its claims are unprepared; the node no longer exists");
}

TEST_F(WhyTest, WhatKeepsAPodOutOfTheQueueIsSaid) {
  const Snapshot gated = FromYaml(kClass + Node("n1") + Slice("n1", Devices(1)) +
                                  Wanting("train", 1, "", ", schedulingGates: [{name: quota}]"));
  EXPECT_THAT(AskPod(gated).sentence, HasSubstr("no node was tried: "));
  EXPECT_FALSE(AskPod(gated).fits);
  const Snapshot other = FromYaml(kClass + Node("n1") + Slice("n1", Devices(1)) +
                                  Wanting("train", 1, "", ", schedulerName: mine"));
  EXPECT_EQ(AskPod(other).sentence,
            "no node was tried: no scheduler goes by the name \"mine\" (spec.schedulerName)");
  EXPECT_EQ(AskPod(FromYaml(kClass + Wanting("train", 1))).sentence,
            "no node was tried: the cluster has no nodes");
}

TEST_F(WhyTest, HolderNamesNeedNoPodAndHelpIsOnlyWhatWorks) {
  // Releasing the claim does not help: the pod needs more CPU than the node has.
  const Snapshot snapshot =
      FromYaml(kClass + Node("n1") + Slice("n1", Devices(2)) +
               HeldClaim("idle", "n1", {"gpu-0"}, "", "team-b") + Wanting("train", 2));
  const WhyAnswer answer = AskPod(snapshot);
  EXPECT_EQ(answer.sentence,
            "0 of 1 node: 1 short by 1 device; closest is n1, short by 1, held by claim "
            "team-b/idle");
  ASSERT_FALSE(answer.help.empty());
  EXPECT_EQ(answer.help[0].kind, Help::Kind::kFree);
}

TEST_F(WhyTest, WithoutTheRightToListNodesTheClientCannotAnswer) {
  Snapshot snapshot = BusyCluster(8);
  snapshot.has_nodes = false;
  EXPECT_THAT(Ask(snapshot, {WhySubject::Kind::kPod, "team-a", "train"}).error().message,
              HasSubstr("you may not list nodes"));
}

TEST_F(WhyTest, JsonHasEverything) {
  const Snapshot snapshot = BusyCluster(8);
  const std::string json =
      WhyToJson(Ask(snapshot, {WhySubject::Kind::kPod, "team-a", "train"}, "", true).value());
  for (const char* part :
       {"\"fits\": false", "\"sentence\": \"0 of 5 nodes", "\"reason\": \"full\"",
        "\"closest\": {\n    \"node\": \"gpu-15\",\n    \"missing\": 4", "\"owner\": \"Job/tune\"",
        "\"kind\": \"count\"", "\"rule\": \"in-use\"", "\"plugin\": \"DynamicResources\""}) {
    EXPECT_THAT(json, HasSubstr(part));
  }
}

}  // namespace
}  // namespace drakkar::answers
