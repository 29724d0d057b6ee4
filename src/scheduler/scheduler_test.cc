#include "scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "scheduler/framework/metrics.h"
#include "scheduler/testing/cluster.h"
#include "tests/support/faulty_client.h"

namespace drakkar::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Scheduler, BindsAPodAndReportsIt) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.StartScheduler();
  cluster.CreatePod("a");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("a"), "n1");
  EXPECT_THAT(cluster.Events("a", "Scheduled"),
              ElementsAre("Successfully assigned default/a to n1"));
  EXPECT_THAT(cluster.metrics().Text(),
              HasSubstr("scheduler_schedule_attempts_total{profile=\"default-scheduler\","
                        "result=\"scheduled\"} 1"));
}

TEST(Scheduler, LeavesPodsOfOtherSchedulersAlone) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.StartScheduler();
  cluster.CreatePod("a", R"(,"schedulerName":"another")");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("a"), "");
}

TEST(Scheduler, ExplainsWhyAPodDoesNotFitAndSchedulesItWhenANodeIsAdded) {
  TestCluster cluster;
  cluster.CreateNode("n1", "{}", R"({"taints":[{"key":"k","value":"v","effect":"NoSchedule"}]})");
  cluster.CreateNode("n2", "{}", R"({"unschedulable":true})");
  cluster.CreateNode("n3");
  cluster.StartScheduler();
  cluster.Create("Pod", R"({"metadata":{"name":"big"},"spec":{"containers":[{"name":"c","image":"i",
    "resources":{"requests":{"cpu":"8"}}}]}})");
  cluster.Settle();
  const std::string expected =
      "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {k: v}, "
      "1 node(s) were unschedulable.";
  EXPECT_EQ(cluster.ConditionMessage("big"), expected);
  EXPECT_THAT(cluster.Events("big", "FailedScheduling"), ElementsAre(expected));
  EXPECT_EQ(cluster.scheduler().counts().unschedulable, 1u);

  cluster.CreateNode("n4");  // does not help: as small as the others
  cluster.Settle();
  EXPECT_EQ(cluster.scheduler().counts().unschedulable, 1u) << "not even tried";

  cluster.Create("Node", R"({"metadata":{"name":"n5"},"status":{"allocatable":{"cpu":"16",
    "memory":"1Gi","pods":"10"}}})");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("big"), "n5");
}

TEST(Scheduler, ReportsThatTheClusterHasNoNodes) {
  TestCluster cluster;
  cluster.StartScheduler();
  cluster.CreatePod("a");
  cluster.Settle();
  EXPECT_EQ(cluster.ConditionMessage("a"), "no nodes available to schedule pods");
  cluster.CreateNode("n1");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("a"), "n1");
}

TEST(Scheduler, HonorsTaintsSelectorsAndAffinity) {
  TestCluster cluster;
  cluster.CreateNode("plain");
  cluster.CreateNode("ssd", R"({"disk":"ssd","zone":"a"})");
  cluster.CreateNode("tainted", "{}",
                     R"({"taints":[{"key":"k","value":"v","effect":"NoSchedule"}]})");
  cluster.CreateNode("zone-b", R"({"disk":"ssd","zone":"b"})");
  cluster.StartScheduler();
  cluster.CreatePod("selects", R"(,"nodeSelector":{"disk":"ssd","zone":"a"})");
  cluster.CreatePod("tolerates", R"(,"tolerations":[{"key":"k","operator":"Exists"}],"affinity":
    {"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
    {"matchFields":[{"key":"metadata.name","operator":"In","values":["tainted"]}]}]}}})");
  cluster.CreatePod("prefers", R"(,"affinity":{"nodeAffinity":{
    "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":5,"preference":{"matchExpressions":[
    {"key":"zone","operator":"In","values":["b"]}]}}]}})");
  cluster.CreatePod("nowhere", R"(,"nodeSelector":{"disk":"tape"})");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("selects"), "ssd");
  EXPECT_EQ(cluster.NodeOf("tolerates"), "tainted");
  EXPECT_EQ(cluster.NodeOf("prefers"), "zone-b");
  EXPECT_EQ(cluster.ConditionMessage("nowhere"),
            "0/4 nodes are available: 1 node(s) had untolerated taint {k: v}, 3 node(s) didn't "
            "match Pod's node affinity/selector.");
  cluster.Update("Node", "plain", "",
                 [](api::Draft& node) { node["metadata"]["labels"].Entry("disk") = "tape"; });
  EXPECT_EQ(cluster.NodeOf("nowhere"), "plain") << "a changed label wakes it";
}

TEST(Scheduler, TriesHigherPriorityFirstAndCountsAssumedPods) {
  TestCluster cluster;
  cluster.StartScheduler();
  const auto create = [&](const char* name, int priority) {
    cluster.Create("Pod", std::string(R"({"metadata":{"name":")") + name +
                              R"("},"spec":{"priority":)" + std::to_string(priority) +
                              R"(,"containers":[{"name":"c","image":"i",
                              "resources":{"requests":{"cpu":"3"}}}]}})");
  };
  create("low", 1);
  create("high", 10);
  cluster.Settle();
  cluster.CreateNode("n1");  // has room for one
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("high"), "n1");
  EXPECT_EQ(cluster.NodeOf("low"), "");
  cluster.Delete("Pod", "high");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("low"), "n1") << "woken by the room that became free";
}

TEST(Scheduler, HoldsGatedPodsUntilTheLastGateIsRemoved) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.StartScheduler();
  cluster.CreatePod("gated", R"(,"schedulingGates":[{"name":"x/y"}])");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("gated"), "");
  EXPECT_EQ(cluster.scheduler().counts().gated, 1u);
  EXPECT_THAT(cluster.Events("gated", "FailedScheduling"), IsEmpty());
  cluster.Update("Pod", "gated", "",
                 [](api::Draft& pod) { pod["spec"].Remove("schedulingGates"); });
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("gated"), "n1");
}

TEST(Scheduler, MeasuresAPodsLatencyFromItsFirstAttempt) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.StartScheduler();
  cluster.CreatePod("gated", R"(,"schedulingGates":[{"name":"x/y"}])");
  cluster.loop().Advance(std::chrono::hours(1));
  cluster.Update("Pod", "gated", "",
                 [](api::Draft& pod) { pod["spec"].Remove("schedulingGates"); });
  cluster.Settle();
  ASSERT_EQ(cluster.NodeOf("gated"), "n1");
  EXPECT_THAT(cluster.metrics().Text(),
              HasSubstr("scheduler_pod_scheduling_sli_duration_seconds_bucket{attempts=\"1\","
                        "le=\"0.01\"} 1"));
}

TEST(SchedulerMetrics, UsesOneLabelForFifteenOrMoreAttemptsAndTheBucketsOfKubernetes) {
  Metrics metrics;
  SchedulerMetrics scheduler(metrics, "p");
  for (const int attempts : {14, 15, 40}) scheduler.ObserveScheduled(attempts, Duration::zero());
  scheduler.ObserveAttempt(SchedulerMetrics::Result::kScheduled, Duration::zero());
  const std::string text = metrics.Text();
  EXPECT_THAT(text,
              HasSubstr("scheduler_pod_scheduling_sli_duration_seconds_count{attempts=\"14\"} 1"));
  EXPECT_THAT(text,
              HasSubstr("scheduler_pod_scheduling_sli_duration_seconds_count{attempts=\"15+\"} 2"));
  EXPECT_THAT(text, HasSubstr("scheduler_scheduling_attempt_duration_seconds_bucket{profile=\"p\","
                              "result=\"scheduled\",le=\"0.001\"} 1"));
  EXPECT_THAT(text, HasSubstr("le=\"16.384\""));
}

TEST(Scheduler, NamesAFieldItDoesNotSupportInsteadOfIgnoringIt) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.StartScheduler();
  cluster.CreatePod("bound", R"(,"volumes":[{"name":"v","iscsi":{"targetPortal":"10.0.0.1",)"
                             R"("iqn":"iqn.2001-04.com.example:disk","lun":0}}])");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("bound"), "");
  EXPECT_THAT(cluster.Events("bound", "FailedScheduling"),
              ElementsAre("0/1 nodes are available: spec.volumes[0].iscsi is not supported by this "
                          "scheduler."));
}

TEST(Scheduler, IsReadyOnAServerWithoutDeviceTaintRulesAndUsesThemOnceTheyAreServed) {
  TestCluster cluster(FeatureGates().With(Gate::kDRADeviceTaintRules, true));
  testing::FaultyClient client(cluster.loop(), cluster.client());
  client.lacks = [](std::string_view, const client::ResourceRef& ref, const api::TreePtr&) {
    return ref.kind->kind == "DeviceTaintRule";
  };
  cluster.scheduler_client = &client;
  cluster.CreateNode("n1");
  cluster.CreateSlice("n1", 1);
  cluster.CreateClass();
  cluster.StartScheduler();
  cluster.CreatePod("a");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("a"), "n1");
  cluster.Create("DeviceTaintRule", R"({"metadata":{"name":"r"},"spec":{"deviceSelector":{
      "driver":"d.example.com"},"taint":{"key":"k","effect":"NoSchedule"}}})");
  client.lacks = nullptr;
  cluster.loop().Advance(std::chrono::seconds(61));
  cluster.CreateClaim("c");
  cluster.CreatePodWithClaims("b", {"c"});
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("b"), "");
  cluster.KillScheduler();
}

TEST(Scheduler, DoesNotAssignAHostPortTwice) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.StartScheduler();
  for (const char* name : {"a", "b"}) {
    cluster.Create("Pod", std::string(R"({"metadata":{"name":")") + name +
                              R"("},"spec":{"containers":[{"name":"c","image":"i",
                              "ports":[{"containerPort":80,"hostPort":8080,"protocol":"TCP"}]}]}})");
  }
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("a"), "n1");
  EXPECT_EQ(cluster.ConditionMessage("b"),
            "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod "
            "ports.");
  cluster.Delete("Pod", "a");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("b"), "n1");
}

TEST(Scheduler, ExportsTheMetricsThatKubernetesDashboardsRead) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.CreateNode("n2", R"({"disk":"ssd"})");
  cluster.StartScheduler();
  for (int i = 0; i < 20; ++i) cluster.CreatePod("p" + std::to_string(i));
  cluster.CreatePod("homeless", R"(,"nodeSelector":{"disk":"tape"})");
  cluster.Settle();
  const auto has = [&](const std::string& line) {
    const std::string text = cluster.metrics().Text();
    EXPECT_THAT(text, ::testing::HasSubstr(line));
  };
  has("scheduler_scheduling_algorithm_duration_seconds_count 20");
  for (const char* point : {"PreFilter", "Filter", "Score", "Reserve", "PreBind", "Bind"}) {
    has("scheduler_framework_extension_point_duration_seconds_count{extension_point=\"" +
        std::string(point) + "\",profile=\"default-scheduler\",status=\"Success\"} 2");
  }
  has("scheduler_cache_size{type=\"nodes\"} 2");
  has("scheduler_cache_size{type=\"pods\"} 20");
  has("scheduler_cache_size{type=\"assumed_pods\"} 0");
  has("scheduler_unschedulable_pods{plugin=\"NodeAffinity\",profile=\"default-scheduler\"} 1");
  cluster.Update("Node", "n1", "",
                 [](api::Draft& node) { node["metadata"]["labels"].Entry("disk") = "tape"; });
  cluster.loop().Advance(std::chrono::seconds(2));
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("homeless"), "n1");
  has("scheduler_unschedulable_pods{plugin=\"NodeAffinity\",profile=\"default-scheduler\"} 0");
  has("scheduler_cache_size{type=\"pods\"} 21");
  cluster.Delete("Node", "n2");
  has("scheduler_cache_size{type=\"nodes\"} 1");
  cluster.Delete("Pod", "homeless");
  has("scheduler_cache_size{type=\"pods\"} 20");
}

TEST(Scheduler, SpreadsPodsOverEqualNodes) {
  TestCluster cluster;
  for (int i = 0; i < 5; ++i) cluster.CreateNode("n" + std::to_string(i));
  cluster.StartScheduler();
  for (int i = 0; i < 10; ++i) cluster.CreatePod("p" + std::to_string(i));
  cluster.Settle();
  std::map<std::string, int> pods;
  for (int i = 0; i < 10; ++i) ++pods[cluster.NodeOf("p" + std::to_string(i))];
  EXPECT_EQ(pods.size(), 5u);
  for (const auto& [node, count] : pods) EXPECT_EQ(count, 2) << node;
}

}  // namespace
}  // namespace drakkar::scheduler
