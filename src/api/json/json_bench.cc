#include <benchmark/benchmark.h>

#include <string>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/testing/bench_pod.h"

namespace drakkar::api {
namespace {

void BM_ParsePod(benchmark::State& state) {
  const std::string json = kBenchPod;
  for (auto _ : state) benchmark::DoNotOptimize(ParseJson(json));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * json.size()));
}
BENCHMARK(BM_ParsePod);

void BM_WritePod(benchmark::State& state) {
  const TreePtr pod = *ParseJson(kBenchPod);
  for (auto _ : state) benchmark::DoNotOptimize(WriteJson(pod->root()));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * sizeof(kBenchPod)));
}
BENCHMARK(BM_WritePod);

void BM_CopyPod(benchmark::State& state) {
  const TreePtr pod = *ParseJson(kBenchPod);
  for (auto _ : state) benchmark::DoNotOptimize(CopyTree(pod->root()));
}
BENCHMARK(BM_CopyPod);

}  // namespace
}  // namespace drakkar::api
