// What the NodeDeclaredFeatures plugin costs: one attempt over many nodes, and pods scheduled
// through an API server with the plugin on and off, alternating so that both see the same machine.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <set>
#include <vector>

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

// A feature that a pod requires through its hostname.
class Numbered : public features::Feature {
 public:
  explicit Numbered(std::int64_t number) : name_(StrCat("Bench", number)) {}
  std::string_view Name() const override { return name_; }
  features::FeatureRequirements Requirements() const override {
    return {.enabled_feature_gates = {"Gate"}, .static_configuration = {}, .runtime_features = {}};
  }
  features::NeededBecauseOf InferForScheduling(const features::PodInfo& pod) const override {
    if (pod.spec["hostname"].str() != name_) return std::nullopt;
    return "spec.hostname";
  }

 private:
  std::string name_;
};

features::Framework FrameworkOfSize(std::int64_t size) {
  features::FeatureList list;
  for (std::int64_t i = 0; i < size; ++i) list.push_back(std::make_unique<Numbered>(i));
  return features::Framework(features::Registry::Create(std::move(list)).value());
}

// PreFilter and Filter for a pod that needs one of the registered features. Half of the nodes
// declare it; `declarations` is the number of distinct declarations.
void FilterAttempt(benchmark::State& state) {
  const std::int64_t features = state.range(0), count = state.range(1),
                     declarations = state.range(2);
  NodeTable nodes;
  device::AllocatedState allocated;
  ClaimCache claims{allocated};
  NodeDeclaredFeatures plugin({.nodes = nodes,
                               .claims = claims,
                               .framework = FrameworkOfSize(features),
                               .version = features::VersionOf(kOurVersion)});
  for (std::int64_t i = 0; i < count; ++i) {
    std::set<std::string> names;
    const std::int64_t number = i % declarations;
    for (std::int64_t f = 0; f < features; ++f) {
      if (f < 17 ? (number >> f & 1) != 0 : f % 2 == 0) names.insert(StrCat("Bench", f));
    }
    std::string list;
    for (const std::string& name : names) list += StrCat(list.empty() ? "" : ",", Quote(name));
    nodes.SetNode(Parse(StrCat(R"({"metadata":{"name":"n)", i,
                               R"("},"status":{"declaredFeatures":[)", list, "]}}")));
  }
  const PodInfoPtr pod = MakePodInfo(Parse(
      R"({"metadata":{"name":"p","uid":"u"},"spec":{"hostname":"Bench0","containers":[{"name":"c"}]}})"));
  const auto attempt = [&] {
    Cycle cycle;
    cycle.pod = pod;
    NodeSet left = nodes.known();
    CHECK(plugin.PreFilter(cycle).ok());
    CHECK(plugin.Filter(cycle, left).ok());
    benchmark::DoNotOptimize(left);
  };
  attempt();  // applies the nodes' declarations once
  for (auto _ : state) attempt();
  state.counters["per_node"] =
      benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
  state.counters["groups"] = static_cast<double>(plugin.group_count());
}
// Two declarations, as in a cluster during an upgrade; and one for nearly every node, the worst
// case.
BENCHMARK(FilterAttempt)
    ->ArgsProduct({{5, 20, 40, 100}, {5'000, 100'000}, {2}})
    ->ArgsProduct({{100}, {5'000, 100'000}, {100'000}})
    ->Name("features.attempt");

double CpuSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// CPU seconds to schedule `pods` pods over `nodes` nodes, API server included.
double ScheduleOnce(bool on, int nodes, int pods, bool needs_feature) {
  TestCluster cluster(FeatureGates().With(Gate::kNodeDeclaredFeatures, on));
  for (int i = 0; i < nodes; ++i) {
    cluster.Create("Node", StrCat(R"({"metadata":{"name":"n)", i, R"("},"status":{"allocatable":{
      "cpu":"64","memory":"256Gi","pods":"110"},"declaredFeatures":[
      "RestartAllContainersOnContainerExits"]}})"));
  }
  for (int i = 0; i < pods; ++i) {
    cluster.Create("Pod",
                   StrCat(R"({"metadata":{"name":"p)", i, R"("},"spec":{"containers":[{"name":"c",
      "image":"i")",
                          needs_feature ? R"(,"restartPolicy":"Never","restartPolicyRules":[{
      "action":"RestartAllContainers","exitCodes":{"operator":"In","values":[42]}}])"
                                        : "",
                          "}]}}"));
  }
  Scheduler scheduler(cluster.SchedulerOptions());
  const double begun = CpuSeconds();
  scheduler.Start();
  cluster.Settle();
  const double took = CpuSeconds() - begun;
  for (int i = 0; i < pods; ++i) CHECK(!cluster.NodeOf(StrCat("p", i)).empty());
  // Check that the measured code really ran.
  const bool filtered =
      cluster.metrics().Text().find(
          R"(extension_point="Filter",plugin="NodeDeclaredFeatures",status="Success")") !=
      std::string::npos;
  CHECK(filtered == (on && needs_feature));
  return took;
}

// The overhead of the plugin in percent: the median over pairs of adjacent runs, because the speed
// of the machine varies over time.
void Throughput(benchmark::State& state) {
  constexpr int kRounds = 41;
  constexpr int kPods = 3'000;
  const auto nodes = static_cast<int>(state.range(0));
  const bool needs_feature = state.range(1) != 0;
  std::vector<double> off, on, ratios;
  for (auto _ : state) {
    for (int i = 0; i < kRounds; ++i) {
      const bool on_first = i % 2 == 1;
      const double first = ScheduleOnce(on_first, nodes, kPods, needs_feature);
      const double second = ScheduleOnce(!on_first, nodes, kPods, needs_feature);
      on.push_back(on_first ? first : second);
      off.push_back(on_first ? second : first);
      ratios.push_back(on.back() / off.back());
    }
  }
  const auto median = [](std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  state.counters["off_pods_per_s"] = kPods / median(off);
  state.counters["on_pods_per_s"] = kPods / median(on);
  state.counters["overhead_percent"] = (median(ratios) - 1) * 100;
}
BENCHMARK(Throughput)
    ->Args({500, 0})
    ->Args({500, 1})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond)
    ->Name("features.throughput");

}  // namespace
}  // namespace drakkar::scheduler
