// Duration of one attempt, without and with an API server.
#include <benchmark/benchmark.h>

#include <deque>

#include "api/json/reader.h"
#include "base/result/check.h"
#include "base/text/text.h"
#include "scheduler/framework/framework.h"
#include "scheduler/plugins/registry.h"
#include "scheduler/testing/cluster.h"
#include "scheduler/testing/test_context.h"

namespace drakkar::scheduler {
namespace {

api::ObjectPtr Parse(std::string_view json) {
  auto tree = api::ParseJson(json);
  CHECK(tree.ok());
  return std::make_shared<const api::Object>(*tree);
}

// A scheduler without queue and API: `node_count` nodes with 10 devices each, and pods with one
// claim for one device.
class Rig {
 public:
  explicit Rig(int node_count, int pod_count)
      : plugins_(MakePlugins(world_.context)),
        framework_(world_.loop, world_.nodes, plugins_, &world_.metrics) {
    world_.devices.SetClass(Parse(
        R"({"metadata":{"name":"gpu"},"spec":{"selectors":[{"cel":{"expression":"device.driver == \"d.example.com\""}}]}})"));
    for (int i = 0; i < node_count; ++i) {
      const std::string name = StrCat("node-", i);
      const api::ObjectPtr node = Parse(
          StrCat(R"({"metadata":{"name":")", name,
                 R"("},"status":{"allocatable":{"cpu":"64","memory":"256Gi","pods":"110"}}})"));
      world_.AddNode(node);
      std::string list;
      for (int d = 0; d < 10; ++d) {
        list += StrCat(d > 0 ? "," : "", R"({"name":"dev-)", d,
                       R"(","attributes":{"model":{"string":"B60"},"index":{"int":)", d, "}}}");
      }
      world_.devices.SetSlice(Parse(
          StrCat(R"({"metadata":{"name":"slice-)", i, R"("},"spec":{"driver":"d.example.com",)",
                 R"("nodeName":")", name, R"(","pool":{"name":")", name,
                 R"(","generation":1,"resourceSliceCount":1},"devices":[)", list, "]}}")));
    }
    for (int i = 0; i < pod_count; ++i) {
      world_.claims.Observe(Parse(StrCat(
          R"({"metadata":{"namespace":"default","name":"c)", i, R"(","uid":"cu)", i,
          R"(","resourceVersion":"1"},"spec":{"devices":{"requests":[{"name":"req","exactly":{"deviceClassName":"gpu","allocationMode":"ExactCount","count":1}}]}}})")));
      pods_.push_back(MakePodInfo(Parse(StrCat(
          R"({"metadata":{"namespace":"default","name":"p)", i, R"(","uid":"pu)", i,
          R"("},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"100m","memory":"100Mi"}}}],"resourceClaims":[{"name":"r","resourceClaimName":"c)",
          i, R"("}]}})"))));
    }
  }

  std::shared_ptr<Cycle> Place(std::size_t pod) {
    auto cycle = std::make_shared<Cycle>();
    cycle->pod = pods_[pod];
    const Decision decision = framework_.Decide(*cycle, kNoNode);
    if (!decision.status.ok()) return nullptr;
    cycle->node = decision.node;
    cycle->node_name = world_.nodes.name(decision.node);
    world_.placements.Assume(cycle->pod, cycle->node_name);
    const Status reserved = framework_.Reserve(*cycle);
    CHECK(reserved.ok());
    return cycle;
  }
  void TakeBack(Cycle& cycle) {
    framework_.Unreserve(cycle);
    world_.placements.Forget(cycle.pod->uid);
  }

 private:
  TestContext world_;
  Plugins plugins_;
  Framework framework_;
  std::vector<PodInfoPtr> pods_;
};

// Places one pod and removes one, with half of the devices in use.
void BM_Cycle(benchmark::State& state) {
  const auto nodes = static_cast<int>(state.range(0));
  const int pods = nodes * 5 + 1;
  Rig rig(nodes, pods);
  std::deque<std::pair<std::size_t, std::shared_ptr<Cycle>>> placed;
  for (std::size_t i = 0; i + 1 < static_cast<std::size_t>(pods); ++i) {
    placed.emplace_back(i, rig.Place(i));
  }
  auto next = static_cast<std::size_t>(pods - 1);
  for (auto _ : state) {
    placed.emplace_back(next, rig.Place(next));
    CHECK(placed.back().second != nullptr);
    next = placed.front().first;
    rig.TakeBack(*placed.front().second);
    placed.pop_front();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Cycle)->Arg(500)->Arg(5000)->Unit(benchmark::kMicrosecond);

// An attempt that fails because all devices are in use.
void BM_FullCluster(benchmark::State& state) {
  const auto nodes = static_cast<int>(state.range(0));
  const int pods = nodes * 10 + 1;
  Rig rig(nodes, pods);
  std::vector<std::shared_ptr<Cycle>> placed;
  for (std::size_t i = 0; i + 1 < static_cast<std::size_t>(pods); ++i) {
    placed.push_back(rig.Place(i));
  }
  for (auto _ : state) CHECK(rig.Place(static_cast<std::size_t>(pods - 1)) == nullptr);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_FullCluster)->Arg(500)->Arg(5000)->Unit(benchmark::kMicrosecond);

// Time until the last of 1,000 pods with one claim each is bound. They are created before the
// scheduler starts. The API server, with an in-memory store, runs on the same thread.
void BM_Burst(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    TestCluster cluster;
    cluster.CreateClass();
    for (int i = 0; i < state.range(0); ++i) {
      cluster.CreateNode(StrCat("n", i));
      cluster.CreateSlice(StrCat("n", i), 10);
    }
    for (int i = 0; i < 1000; ++i) {
      cluster.CreateClaim(StrCat("c", i));
      cluster.CreatePodWithClaims(StrCat("p", i), {StrCat("c", i)});
    }
    Scheduler scheduler(cluster.SchedulerOptions());
    state.ResumeTiming();
    scheduler.Start();
    cluster.Settle();
    state.PauseTiming();
    for (int i = 0; i < 1000; ++i) CHECK(!cluster.NodeOf(StrCat("p", i)).empty());
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(BM_Burst)->Arg(500)->Arg(5000)->Unit(benchmark::kMillisecond)->Iterations(3);

// The work of API server and scheduler from when one pod's binding condition becomes True until
// that pod is bound, while many pods wait for conditions.
void BM_FlipToBind(benchmark::State& state) {
  constexpr int kPerNode = 64;
  TestCluster cluster;
  cluster.CreateClass();
  const int pods = static_cast<int>(state.range(0));
  for (int i = 0; i < (pods + kPerNode - 1) / kPerNode; ++i) {
    cluster.CreateNode(StrCat("n", i));
    cluster.CreateSlice(StrCat("n", i), kPerNode, R"(,"bindingConditions":["a.b/attached"])");
  }
  for (int i = 0; i < pods; ++i) {
    cluster.CreateClaim(StrCat("c", i));
    cluster.CreatePodWithClaims(StrCat("p", i), {StrCat("c", i)});
  }
  cluster.StartScheduler();
  CHECK(cluster.scheduler().counts().waiting_for_conditions == static_cast<std::size_t>(pods));
  int next = 0;
  for (auto _ : state) {
    cluster.SetDeviceCondition(StrCat("c", next), "a.b/attached", "True");
    CHECK(!cluster.NodeOf(StrCat("p", next)).empty());
    ++next;
  }
}
BENCHMARK(BM_FlipToBind)->Arg(1000)->Arg(10000)->Unit(benchmark::kMicrosecond)->Iterations(500);

}  // namespace
}  // namespace drakkar::scheduler
