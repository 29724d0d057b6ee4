#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "api/scheme/scheme.h"
#include "api/tree/key_table.h"

namespace drakkar::api {
namespace {

void FindKeyOfEverySchemaName(benchmark::State& state) {
  std::vector<std::string> names;
  for (const Key& key : SchemaKeys().subspan(1)) names.emplace_back(key.view());
  for (auto _ : state) {
    for (const std::string& name : names) benchmark::DoNotOptimize(FindKey(name));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(names.size()));
}
BENCHMARK(FindKeyOfEverySchemaName);

void FindKeyOfOtherNames(benchmark::State& state) {
  std::vector<std::string> names;
  for (int i = 0; i < 256; ++i) names.push_back("example.com/label-" + std::to_string(i * 7919));
  for (auto _ : state) {
    for (const std::string& name : names) benchmark::DoNotOptimize(FindKey(name));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(names.size()));
}
BENCHMARK(FindKeyOfOtherNames);

void FindEveryFieldOfPodSpec(benchmark::State& state) {
  const StructSchema& spec = *FindStruct("io.k8s.api.core.v1.PodSpec");
  for (auto _ : state) {
    for (const FieldSchema& field : spec.fields) benchmark::DoNotOptimize(spec.Find(*field.key));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(spec.fields.size()));
}
BENCHMARK(FindEveryFieldOfPodSpec);

void FindKindOfPod(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(FindKindByApiVersion("v1", "Pod"));
}
BENCHMARK(FindKindOfPod);

}  // namespace
}  // namespace drakkar::api
