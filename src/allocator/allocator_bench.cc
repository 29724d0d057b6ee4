#include <benchmark/benchmark.h>

#include "allocator/allocator.h"
#include "allocator/testing/workload.h"
#include "device/cel_expressions.h"

// Ids as in design.md 6. `alloc.search.*` run without the cache of answers.
namespace drakkar::allocator {
namespace {

using ClaimPtr = std::shared_ptr<const device::Claim>;

constexpr char kSelector[] =
    "device.attributes[\"test-driver.cdi.k8s.io\"].driverVersion.major() >= 1 && "
    "device.capacity[\"test-driver.cdi.k8s.io\"].memory.isGreaterThan(quantity(\"1Mi\"))";

struct Cluster {
  explicit Cluster(int nodes, bool reuse = true, Features features = {})
      : allocator({.inventory = inventory,
                   .allocated = allocated,
                   .compiler = compiler,
                   .random = random,
                   .features = features,
                   .reuse_answers = reuse}) {
    for (int i = 0; i < nodes; ++i) {
      allocator.SetNode({NodeName(i), {{"node-with-dra", "true"}}, {}});
    }
  }
  void AddPerfSlices(int nodes) {
    for (int i = 0; i < nodes; ++i) inventory.SetSlice(PerfSlice(i));
  }
  void Fill(int node) {
    for (int i = 0; i < 10; ++i) {
      allocated.AddExclusive({kTestDriver, NodeName(node), StrCat("basic-device-", i)});
    }
  }
  Problem Prepare(const ClaimPtr& claim) {
    return allocator.Prepare(std::span(&claim, 1), classes);
  }

  device::Inventory inventory;
  device::AllocatedState allocated;
  device::CelExpressions compiler;
  SeededRandom random{1};
  ClassLookup classes = OneClass(PerfClass());
  Allocator allocator;
};

// One claim on one of `nodes`, prepared in each iteration as it is for each pod.
void AllocateOne(benchmark::State& state, int nodes, bool reuse, const char* selector) {
  Cluster cluster(nodes, reuse);
  cluster.AddPerfSlices(nodes);
  const ClaimPtr claim = MakeClaim({ExactRequest("req-0", 1, selector)});
  const std::string node = NodeName(nodes - 1);
  benchmark::DoNotOptimize(cluster.allocator.Allocate(cluster.Prepare(claim), node, {}));
  for (auto _ : state) {
    const Problem problem = cluster.Prepare(claim);
    auto outcome = cluster.allocator.Allocate(problem, node, {});
    benchmark::DoNotOptimize(outcome);
  }
}
BENCHMARK_CAPTURE(AllocateOne, alloc.one, 1, true, "");
BENCHMARK_CAPTURE(AllocateOne, alloc.one.selector, 1, true, kSelector);
BENCHMARK_CAPTURE(AllocateOne, alloc.one5000, 5000, true, "");
BENCHMARK_CAPTURE(AllocateOne, alloc.one5000.selector, 5000, true, kSelector);
BENCHMARK_CAPTURE(AllocateOne, alloc.search.one, 1, false, "");
BENCHMARK_CAPTURE(AllocateOne, alloc.search.one.selector, 1, false, kSelector);
BENCHMARK_CAPTURE(AllocateOne, alloc.search.one5000, 5000, false, "");

// Allocates and frees a claim: the cost of one pod, including bookkeeping.
void AllocateAndFree(benchmark::State& state, int nodes) {
  Cluster cluster(nodes);
  cluster.AddPerfSlices(nodes);
  const ClaimPtr claim = MakeClaim({ExactRequest("req-0", 1)});
  int next = 0;
  Allocator::Verdicts verdicts;
  cluster.allocator.Filter(cluster.Prepare(claim), {}, verdicts);
  for (auto _ : state) {
    const Problem problem = cluster.Prepare(claim);
    cluster.allocator.Filter(problem, {}, verdicts);
    auto outcome = cluster.allocator.Allocate(problem, NodeName(next++ % nodes), {});
    const auto& result = std::get<Allocation>(*outcome).results[0];
    cluster.allocated.Add(result);
    cluster.allocator.Filter(problem, {}, verdicts);
    cluster.allocated.Remove(result);
  }
}
BENCHMARK_CAPTURE(AllocateAndFree, alloc.cycle500, 500);
BENCHMARK_CAPTURE(AllocateAndFree, alloc.cycle5000, 5000);

enum class Load { kAllFit, kAllFull, kLastFits };

// One claim against all nodes.
void FilterNodes(benchmark::State& state, int nodes, Load load, bool reuse) {
  Cluster cluster(nodes, reuse);
  cluster.AddPerfSlices(nodes);
  for (int i = 0; i < nodes; ++i) {
    if (load == Load::kAllFull || (load == Load::kLastFits && i + 1 < nodes)) cluster.Fill(i);
  }
  const ClaimPtr claim = MakeClaim({ExactRequest("req-0", 1)});
  Allocator::Verdicts verdicts;
  cluster.allocator.Filter(cluster.Prepare(claim), {}, verdicts);  // fills the caches
  for (auto _ : state) {
    const Problem problem = cluster.Prepare(claim);
    cluster.allocator.Filter(problem, {}, verdicts);
    benchmark::DoNotOptimize(verdicts.by_node.data());
  }
  state.counters["classes"] = static_cast<double>(verdicts.distinct.size());
}
BENCHMARK_CAPTURE(FilterNodes, alloc.pod500.fit, 500, Load::kAllFit, true);
BENCHMARK_CAPTURE(FilterNodes, alloc.pod500.full, 500, Load::kAllFull, true);
BENCHMARK_CAPTURE(FilterNodes, alloc.pod500.last, 500, Load::kLastFits, true);
BENCHMARK_CAPTURE(FilterNodes, alloc.pod5000.fit, 5000, Load::kAllFit, true);
BENCHMARK_CAPTURE(FilterNodes, alloc.pod5000.full, 5000, Load::kAllFull, true);
BENCHMARK_CAPTURE(FilterNodes, alloc.pod5000.last, 5000, Load::kLastFits, true);
BENCHMARK_CAPTURE(FilterNodes, alloc.search.pod5000.fit, 5000, Load::kAllFit, false);
BENCHMARK_CAPTURE(FilterNodes, alloc.search.pod5000.full, 5000, Load::kAllFull, false);
BENCHMARK_CAPTURE(FilterNodes, alloc.search.pod5000.last, 5000, Load::kLastFits, false);

// Five requests that must share a PCI root. `held` devices of each root are in use.
void MatchFive(benchmark::State& state, int held) {
  Cluster cluster(1, false);
  cluster.AddPerfSlices(1);
  for (int i = 0; i < 2 * held; ++i) {
    cluster.allocated.AddExclusive({kTestDriver, NodeName(0), StrCat("basic-device-", i)});
  }
  std::vector<device::Request> requests;
  for (int i = 0; i < 5; ++i) requests.push_back(ExactRequest(StrCat("req-", i), 1));
  auto claim = MakeClaim(std::move(requests));
  claim->constraints.push_back({{}, "resource.kubernetes.io/pciRoot", {}});
  for (auto _ : state) {
    const Problem problem = cluster.Prepare(claim);
    auto outcome = cluster.allocator.Allocate(problem, NodeName(0), {});
    benchmark::DoNotOptimize(outcome);
  }
}
BENCHMARK_CAPTURE(MatchFive, alloc.search.match5, 0);
BENCHMARK_CAPTURE(MatchFive, alloc.search.match5.impossible, 1);

// Asks for six of five identical devices.
void SixOfFive(benchmark::State& state) {
  Cluster cluster(1, false);
  cluster.inventory.SetSlice(PerfSlice(0, 5));
  std::vector<device::Request> requests;
  for (int i = 0; i < 6; ++i) requests.push_back(ExactRequest(StrCat("req-", i), 1));
  const ClaimPtr claim = MakeClaim(std::move(requests));
  for (auto _ : state) {
    const Problem problem = cluster.Prepare(claim);
    auto outcome = cluster.allocator.Allocate(problem, NodeName(0), {});
    benchmark::DoNotOptimize(outcome);
  }
}
BENCHMARK(SixOfFive)->Name("SixOfFive/alloc.search.six_of_five");

// The partitionable backtracking case of scheduler_perf: `count` devices, each with its own cpu
// counter and a share of one memory counter that fits all but the first. The claim requests all but
// one.
void Backtracking(benchmark::State& state) {
  const int count = static_cast<int>(state.range(0));
  Features features;
  features.partitionable_devices = true;
  Cluster cluster(1, false, features);
  auto counters = PerfSlice(0, 0);
  counters->name = "counters";
  counters->slice_count = 2;
  device::CounterSet& set = counters->shared_counters.emplace_back();
  set.name = "set";
  set.counters.push_back({"memory", Amount(StrCat(10 * (count - 1), "Gi"))});
  auto devices = PerfSlice(0, 0);
  devices->slice_count = 2;
  for (int i = 0; i < count; ++i) {
    set.counters.push_back({StrCat("cpu-", i), Amount("1")});
    device::Device& device = devices->devices.emplace_back();
    device.name = StrCat("device-", i);
    device.consumes_counters.push_back(
        {"set",
         {{StrCat("cpu-", i), Amount("1")}, {"memory", Amount(i == 0 ? "20Gi" : "10Gi")}},
         {}});
  }
  cluster.inventory.SetSlice(counters);
  cluster.inventory.SetSlice(devices);
  const ClaimPtr claim = MakeClaim({ExactRequest("req-0", count - 1)});
  for (auto _ : state) {
    const Problem problem = cluster.Prepare(claim);
    auto outcome = cluster.allocator.Allocate(problem, NodeName(0), {});
    if (!std::holds_alternative<Allocation>(*outcome)) state.SkipWithError("does not fit");
  }
}
BENCHMARK(Backtracking)->Name("Backtracking/alloc.search.backtracking")->Arg(8)->Arg(32);

// Adds the slices of all nodes.
void Publish(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  std::vector<std::shared_ptr<device::Slice>> slices;
  for (int i = 0; i < nodes; ++i) slices.push_back(PerfSlice(i));
  const ClaimPtr claim = MakeClaim({ExactRequest("req-0", 1)});
  for (auto _ : state) {
    Cluster cluster(nodes);
    for (const auto& slice : slices) cluster.inventory.SetSlice(slice);
    Allocator::Verdicts verdicts;
    const Problem problem = cluster.Prepare(claim);
    cluster.allocator.Filter(problem, {}, verdicts);
    benchmark::DoNotOptimize(verdicts.by_node.data());
  }
}
BENCHMARK(Publish)->Name("Publish/alloc.publish")->Arg(5000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace drakkar::allocator
