#include "device/device_cel.h"

#include <gtest/gtest.h>

namespace drakkar::device {
namespace {

DeviceInput Gpu() {
  DeviceInput device;
  device.driver = "gpu.example.com";
  device.attributes = {{"driverVersion", VersionText{"2.1.0"}},
                       {"model", std::string("A100")},
                       {"other.example.com/x", std::int64_t{3}}};
  device.capacity = {{"memory", *api::Quantity::Parse("40Gi")}};
  return device;
}

std::unique_ptr<const DeviceExpression> Selector(std::string_view source) {
  static const DeviceCompiler compiler({true, true, 36});
  DeviceCompiler::Outcome outcome = compiler.CompileSelector(source, ExpressionSet::kStored);
  EXPECT_TRUE(outcome.expression) << outcome.failure.message;
  return std::move(outcome.expression);
}

TEST(DeviceCel, SelectorReadsVersionsAndQuantities) {
  const auto selector =
      Selector(R"(device.attributes["gpu.example.com"].driverVersion.major() >= 1 &&)"
               R"( device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("1Mi")))");
  ASSERT_TRUE(selector);
  const auto device = CelDevice::Create(Gpu());
  ASSERT_TRUE(device.ok());
  cel::Evaluator evaluator;
  EXPECT_TRUE(selector->Matches(**device, evaluator).matches);
}

TEST(DeviceCel, ReadSetNamesExactlyWhatAnExpressionCanSee) {
  const auto selector = Selector(
      R"(device.driver == "x" || device.attributes["a"].b == 1 || device.capacity["c"]["d"] == quantity("1"))");
  ASSERT_TRUE(selector);
  const ReadSet& reads = selector->read_set();
  EXPECT_FALSE(reads.all);
  EXPECT_TRUE(reads.driver);
  EXPECT_FALSE(reads.allow_multiple_allocations);
  ASSERT_EQ(reads.attributes.size(), 1u);
  EXPECT_EQ(reads.attributes[0], (ReadSet::Key{"a", "b"}));
  ASSERT_EQ(reads.capacity.size(), 1u);
  EXPECT_EQ(reads.capacity[0], (ReadSet::Key{"c", "d"}));
}

TEST(DeviceCel, ReadSetIsEverythingWhereKeysAreComputed) {
  EXPECT_TRUE(Selector(R"(device.attributes.exists(d, d == "x"))")->read_set().all);
  EXPECT_TRUE(Selector(R"(device.attributes[device.driver].model == "x")")->read_set().all);
  const auto bound = Selector(R"(cel.bind(a, device.attributes["d"], a.x == 1 && a.y == 2))");
  EXPECT_FALSE(bound->read_set().all);
  EXPECT_EQ(bound->read_set().attribute_domains, std::vector<std::string>{"d"});
}

TEST(DeviceCel, ABadVersionFailsTheDeviceBeforeAnyExpression) {
  DeviceInput device = Gpu();
  device.attributes.emplace_back("broken", VersionText{"1"});
  const auto prepared = CelDevice::Create(device);
  ASSERT_FALSE(prepared.ok());
  EXPECT_EQ(prepared.error().message,
            "attribute broken: parse semantic version: No Major.Minor.Patch elements found");
}

TEST(DeviceCel, TheCostLimitStopsAnEvaluation) {
  const auto selector = Selector("[1,2,3].all(x, [1,2,3].all(y, x + y > 0))");
  const auto device = CelDevice::Create(Gpu());
  cel::Evaluator evaluator;
  const DeviceExpression::Answer answer = selector->Matches(**device, evaluator, 20);
  ASSERT_TRUE(answer.error);
  EXPECT_EQ(*answer.error, "operation cancelled: actual cost limit exceeded");
  EXPECT_EQ(answer.cost, 21u);
}

TEST(DeviceCel, MissingKeysGetAHint) {
  EXPECT_EQ(WithHint("division by zero"), "division by zero");
  EXPECT_EQ(WithHint("no such key: a"),
            "no such key: a. consider using CEL optional chaining (.? followed by orValue()) or "
            "guarding the check with "
            "has() for optional fields");
}

}  // namespace
}  // namespace drakkar::device
