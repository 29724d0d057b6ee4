// What the NodeDeclaredFeatures plugin costs: one attempt over many nodes, and pods scheduled through
// an API server with the plugin on and off, in turns so that both see the same machine.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "api/json/reader.h"
#include "base/result/check.h"
#include "base/text/text.h"
#include "features/catalog/catalog.h"
#include "scheduler/plugins/node_declared_features/node_declared_features.h"
#include "scheduler/testing/cluster.h"

namespace drakkar::scheduler {
namespace {

api::ObjectPtr Parse(std::string_view json) {
  return std::make_shared<const api::Object>(api::ParseJson(json).value());
}

constexpr std::string_view kNeedsFeature =
    R"({"metadata":{"name":"p","uid":"u"},"spec":{"containers":[{"name":"c","restartPolicyRules":[
    {"action":"RestartAllContainers"}]}]}})";

// PreFilter and Filter of a pod that needs a feature; half of the nodes declare it.
void FilterAttempt(benchmark::State& state) {
  NodeTable nodes;
  device::AllocatedState allocated;
  ClaimCache claims{allocated};
  NodeDeclaredFeatures plugin({.nodes = nodes,
                               .claims = claims,
                               .framework = features::DefaultFramework(),
                               .version = features::VersionOf(kOurVersion)});
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    nodes.SetNode(Parse(StrCat(R"({"metadata":{"name":"n)", i, R"("},"status":{"declaredFeatures":[)",
                               i % 2 == 0 ? R"("RestartAllContainersOnContainerExits")" : "", "]}}")));
  }
  const PodInfoPtr pod = MakePodInfo(Parse(kNeedsFeature));
  for (auto _ : state) {
    Cycle cycle;
    cycle.pod = pod;
    NodeSet left = nodes.known();
    CHECK(plugin.PreFilter(cycle).ok());
    CHECK(plugin.Filter(cycle, left).ok());
    benchmark::DoNotOptimize(left);
  }
  state.counters["per_node"] = benchmark::Counter(
      static_cast<double>(state.range(0)),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(FilterAttempt)->Arg(5'000)->Arg(100'000)->Name("features.attempt");

double CpuSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// Seconds of CPU to schedule `pods` plain pods over `nodes` nodes, API server included.
double ScheduleOnce(bool on, int nodes, int pods, bool needs_feature) {
  TestCluster cluster(FeatureGates().With(Gate::kNodeDeclaredFeatures, on));
  for (int i = 0; i < nodes; ++i) {
    cluster.Create("Node", StrCat(R"({"metadata":{"name":"n)", i, R"("},"status":{"allocatable":{
      "cpu":"64","memory":"256Gi","pods":"110"},"declaredFeatures":[
      "RestartAllContainersOnContainerExits"]}})"));
  }
  for (int i = 0; i < pods; ++i) {
    cluster.Create("Pod", StrCat(R"({"metadata":{"name":"p)", i, R"("},"spec":{"containers":[{"name":"c",
      "image":"i")", needs_feature ? R"(,"restartPolicy":"Never","restartPolicyRules":[{
      "action":"RestartAllContainers","exitCodes":{"operator":"In","values":[42]}}])" : "", "}]}}"));
  }
  Scheduler scheduler(cluster.SchedulerOptions());
  const double begun = CpuSeconds();
  scheduler.Start();
  cluster.Settle();
  const double took = CpuSeconds() - begun;
  for (int i = 0; i < pods; ++i) CHECK(!cluster.NodeOf(StrCat("p", i)).empty());
  return took;
}

// The median of many runs in turns; `overhead` is what the plugin adds, in percent.
void Throughput(benchmark::State& state) {
  constexpr int kRounds = 15;
  constexpr int kPods = 1'000;
  const auto nodes = static_cast<int>(state.range(0));
  const bool needs_feature = state.range(1) != 0;
  std::vector<double> off, on;
  for (auto _ : state) {
    for (int i = 0; i < kRounds; ++i) {
      off.push_back(ScheduleOnce(false, nodes, kPods, needs_feature));
      on.push_back(ScheduleOnce(true, nodes, kPods, needs_feature));
    }
  }
  const auto median = [](std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  state.counters["off_pods_per_s"] = kPods / median(off);
  state.counters["on_pods_per_s"] = kPods / median(on);
  state.counters["overhead_percent"] = (median(on) / median(off) - 1) * 100;
}
BENCHMARK(Throughput)
    ->Args({500, 0})
    ->Args({500, 1})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond)
    ->Name("features.throughput");

}  // namespace
}  // namespace drakkar::scheduler
