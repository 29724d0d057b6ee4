#include <benchmark/benchmark.h>

#include "device/device_cel.h"

namespace drakkar::device {
namespace {

// id cel.eval: one selector of the workloads on one device.
void CelEval(benchmark::State& state) {
  DeviceInput input;
  input.driver = "test-driver.cdi.k8s.io";
  input.attributes = {{"driverVersion", VersionText{"1.2.3"}},
                      {"dra.example.com/name", std::string("device-0")},
                      {"model", std::string("A100")}};
  input.capacity = {{"memory", *api::Quantity::Parse("2Mi")}};
  const DeviceCompiler compiler({});
  const auto outcome = compiler.CompileSelector(
      R"(device.attributes["test-driver.cdi.k8s.io"].driverVersion.major() >= 1 &&)"
      R"( device.capacity["test-driver.cdi.k8s.io"].memory.isGreaterThan(quantity("1Mi")))",
      ExpressionSet::kStored);
  const auto device = CelDevice::Create(input);
  cel::Evaluator evaluator;
  for (auto _ : state) {
    DeviceExpression::Answer answer = outcome.expression->Matches(**device, evaluator);
    benchmark::DoNotOptimize(answer.matches);
  }
}
BENCHMARK(CelEval)->Name("cel.eval");

void CelCompile(benchmark::State& state) {
  const DeviceCompiler compiler({});
  for (auto _ : state) {
    auto outcome = compiler.CompileSelector(R"(device.attributes["d"].driverVersion.major() >= 1)",
                                            ExpressionSet::kStored);
    benchmark::DoNotOptimize(outcome.expression.get());
  }
}
BENCHMARK(CelCompile)->Name("cel.compile");

}  // namespace
}  // namespace drakkar::device
