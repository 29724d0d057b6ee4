#include <benchmark/benchmark.h>

#include "apiserver/auth/bootstrap_policy.h"
#include "apiserver/auth/rbac.h"
#include "base/testing/seeded_loop.h"
#include "features/gates/feature_gates.h"
#include "storage/memory/memory_store.h"

namespace drakkar::apiserver {
namespace {

// What a request of the scheduler pays for authorization under the default policy.
void SchedulerCheck(benchmark::State& state) {
  SeededLoop loop;
  storage::MemoryDisk disk;
  FeatureGates gates;
  auto store = storage::OpenMemoryStore(loop, disk);
  Core core({.loop = loop, .random = loop.random(), .store = *store, .gates = gates});
  core.Start([](Result<void>) {});
  loop.RunUntilIdle();
  EnsureBootstrapPolicy(core, [](Result<void>) {});
  loop.RunUntilIdle();
  RbacAuthorizer rbac;
  rbac.Attach(core);
  const UserInfo user{.name = "system:kube-scheduler", .groups = {"system:authenticated"}};
  for (auto _ : state) {
    benchmark::DoNotOptimize(rbac.Check(
        {user, "update", "resource.k8s.io", "resourceclaims", "status", "default", "claim", ""}));
  }
}
BENCHMARK(SchedulerCheck);

}  // namespace
}  // namespace drakkar::apiserver
