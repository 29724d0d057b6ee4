// How long a pod takes to start with the embedded runtime: sandbox, and one busybox container
// created and started.
#include <cstdio>

#include "base/env/clock.h"
#include "benchmark/benchmark.h"
#include "node/runtime/testing/runtime_harness.h"

namespace drakkar::node {
namespace {

void BM_PodStart(benchmark::State& state) {
  std::string why;
  auto harness = MakeOciHarness(why);
  if (!harness) {
    state.SkipWithError(why.c_str());
    return;
  }
  // Measured on the loop, so that the harness's polling does not count.
  struct Times {
    MonotonicTime begin, sandbox, created, started;
    std::string id;
    bool done = false;
  };
  double sandbox_ms = 0, create_ms = 0, start_ms = 0;
  int number = 0;
  const Clock& clock = RealClock();
  for (auto _ : state) {
    auto times = std::make_shared<Times>();
    auto sandbox_config = harness->SandboxConfig("bench" + std::to_string(number++));
    auto config = harness->ConfigFor(RuntimeHarness::Program::kRunsUntilStopped);
    harness->OnLoop([&](Runtime& runtime) {
      times->begin = clock.Monotonic();
      runtime.RunPodSandbox(sandbox_config, [&, times, config](Result<std::string> sandbox) {
        times->sandbox = clock.Monotonic();
        times->id = *sandbox;
        runtime.CreateContainer(*sandbox, config, [&, times](Result<std::string> id) {
          times->created = clock.Monotonic();
          runtime.StartContainer(*id, [&, times](Result<void> started) {
            if (!started.ok()) std::fprintf(stderr, "%s\n", started.error().message.c_str());
            times->started = clock.Monotonic();
            times->done = true;
          });
        });
      });
    });
    if (!harness->WaitUntil([times] { return times->done; })) state.SkipWithError("no answer");
    auto ms = [](Duration duration) { return static_cast<double>(duration.count()) / 1e6; };
    sandbox_ms += ms(times->sandbox - times->begin);
    create_ms += ms(times->created - times->sandbox);
    start_ms += ms(times->started - times->created);
    state.SetIterationTime(ms(times->started - times->begin) / 1e3);
    static_cast<void>(Await<void>(*harness, [&](Runtime& runtime, RuntimeCallback<void> done) {
                        runtime.RemovePodSandbox(times->id, std::move(done));
                      }).ok());
  }
  const auto count = static_cast<double>(state.iterations());
  state.counters["sandbox_ms"] = sandbox_ms / count;
  state.counters["create_ms"] = create_ms / count;
  state.counters["start_ms"] = start_ms / count;
}
BENCHMARK(BM_PodStart)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(40);

}  // namespace
}  // namespace drakkar::node
