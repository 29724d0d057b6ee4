// What the scheduler does when something in the cluster changes: which changes wake a pod that does
// not fit, which free resources, and what is dropped with a pod.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/cluster.h"
#include "tests/support/faulty_client.h"

namespace drakkar::scheduler {
namespace {

using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

bool IsClaimWrite(std::string_view verb, const client::ResourceRef& ref, const api::TreePtr&) {
  return verb == "update" && ref.kind->kind == "ResourceClaim";
}

class SchedulerEvents : public ::testing::Test {
 protected:
  SchedulerEvents() { cluster_.scheduler_client = &client_; }
  ~SchedulerEvents() override { cluster_.KillScheduler(); }

  // A pod that requests this much cpu; a node has 4. `metadata` and `spec` are further members.
  void Create(std::string name, int cpu, std::string spec = "", std::string metadata = "") {
    cluster_.Create("Pod", StrCat(R"({"metadata":{"name":")", name, "\"", metadata,
                                  R"(},"spec":{"containers":[{"name":"c","image":"i","resources":)",
                                  R"({"requests":{"cpu":")", cpu, R"("}}}])", spec, "}}"));
    cluster_.Settle();
  }
  // Binds a pod as another scheduler would.
  void BindByHand(std::string name, std::string node) {
    api::Draft binding{{"apiVersion", "v1"}, {"kind", "Binding"}};
    binding["metadata"]["name"] = name;
    binding["target"]["kind"] = "Node";
    binding["target"]["name"] = node;
    cluster_.client().Create({api::FindKind("", "v1", "Pod"), "default", name, "binding"},
                             binding.Freeze(), {}, [](client::Reply reply) { CHECK(reply.ok()); });
    cluster_.Settle();
  }
  void SetPhase(std::string name, const char* phase) {
    cluster_.Update("Pod", name, "status",
                    [&](api::Draft& pod) { pod["status"]["phase"] = phase; });
  }
  void SetNominated(std::string name, const char* node) {
    cluster_.Update("Pod", name, "status", [&](api::Draft& pod) {
      if (node == nullptr) {
        pod["status"].Remove("nominatedNodeName");
      } else {
        pod["status"]["nominatedNodeName"] = node;
      }
    });
  }
  int Attempts(std::string name) {
    return cluster_.scheduler().State("default/" + name).pod.attempts;
  }
  std::string NodeOf(std::string name) {
    cluster_.loop().Advance(seconds(2));  // past the backoff after a rejection
    return cluster_.NodeOf(std::move(name));
  }
  std::string Metric(std::string_view series) {
    const std::string text = cluster_.metrics().Text();
    const std::size_t at = text.find(StrCat("\n", series, " "));
    if (at == std::string::npos) return "absent";
    const std::size_t value = at + series.size() + 2;
    return text.substr(value, text.find('\n', value) - value);
  }

  TestCluster cluster_;
  testing::FaultyClient client_{cluster_.loop(), cluster_.client()};
};

TEST_F(SchedulerEvents, AChangeOfANodeWakesThePodsItMayHelp) {
  cluster_.CreateNode("small");
  cluster_.CreateNode("cordoned", R"({"name":"cordoned"})", R"({"unschedulable":true})");
  cluster_.CreateNode("tainted", R"({"name":"tainted"})",
                      R"({"taints":[{"key":"k","value":"v","effect":"NoSchedule"}]})");
  cluster_.StartScheduler();
  Create("big", 8);
  Create("labelled", 1, R"(,"nodeSelector":{"disk":"ssd"})");
  Create("uncordoned", 1, R"(,"nodeSelector":{"name":"cordoned"})");
  Create("untainted", 1, R"(,"nodeSelector":{"name":"tainted"})");
  ASSERT_EQ(cluster_.scheduler().counts().unschedulable, 4u);
  cluster_.Update("Node", "small", "",
                  [](api::Draft& node) { node["metadata"]["annotations"].Entry("x") = "y"; });
  cluster_.Settle();
  for (const char* pod : {"big", "labelled", "uncordoned", "untainted"}) {
    EXPECT_EQ(Attempts(pod), 1) << pod;
  }
  cluster_.Update("Node", "small", "status",
                  [](api::Draft& node) { node["status"]["allocatable"].Entry("cpu") = "16"; });
  EXPECT_EQ(NodeOf("big"), "small");
  EXPECT_EQ(Attempts("labelled"), 1) << "more resources do not help it";
  cluster_.Update("Node", "small", "",
                  [](api::Draft& node) { node["metadata"]["labels"].Entry("disk") = "ssd"; });
  EXPECT_EQ(NodeOf("labelled"), "small");
  cluster_.Update("Node", "cordoned", "",
                  [](api::Draft& node) { node["spec"].Remove("unschedulable"); });
  EXPECT_EQ(NodeOf("uncordoned"), "cordoned");
  cluster_.Update("Node", "tainted", "", [](api::Draft& node) { node["spec"].Remove("taints"); });
  EXPECT_EQ(NodeOf("untainted"), "tainted");
}

TEST_F(SchedulerEvents, APodThatHasEndedFreesItsRoom) {
  cluster_.CreateNode("n1");
  cluster_.StartScheduler();
  Create("first", 3);
  Create("second", 3);
  ASSERT_EQ(cluster_.NodeOf("second"), "");
  SetPhase("first", "Running");
  EXPECT_EQ(NodeOf("second"), "");
  EXPECT_EQ(Attempts("second"), 1) << "a pod that starts to run frees nothing";
  SetPhase("first", "Succeeded");
  EXPECT_EQ(NodeOf("second"), "n1");
  EXPECT_EQ(Metric(R"(scheduler_cache_size{type="pods"})"), "1");
}

TEST_F(SchedulerEvents, APodThatWillNotRunLeavesTheQueue) {
  cluster_.StartScheduler();
  Create("failed", 1);
  Create("deleted", 1, "", R"(,"finalizers":["example.com/keep"])");
  ASSERT_EQ(cluster_.scheduler().counts().unschedulable, 2u);
  SetPhase("failed", "Failed");
  cluster_.Settle();
  EXPECT_EQ(cluster_.scheduler().counts().unschedulable, 1u);
  cluster_.Delete("Pod", "deleted");
  ASSERT_NE(cluster_.Find("Pod", "deleted"), nullptr) << "its finalizer keeps it";
  EXPECT_EQ(cluster_.scheduler().counts().unschedulable, 0u);
  cluster_.CreateNode("n1");
  EXPECT_EQ(NodeOf("failed"), "");
  EXPECT_EQ(NodeOf("deleted"), "");
}

TEST_F(SchedulerEvents, APodThatSomebodyElseBindsIsForgotten) {
  cluster_.CreateNode("n1", "{}", R"({"unschedulable":true})");
  cluster_.StartScheduler();
  Create("p", 1);
  ASSERT_EQ(cluster_.scheduler().counts().unschedulable, 1u);
  BindByHand("p", "n1");
  EXPECT_EQ(cluster_.scheduler().counts().unschedulable, 0u);
  EXPECT_THAT(cluster_.Events("p", "FailedScheduling"), IsEmpty()) << "its rejection is outdated";
}

TEST_F(SchedulerEvents, DevicesThatFailedForAPodAreForgottenWhenItIsBound) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 2, kConditions);
  cluster_.CreateClass();
  cluster_.CreateClaim("c");
  cluster_.StartScheduler();
  cluster_.CreatePodWithClaims("p", {"c"});
  cluster_.Settle();
  cluster_.SetDeviceCondition("c", kFailed, "True");
  ASSERT_EQ(cluster_.scheduler().counts().with_failed_devices, 1u);
  BindByHand("p", "n1");
  EXPECT_EQ(cluster_.scheduler().counts().with_failed_devices, 0u);
  EXPECT_EQ(cluster_.scheduler().counts().backoff, 0u);
}

TEST_F(SchedulerEvents, ANominatedPodThatSomebodyElseBindsFreesTheRoomKeptForIt) {
  for (const char* node : {"n1", "n2"}) cluster_.CreateNode(node);
  cluster_.StartScheduler();
  constexpr char kGated[] = R"(,"schedulingGates":[{"name":"x/y"}])";
  constexpr char kOnN1[] = R"(,"nodeSelector":{"kubernetes.io/hostname":"n1"})";
  cluster_.Update("Node", "n1", "", [](api::Draft& node) {
    node["metadata"]["labels"].Entry("kubernetes.io/hostname") = "n1";
  });
  Create("nominated", 3, kGated);
  SetNominated("nominated", "n1");
  Create("blocked", 3, kOnN1);
  ASSERT_THAT(cluster_.ConditionMessage("blocked"), HasSubstr("room is kept"));
  const auto open = [&] {
    cluster_.Update("Pod", "nominated", "",
                    [](api::Draft& pod) { pod["spec"].Remove("schedulingGates"); });
  };
  client_.loses = [](std::string_view, const client::ResourceRef& ref, const api::TreePtr&) {
    return ref.subresource == "binding";
  };
  open();
  BindByHand("nominated", "n2");
  client_.loses = nullptr;
  EXPECT_EQ(NodeOf("blocked"), "n1");
}

TEST_F(SchedulerEvents, ANominationThatWasRemovedDuringAWaitKeepsNoRoomAfterAFailure) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 1, kConditions);
  cluster_.CreateClass();
  cluster_.CreateClaim("c");
  cluster_.StartScheduler();
  cluster_.CreatePodWithClaims("p", {"c"});
  cluster_.Settle();
  SetNominated("p", nullptr);
  cluster_.SetDeviceCondition("c", kFailed, "True");
  EXPECT_EQ(cluster_.scheduler().State("default/p").pod.nominated_node, "");
}

// Pods of the application "web" may differ by one between the zones.
std::string Spread() {
  return R"(,"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":
      "DoNotSchedule","labelSelector":{"matchLabels":{"app":"web"}}}])";
}

class SpreadEvents : public SchedulerEvents {
 protected:
  static constexpr char kWeb[] = R"(,"labels":{"app":"web"},"finalizers":["example.com/keep"])";

  // Zone b is full, and zone a has one pod more than zone b.
  SpreadEvents() {
    cluster_.CreateNode("a", R"({"zone":"a"})");
    cluster_.CreateNode("b", R"({"zone":"b"})");
    cluster_.StartScheduler();
    Create("web-a", 1, R"(,"nodeName":"a")", kWeb);
    Create("hog", 4, R"(,"nodeName":"b")");
    Create("waits", 1, Spread(), kWeb);
    EXPECT_EQ(cluster_.NodeOf("waits"), "");
  }
};

TEST_F(SpreadEvents, APodThatIsAddedToAnotherZoneWakesThePod) {
  Create("web-b", 0, R"(,"nodeName":"b")", kWeb);
  EXPECT_EQ(NodeOf("waits"), "a");
}

TEST_F(SpreadEvents, APodWhoseDeletionBeganNoLongerCounts) {
  cluster_.Delete("Pod", "web-a");
  ASSERT_NE(cluster_.Find("Pod", "web-a"), nullptr) << "it is still terminating";
  EXPECT_EQ(NodeOf("waits"), "a");
}

TEST_F(SpreadEvents, AZoneThatIsRemovedNoLongerCounts) {
  cluster_.Delete("Node", "b");
  EXPECT_EQ(NodeOf("waits"), "a");
}

// Slices, classes, taint rules and claims, each added, changed and removed.
class DeviceEvents : public SchedulerEvents {
 protected:
  DeviceEvents() {
    cluster_.SetGates(FeatureGates().With(Gate::kDRADeviceTaintRules, true));
    cluster_.CreateNode("n1");
  }
  void CreatePod(std::string name) {
    cluster_.CreateClaim("claim-" + name);
    cluster_.CreatePodWithClaims(name, {"claim-" + name});
    cluster_.Settle();
  }
  void CreateRule(std::string name, std::string driver) {
    cluster_.Create("DeviceTaintRule",
                    StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"deviceSelector":{)",
                           R"("driver":")", driver, R"("},"taint":{"key":"k","effect":)",
                           R"("NoSchedule"}}})"));
    cluster_.Settle();
  }
};

TEST_F(DeviceEvents, SlicesAreFollowed) {
  cluster_.CreateClass();
  cluster_.StartScheduler();
  CreatePod("p");
  ASSERT_EQ(cluster_.NodeOf("p"), "");
  cluster_.CreateSlice("n1", 1);
  EXPECT_EQ(NodeOf("p"), "n1");
  CreatePod("q");
  ASSERT_EQ(cluster_.NodeOf("q"), "");
  cluster_.Update("ResourceSlice", "slice-n1", "", [](api::Draft& slice) {
    slice["spec"]["pool"]["generation"] = 2;
    slice["spec"]["devices"].Append({{"name", "dev-1"}});
  });
  EXPECT_EQ(NodeOf("q"), "n1");
  cluster_.Delete("Pod", "q");
  cluster_.Delete("ResourceClaim", "claim-q");
  cluster_.Delete("ResourceSlice", "slice-n1");
  CreatePod("r");
  EXPECT_EQ(NodeOf("r"), "");
}

TEST_F(DeviceEvents, ClassesAreFollowed) {
  cluster_.CreateSlice("n1", 3);
  cluster_.StartScheduler();
  CreatePod("p");
  ASSERT_EQ(cluster_.NodeOf("p"), "");
  cluster_.Create("DeviceClass", R"({"metadata":{"name":"gpu"},"spec":{"selectors":[
      {"cel":{"expression":"device.driver == \"other.example.com\""}}]}})");
  EXPECT_EQ(NodeOf("p"), "");
  EXPECT_THAT(cluster_.ConditionMessage("p"), HasSubstr("cannot allocate all claims"));
  cluster_.Update("DeviceClass", "gpu", "",
                  [](api::Draft& device_class) { device_class["spec"].Remove("selectors"); });
  EXPECT_EQ(NodeOf("p"), "n1");
  cluster_.Delete("DeviceClass", "gpu");
  CreatePod("q");
  EXPECT_THAT(cluster_.ConditionMessage("q"), HasSubstr("device class gpu does not exist"));
}

TEST_F(DeviceEvents, TaintRulesAreFollowed) {
  cluster_.CreateSlice("n1", 3);
  cluster_.CreateClass();
  cluster_.StartScheduler();
  CreateRule("rule", "d.example.com");
  CreatePod("p");
  EXPECT_EQ(cluster_.NodeOf("p"), "");
  cluster_.Update("DeviceTaintRule", "rule", "", [](api::Draft& rule) {
    rule["spec"]["deviceSelector"]["driver"] = "other.example.com";
  });
  EXPECT_EQ(NodeOf("p"), "n1");
  CreateRule("second", "d.example.com");
  CreatePod("q");
  EXPECT_EQ(cluster_.NodeOf("q"), "");
  cluster_.Delete("DeviceTaintRule", "second");
  EXPECT_EQ(NodeOf("q"), "n1");
}

TEST_F(DeviceEvents, AClaimThatIsRemovedFreesItsDevices) {
  cluster_.CreateSlice("n1", 1);
  cluster_.CreateClass();
  cluster_.StartScheduler();
  CreatePod("p");
  CreatePod("q");
  ASSERT_EQ(cluster_.NodeOf("q"), "");
  cluster_.Delete("Pod", "p");
  cluster_.Update("ResourceClaim", "claim-p", "",
                  [](api::Draft& claim) { claim["metadata"].Remove("finalizers"); });
  cluster_.Delete("ResourceClaim", "claim-p");
  EXPECT_EQ(NodeOf("q"), "n1");
}

TEST_F(SchedulerEvents, AttemptsAreCountedByTheirResult) {
  cluster_.CreateNode("n1");
  cluster_.StartScheduler();
  constexpr char kAttempts[] = "scheduler_schedule_attempts_total";
  const auto count = [&](const char* result) {
    return Metric(StrCat(kAttempts, R"({profile="default-scheduler",result=")", result, "\"}"));
  };
  Create("big", 8);
  EXPECT_EQ(count("unschedulable"), "1");
  EXPECT_EQ(Metric(R"(drakkar_scheduler_refused_nodes_total{profile="default-scheduler",)"
                   R"(reason="Insufficient cpu"})"),
            "1");
  client_.loses = [](std::string_view, const client::ResourceRef& ref, const api::TreePtr&) {
    return ref.subresource == "binding";
  };
  Create("p", 1);
  EXPECT_EQ(count("error"), "1");
  EXPECT_EQ(count("scheduled"), "0");
  client_.loses = nullptr;
  ASSERT_EQ(NodeOf("p"), "n1");
  EXPECT_EQ(count("scheduled"), "1");
  EXPECT_EQ(count("error"), "1");
  EXPECT_EQ(Metric("scheduler_pod_scheduling_attempts_sum"), "2");
  EXPECT_EQ(Metric("scheduler_scheduling_algorithm_duration_seconds_count"), "2");
  const auto reason = [&](const char* pod) {
    for (api::Value each : cluster_.Find("Pod", pod)->root()["status"]["conditions"].elements()) {
      if (each["type"].str() == "PodScheduled") return std::string(each["reason"].str());
    }
    return std::string("none");
  };
  cluster_.LetRefusalsBeTold();
  EXPECT_EQ(reason("big"), "Unschedulable");
  client_.loses = [](std::string_view, const client::ResourceRef& ref, const api::TreePtr&) {
    return ref.subresource == "binding";
  };
  Create("q", 1);
  EXPECT_EQ(reason("q"), "SchedulerError");
}

TEST_F(SchedulerEvents, PodsThatAreBeingBoundAreCountedAsAssumed) {
  constexpr int kPods = 32;  // as many as are tried in one turn
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", kPods);
  cluster_.CreateClass();
  for (int i = 0; i < kPods; ++i) {
    cluster_.CreateClaim(StrCat("c", i));
    cluster_.CreatePodWithClaims(StrCat("p", i), {StrCat("c", i)});
  }
  client_.holds = IsClaimWrite;
  cluster_.StartScheduler();
  EXPECT_EQ(Metric(R"(scheduler_cache_size{type="nodes"})"), "1");
  EXPECT_EQ(Metric(R"(scheduler_cache_size{type="pods"})"), StrCat(kPods));
  EXPECT_EQ(Metric(R"(scheduler_cache_size{type="assumed_pods"})"), StrCat(kPods));
  client_.holds = nullptr;
  client_.LetGo();
  cluster_.Settle();
  EXPECT_EQ(Metric(R"(scheduler_cache_size{type="assumed_pods"})"), "0");
}

TEST_F(SchedulerEvents, AStoppedSchedulerStartsNothingAndIgnoresAnswers) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 1);
  cluster_.CreateClass();
  cluster_.CreateClaim("c");
  cluster_.StartScheduler();
  EXPECT_TRUE(cluster_.scheduler().IsReady());
  Create("refused", 8);
  client_.holds = IsClaimWrite;
  cluster_.CreatePodWithClaims("half-bound", {"c"});
  cluster_.Settle();
  cluster_.scheduler().Stop();
  client_.holds = nullptr;
  client_.LetGo();
  Create("late", 1);
  EXPECT_EQ(NodeOf("late"), "");
  EXPECT_EQ(NodeOf("half-bound"), "");
  EXPECT_THAT(cluster_.Events("refused", "FailedScheduling"), IsEmpty());
}

TEST_F(SchedulerEvents, ASchedulerThatIsStoppedBeforeItsFirstAttemptMakesNone) {
  cluster_.CreateNode("n1");
  cluster_.CreatePod("p");
  Scheduler scheduler(cluster_.SchedulerOptions());
  EXPECT_FALSE(scheduler.IsReady());
  client_.lacks = [&](std::string_view, const client::ResourceRef& ref, const api::TreePtr&) {
    if (ref.kind->kind == "Pod") scheduler.Stop();
    return false;
  };
  scheduler.Start();
  cluster_.Settle();
  EXPECT_TRUE(scheduler.IsReady());
  EXPECT_EQ(cluster_.NodeOf("p"), "");
}

TEST_F(SchedulerEvents, EventsNameTheInstanceOrElseTheProfile) {
  cluster_.CreateNode("n1");
  const auto instance_of = [&](const char* pod) {
    std::string instance;
    cluster_.client().List({api::FindKind("", "v1", "Event"), "default", "", ""}, {},
                           [&](client::ListReply reply) {
                             for (const api::ObjectPtr& event : reply.items) {
                               const api::Value root = event->root();
                               if (root["involvedObject"]["name"].str() != pod) continue;
                               instance = std::string(root["reportingInstance"].str());
                             }
                           });
    cluster_.loop().RunUntilIdle();
    return instance;
  };
  for (const char* instance : {"", "host-7"}) {
    Scheduler::Options options = cluster_.SchedulerOptions();
    options.instance = instance;
    Scheduler scheduler(std::move(options));
    scheduler.Start();
    const std::string pod = StrCat("p", std::string_view(instance).size());
    cluster_.CreatePod(pod);
    cluster_.Settle();
    cluster_.LetRefusalsBeTold();
    EXPECT_EQ(instance_of(pod.c_str()),
              *instance == '\0' ? std::string_view("default-scheduler") : instance);
  }
}

// The plugins of every profile follow the claims and pods of that profile.
TEST_F(SchedulerEvents, PodsOfTheSecondProfileWaitAndFailLikeThoseOfTheFirst) {
  cluster_.profiles = {ProfileConfig{}, ProfileConfig{.name = "second"}};
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 3, kConditions);
  cluster_.CreateClass();
  cluster_.StartScheduler();
  for (const char* name : {"ready", "broken"}) {
    cluster_.CreateClaim(name);
    cluster_.CreatePodWithClaims(name, {name}, R"(,"schedulerName":"second")");
  }
  cluster_.Settle();
  EXPECT_EQ(cluster_.scheduler().counts().waiting_for_conditions, 2u);
  EXPECT_EQ(cluster_.scheduler().counts().binding, 2u);
  cluster_.SetDeviceCondition("ready", kAttached, "True");
  EXPECT_EQ(cluster_.NodeOf("ready"), "n1");
  cluster_.SetDeviceCondition("broken", kFailed, "True");
  EXPECT_EQ(cluster_.scheduler().counts().with_failed_devices, 1u);
  EXPECT_THAT(cluster_.Events("broken", "FailedScheduling"),
              ElementsAre(HasSubstr("device binding failed")));
  cluster_.Delete("Pod", "broken");
  EXPECT_EQ(cluster_.scheduler().counts().with_failed_devices, 0u);
  Create("big", 8, R"(,"schedulerName":"second")");
  EXPECT_EQ(cluster_.scheduler().State("default/big").pod.rejected_by,
            std::vector<std::string>{"NodeResourcesFit"});
}

TEST_F(SchedulerEvents, ADeletedPodThatWasWaitingFreesItsRoomAndDevices) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 1, kConditions);
  cluster_.CreateClass();
  cluster_.CreateClaim("c");
  cluster_.StartScheduler();
  cluster_.CreatePodWithClaims("p", {"c"}, R"(,"initContainers":[{"name":"i","image":"i",
      "resources":{"requests":{"cpu":"3"}}}])");
  cluster_.Settle();
  Create("next", 3);
  ASSERT_EQ(cluster_.NodeOf("next"), "");
  cluster_.Delete("Pod", "p");
  EXPECT_EQ(NodeOf("next"), "n1");
  EXPECT_EQ(cluster_.scheduler().counts().binding, 0u);
  EXPECT_THAT(cluster_.Events("p", "FailedScheduling"), Not(Contains(HasSubstr("timeout"))));
}

}  // namespace
}  // namespace drakkar::scheduler
