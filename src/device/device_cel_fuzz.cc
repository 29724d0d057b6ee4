// Any text, as a selector and as a derived attribute: lexer, parser, checker, planner, estimator
// and evaluator always return an answer, and always the same one.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result/check.h"
#include "device/device_cel.h"

using namespace drakkar::device;  // NOLINT: a fuzz target

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const DeviceCompiler compiler({true, true, 36});
  static const auto device = [] {
    DeviceInput input;
    input.driver = "d";
    input.attributes = {
        {"s", std::string("text")}, {"i", std::int64_t{7}}, {"v", VersionText{"1.2.3"}}};
    input.capacity = {{"m", *drakkar::api::Quantity::Parse("1Gi")}};
    return CelDevice::Create(input);
  }();
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  for (const ExpressionSet set : {ExpressionSet::kNew, ExpressionSet::kStored}) {
    const auto selector = compiler.CompileSelector(source, set);
    CHECK((selector.expression == nullptr) == !selector.failure.message.empty());
    if (!selector.expression) continue;
    const auto estimate = selector.expression->EstimateCost();
    CHECK(estimate.min <= estimate.max);
    drakkar::cel::Evaluator evaluator;
    const auto answer = selector.expression->Matches(**device, evaluator, 10'000);
    CHECK(!answer.error || !answer.matches);
    const auto again = selector.expression->Matches(**device, evaluator, 10'000);
    CHECK(again.matches == answer.matches && again.error == answer.error &&
          again.cost == answer.cost);
  }
  const auto outcome = compiler.CompileDerivedAttribute(source, ExpressionSet::kStored);
  if (!outcome.expression) return 0;
  (void)outcome.expression->EstimateCost();
  drakkar::cel::Evaluator evaluator;
  (void)outcome.expression->Derive(**device, evaluator, 10'000);
  return 0;
}
