#include "device/cel_expressions.h"

#include <gtest/gtest.h>

namespace drakkar::device {
namespace {

Device SomeDevice() {
  Device device;
  device.name = "dev";
  device.attributes = {{"driverVersion", VersionText{"1.2.3"}}, {"model", std::string("x")}};
  device.capacity.push_back({"memory", *api::Quantity::Parse("2Gi"), {}});
  return device;
}

TEST(CelExpressions, ReturnAnAnswerAndTheAttributesTheyRead) {
  CelExpressions expressions;
  const auto expression = expressions.CompileSelector(
      "device.attributes[\"d.example\"].driverVersion.major() >= 1 && "
      "device.capacity[\"d.example\"].memory.isGreaterThan(quantity(\"1Mi\"))");
  ASSERT_FALSE(expression->compile_error().has_value()) << *expression->compile_error();
  EXPECT_FALSE(expression->reads().everything);
  EXPECT_EQ(expression->reads().attributes, std::vector<std::string>{"d.example/driverVersion"});
  EXPECT_TRUE(*expression->Matches("d.example", SomeDevice()));
}

TEST(CelExpressions, FailAsCelSpecifies) {
  CelExpressions expressions;
  EXPECT_TRUE(expressions.CompileSelector("noSuchVar")->compile_error().has_value());
  const auto missing = expressions.CompileSelector("device.attributes[\"d.example\"].absent == 1");
  EXPECT_EQ(missing->Matches("d.example", SomeDevice()).error().message, "no such key: absent");
  Device broken = SomeDevice();
  broken.attributes[1].value = std::monostate();
  EXPECT_EQ(expressions.CompileSelector("true")->Matches("d.example", broken).error().message,
            "attribute model: unsupported attribute value");
}

TEST(CelExpressions, ReadEverythingWhereAWholeDomainIsRead) {
  CelExpressions expressions;
  const auto reads = [&](std::string_view text) {
    return expressions.CompileSelector(text)->reads().everything;
  };
  EXPECT_TRUE(reads("device.attributes.exists(d, true)"));
  EXPECT_TRUE(reads("cel.bind(a, device.attributes['d.example'], a.x == a.y)"));
  EXPECT_FALSE(reads("device.attributes['d.example'].model == 'x'"));
}

TEST(CelExpressions, NameEveryAttributeTheyRead) {
  CelExpressions expressions;
  const auto expression = expressions.CompileSelector(
      "device.attributes['d.example'].model == 'x' || device.attributes['e.example'].size == 1");
  EXPECT_EQ(expression->reads().attributes,
            (std::vector<std::string>{"d.example/model", "e.example/size"}));
}

TEST(CelExpressions, SeeWhetherADeviceCanBeShared) {
  CelExpressions expressions;
  const auto shared = expressions.CompileSelector("device.allowMultipleAllocations");
  Device device = SomeDevice();
  EXPECT_FALSE(*shared->Matches("d.example", device));
  device.allow_multiple_allocations = true;
  EXPECT_TRUE(*shared->Matches("d.example", device));
}

TEST(CelExpressions, DeriveValues) {
  CelExpressions expressions;
  const auto derived = expressions.CompileDerived("device.attributes[\"d.example\"].model + \"y\"");
  EXPECT_EQ(*derived->Derive("d.example", SomeDevice()), AttributeValue(std::string("xy")));
  EXPECT_EQ(derived->Derive("other.example", SomeDevice()).error().message, "no such key: model");
  EXPECT_TRUE(expressions.CompileDerived("1u")->compile_error().has_value());
}

}  // namespace
}  // namespace drakkar::device
