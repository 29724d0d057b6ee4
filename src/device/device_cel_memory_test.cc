#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "device/device_cel.h"

// Counts the allocations of the whole test binary.
namespace {
std::size_t allocations = 0;
}

// Not inlined: a compiler that sees malloc on one side and delete on the other warns.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  std::abort();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace drakkar::device {
namespace {

DeviceInput Gpu() {
  DeviceInput device;
  device.driver = "gpu.example.com";
  device.attributes = {{"driverVersion", VersionText{"2.1.0"}},
                       {"model", std::string("A100")},
                       {"numa", std::int64_t{1}},
                       {"other.example.com/links", std::vector<std::int64_t>{1, 2, 3}}};
  device.capacity = {{"memory", *api::Quantity::Parse("40Gi")}};
  return device;
}

TEST(DeviceCelMemory, EvaluatingAllocatesNothingOnceWarm) {
  const DeviceCompiler compiler({true, true, 36});
  const auto device = CelDevice::Create(Gpu());
  ASSERT_TRUE(device.ok());
  cel::Evaluator evaluator;
  for (
      const std::string_view source : {
          R"(device.attributes["gpu.example.com"].driverVersion.major() >= 1 &&)"
          R"( device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("1Mi")))",
          R"(device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model in ["A100", "H100"])",
          R"(device.attributes["gpu.example.com"].?numa.orValue(0) == 1)",
          R"(device.attributes["other.example.com"].links.exists(x, x > 2))",
          R"(device.attributes["other.example.com"].links.map(x, x * 2).size() == 3)",
          R"(has(device.attributes["gpu.example.com"].model) ? device.attributes["gpu.example.com"].numa < 2 : false)",
          R"(device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("1.0.0")))",
          R"(device.attributes["gpu.example.com"].model.startsWith("A"))",
      }) {
    const auto outcome = compiler.CompileSelector(source, ExpressionSet::kStored);
    ASSERT_TRUE(outcome.expression) << outcome.failure.message;
    const DeviceExpression::Answer warm = outcome.expression->Matches(**device, evaluator);
    EXPECT_TRUE(warm.matches) << source << ": " << warm.error.value_or("");
    const std::size_t before = allocations;
    for (int i = 0; i < 10; ++i) outcome.expression->Matches(**device, evaluator);
    EXPECT_EQ(allocations - before, 0u) << source;
  }
  EXPECT_GT(allocations, 0u);  // proves that the counter works
}

}  // namespace
}  // namespace drakkar::device
