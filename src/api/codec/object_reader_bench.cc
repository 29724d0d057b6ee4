#include "api/codec/object_reader.h"

#include <benchmark/benchmark.h>

#include <string>

#include "api/scheme/scheme.h"
#include "api/testing/bench_pod.h"

namespace drakkar::api {
namespace {

void BM_ReadPod(benchmark::State& state) {
  const std::string json = kBenchPod;
  const StructSchema& schema = *FindKindByApiVersion("v1", "Pod")->schema;
  for (auto _ : state) benchmark::DoNotOptimize(ReadObject(json, schema));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * json.size()));
}
BENCHMARK(BM_ReadPod);

}  // namespace
}  // namespace drakkar::api
