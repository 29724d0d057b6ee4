#include "api/apply/managed_fields.h"

#include <benchmark/benchmark.h>

#include "api/codec/object_reader.h"
#include "api/scheme/scheme.h"
#include "api/testing/bench_pod.h"

namespace drakkar::api {
namespace {

FieldManager Scheduler() {
  FieldManager by;
  by.manager = "kube-scheduler";
  by.subresource = "status";
  by.api_version = "v1";
  by.schema = FindKindByApiVersion("v1", "Pod")->schema;
  by.now = "2025-06-07T08:09:12Z";
  by.reset_fields = R"({"f:spec":{}})";
  return by;
}

void BM_TrackCreate(benchmark::State& state) {
  FieldManager by = Scheduler();
  by.subresource = "";
  by.reset_fields = R"({"f:status":{}})";
  Draft draft(ReadObject(kBenchPod, *by.schema)->tree);
  draft["metadata"].Remove("managedFields");
  const TreePtr pod = draft.Freeze();
  for (auto _ : state) benchmark::DoNotOptimize(TrackUpdate(Value(), pod->root(), by));
}
BENCHMARK(BM_TrackCreate);

void BM_TrackStatusUpdate(benchmark::State& state) {
  const FieldManager by = Scheduler();
  const TreePtr before = ReadObject(kBenchPod, *by.schema)->tree;
  Draft draft(before);
  draft["status"]["phase"] = "Running";
  draft["status"]["podIP"] = "10.0.0.1";
  const TreePtr after = draft.Freeze();
  for (auto _ : state) {
    benchmark::DoNotOptimize(TrackUpdate(before->root(), after->root(), by));
  }
}
BENCHMARK(BM_TrackStatusUpdate);

}  // namespace
}  // namespace drakkar::api
