// Every metric of the scheduler: its labels, and that each observation is counted once.
#include "scheduler/framework/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/text.h"

namespace drakkar::scheduler {
namespace {

using std::chrono::seconds;

class SchedulerMetricsTest : public ::testing::Test {
 protected:
  // The value of a series; "absent" if there is none.
  std::string Value(std::string_view series) {
    const std::string text = registry_.Text();
    const std::size_t at = text.find(StrCat("\n", series, " "));
    if (at == std::string::npos) return "absent";
    const std::size_t value = at + series.size() + 2;
    return text.substr(value, text.find('\n', value) - value);
  }
  // "count/sum" of a histogram.
  std::string Seen(std::string_view name, std::string_view labels = "") {
    return StrCat(Value(StrCat(name, "_count", labels)), "/", Value(StrCat(name, "_sum", labels)));
  }

  Metrics registry_;
  SchedulerMetrics metrics_{registry_, "p"};
};

TEST_F(SchedulerMetricsTest, AttemptsAreCountedByResult) {
  using Result = SchedulerMetrics::Result;
  metrics_.ObserveAttempt(Result::kScheduled, seconds(1));
  metrics_.ObserveAttempt(Result::kScheduled, seconds(2));
  metrics_.ObserveAttempt(Result::kUnschedulable, seconds(4));
  metrics_.ObserveAttempt(Result::kError, seconds(8));
  constexpr char kTotal[] = "scheduler_schedule_attempts_total";
  constexpr char kSeconds[] = "scheduler_scheduling_attempt_duration_seconds";
  EXPECT_EQ(Value(StrCat(kTotal, R"({profile="p",result="scheduled"})")), "2");
  EXPECT_EQ(Value(StrCat(kTotal, R"({profile="p",result="unschedulable"})")), "1");
  EXPECT_EQ(Value(StrCat(kTotal, R"({profile="p",result="error"})")), "1");
  EXPECT_EQ(Seen(kSeconds, R"({profile="p",result="scheduled"})"), "2/3");
  EXPECT_EQ(Seen(kSeconds, R"({profile="p",result="unschedulable"})"), "1/4");
  EXPECT_EQ(Seen(kSeconds, R"({profile="p",result="error"})"), "1/8");
  metrics_.ObserveAlgorithm(seconds(3));
  metrics_.ObserveAlgorithm(seconds(4));
  EXPECT_EQ(Seen("scheduler_scheduling_algorithm_duration_seconds"), "2/7");
}

TEST_F(SchedulerMetricsTest, AScheduledPodCountsItsAttempts) {
  constexpr char kSli[] = "scheduler_pod_scheduling_sli_duration_seconds";
  for (const int attempts : {0, 1, 2, 14, 15, 99}) metrics_.ObserveScheduled(attempts, seconds(1));
  EXPECT_EQ(Seen(kSli, R"({attempts="1"})"), "2/2") << "never less than one";
  EXPECT_EQ(Seen(kSli, R"({attempts="2"})"), "1/1");
  EXPECT_EQ(Seen(kSli, R"({attempts="3"})"), "0/0");
  EXPECT_EQ(Seen(kSli, R"({attempts="14"})"), "1/1");
  EXPECT_EQ(Seen(kSli, R"({attempts="15+"})"), "2/2");
  EXPECT_EQ(Seen("scheduler_pod_scheduling_attempts"), "6/131");
}

TEST_F(SchedulerMetricsTest, GaugesFollowTheirValue) {
  metrics_.SetCacheSize(1, 2, 3);
  EXPECT_EQ(Value(R"(scheduler_cache_size{type="nodes"})"), "1");
  EXPECT_EQ(Value(R"(scheduler_cache_size{type="pods"})"), "2");
  EXPECT_EQ(Value(R"(scheduler_cache_size{type="assumed_pods"})"), "3");
  for (const int by : {1, 1, -1}) metrics_.CountUnschedulable("A", by);
  metrics_.CountUnschedulable("B", 1);
  EXPECT_EQ(Value(R"(scheduler_unschedulable_pods{plugin="A",profile="p"})"), "1");
  EXPECT_EQ(Value(R"(scheduler_unschedulable_pods{plugin="B",profile="p"})"), "1");
}

TEST_F(SchedulerMetricsTest, CountersAreKeptPerLabel) {
  metrics_.CountRefused("Insufficient cpu", 3);
  metrics_.CountRefused("Insufficient cpu", 4);
  metrics_.CountRefused("Too many pods", 1);
  constexpr char kRefused[] = "drakkar_scheduler_refused_nodes_total";
  EXPECT_EQ(Value(StrCat(kRefused, R"({profile="p",reason="Insufficient cpu"})")), "7");
  EXPECT_EQ(Value(StrCat(kRefused, R"({profile="p",reason="Too many pods"})")), "1");
  for (int i = 0; i < 2; ++i) metrics_.CountIncoming("active", "PodAdd");
  metrics_.CountIncoming("active", "NodeAdd");
  metrics_.CountIncoming("backoff", "PodAdd");
  constexpr char kIncoming[] = "scheduler_queue_incoming_pods_total";
  EXPECT_EQ(Value(StrCat(kIncoming, R"({event="PodAdd",queue="active"})")), "2");
  EXPECT_EQ(Value(StrCat(kIncoming, R"({event="NodeAdd",queue="active"})")), "1");
  EXPECT_EQ(Value(StrCat(kIncoming, R"({event="PodAdd",queue="backoff"})")), "1");
  for (const char* status : {"success", "success", "failure"}) {
    metrics_.CountBindingConditions(status);
  }
  constexpr char kConditions[] = "scheduler_dra_bindingconditions_allocations_total";
  EXPECT_EQ(Value(StrCat(kConditions, R"({status="success"})")), "2");
  EXPECT_EQ(Value(StrCat(kConditions, R"({status="failure"})")), "1");
}

TEST_F(SchedulerMetricsTest, DurationsAreKeptPerLabel) {
  for (int i = 0; i < 2; ++i) {
    metrics_.ObservePoint("Filter", "Success", seconds(1));
    metrics_.ObservePlugin("A", "Filter", "Success", seconds(1));
    metrics_.ObserveDraPreBind("success", true, seconds(1));
    metrics_.ObserveConditionWait("d.example.com", "success", seconds(1));
  }
  metrics_.ObservePoint("Filter", "Error", seconds(5));
  metrics_.ObservePoint("Score", "Success", seconds(6));
  constexpr char kPoint[] = "scheduler_framework_extension_point_duration_seconds";
  EXPECT_EQ(Seen(kPoint, R"({extension_point="Filter",profile="p",status="Success"})"), "2/2");
  EXPECT_EQ(Seen(kPoint, R"({extension_point="Filter",profile="p",status="Error"})"), "1/5");
  EXPECT_EQ(Seen(kPoint, R"({extension_point="Score",profile="p",status="Success"})"), "1/6");
  metrics_.ObservePlugin("B", "Filter", "Success", seconds(5));
  metrics_.ObservePlugin("A", "Score", "Success", seconds(6));
  metrics_.ObservePlugin("A", "Filter", "Error", seconds(7));
  constexpr char kPlugin[] = "scheduler_plugin_execution_duration_seconds";
  EXPECT_EQ(Seen(kPlugin, R"({extension_point="Filter",plugin="A",status="Success"})"), "2/2");
  EXPECT_EQ(Seen(kPlugin, R"({extension_point="Filter",plugin="B",status="Success"})"), "1/5");
  EXPECT_EQ(Seen(kPlugin, R"({extension_point="Score",plugin="A",status="Success"})"), "1/6");
  EXPECT_EQ(Seen(kPlugin, R"({extension_point="Filter",plugin="A",status="Error"})"), "1/7");
  metrics_.ObserveDraPreBind("success", false, seconds(5));
  metrics_.ObserveDraPreBind("timeout", true, seconds(6));
  constexpr char kPreBind[] = "scheduler_dra_bindingconditions_prebind_duration_seconds";
  EXPECT_EQ(Seen(kPreBind, R"({requires_bindingconditions="true",status="success"})"), "2/2");
  EXPECT_EQ(Seen(kPreBind, R"({requires_bindingconditions="false",status="success"})"), "1/5");
  EXPECT_EQ(Seen(kPreBind, R"({requires_bindingconditions="true",status="timeout"})"), "1/6");
  metrics_.ObserveConditionWait("e.example.com", "success", seconds(5));
  metrics_.ObserveConditionWait("d.example.com", "timeout", seconds(6));
  constexpr char kWait[] = "scheduler_dra_bindingconditions_wait_duration_seconds";
  EXPECT_EQ(Seen(kWait, R"({driver="d.example.com",profile="p",status="success"})"), "2/2");
  EXPECT_EQ(Seen(kWait, R"({driver="e.example.com",profile="p",status="success"})"), "1/5");
  EXPECT_EQ(Seen(kWait, R"({driver="d.example.com",profile="p",status="timeout"})"), "1/6");
}

}  // namespace
}  // namespace drakkar::scheduler
