#include "api/metadata/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drakkar::metadata {
namespace {

using ::testing::HasSubstr;

Device Valid() {
  Device device;
  device.driver = "gpu.example.com";
  device.pool = "node-1/gpus";
  device.name = "gpu-0";
  return device;
}

std::string ProblemWith(std::string name, AttributeValue value) {
  Device device = Valid();
  device.attributes[std::move(name)] = std::move(value);
  const auto checked = ValidateDevice(device);
  return checked.ok() ? "" : checked.error().message;
}

std::string ProblemWith(NetworkDeviceData data) {
  Device device = Valid();
  device.network_data = std::move(data);
  const auto checked = ValidateDevice(device);
  return checked.ok() ? "" : checked.error().message;
}

TEST(MetadataValidation, TakesAttributesOfEveryType) {
  Device device = Valid();
  device.attributes = {{"model", std::string("x")},
                       {"resource.kubernetes.io/pciBusID", std::string("0000:00:01.0")},
                       {"resource.k8s.io/pciBusID", std::string("0000:00:01.0")},
                       {"index", std::int64_t{-1}},
                       {"ok", true},
                       {"driverVersion", Version{"1.0.0-rc.1+b"}},
                       {"ints", std::vector<std::int64_t>{1}},
                       {"bools", std::vector<bool>{false}},
                       {"strings", std::vector<std::string>{""}},
                       {"versions", std::vector<Version>{{"2.0.0"}}}};
  EXPECT_TRUE(ValidateDevice(device).ok());
}

TEST(MetadataValidation, NamesTheAttributeThatTheApiWouldNotTake) {
  EXPECT_EQ(ProblemWith("model", std::string(65, 'x')),
            "metadata of device node-1/gpus/gpu-0: attribute \"model\": must not have more than 64 "
            "bytes");
  EXPECT_THAT(ProblemWith("driverVersion", Version{"1.0"}), HasSubstr("semantic version"));
  EXPECT_THAT(ProblemWith("versions", std::vector<Version>{{"1.0.0"}, {"v2"}}),
              HasSubstr("not \"v2\""));
  EXPECT_THAT(ProblemWith("ints", std::vector<std::int64_t>{}), HasSubstr("at least one value"));
  EXPECT_THAT(ProblemWith("model", std::string("\xff")), HasSubstr("must be UTF-8"));
  for (const char* name : {"", "9lives", "a-b", "a/b/c", "Bad_Domain/x", "/x", "x/"}) {
    EXPECT_THAT(ProblemWith(name, true), HasSubstr("attribute")) << name;
  }
  EXPECT_THAT(ProblemWith(std::string(33, 'a'), true), HasSubstr("at most 32 bytes"));
}

TEST(MetadataValidation, BoundsTheNumberOfAttributesAndValues) {
  Device device = Valid();
  for (int i = 0; i < 32; ++i) device.attributes["a" + std::to_string(i)] = true;
  EXPECT_TRUE(ValidateDevice(device).ok());
  device.attributes["one_more"] = true;
  EXPECT_THAT(ValidateDevice(device).error().message, HasSubstr("at most 32 attributes"));
  EXPECT_THAT(ProblemWith("ints", std::vector<std::int64_t>(49)), HasSubstr("at most 48"));
}

TEST(MetadataValidation, BoundsNetworkData) {
  EXPECT_EQ(ProblemWith({"eth0", {"10.0.0.5/24"}, "aa:bb"}), "");
  EXPECT_EQ(ProblemWith(NetworkDeviceData()), "");
  EXPECT_THAT(ProblemWith({std::string(257, 'e'), {}, ""}), HasSubstr("256 bytes"));
  EXPECT_THAT(ProblemWith({"", {}, std::string(129, 'a')}), HasSubstr("128 bytes"));
  EXPECT_THAT(ProblemWith({"", {"10.0.0.5"}, ""}), HasSubstr("CIDR"));
  EXPECT_THAT(ProblemWith({"", {"nonsense/24"}, ""}),
              HasSubstr("must be a valid address in CIDR form"));
  EXPECT_THAT(ProblemWith({"", {"10.0.0.05/24"}, ""}), HasSubstr("canonical form"));
  EXPECT_THAT(ProblemWith({"", {"10.0.0.5/24", "10.0.0.5/24"}, ""}), HasSubstr("is listed twice"));
  std::vector<std::string> many;
  for (int i = 0; i < 17; ++i) many.push_back("10.0.0." + std::to_string(i) + "/24");
  EXPECT_THAT(ProblemWith({"", many, ""}), HasSubstr("at most 16"));
}

TEST(MetadataValidation, DevicesNeedNames) {
  Device device = Valid();
  device.name = "Upper";
  EXPECT_THAT(ValidateDevice(device).error().message, HasSubstr("name: Invalid value: \"Upper\""));
  device = Valid();
  device.pool = "a//b";
  EXPECT_THAT(ValidateDevice(device).error().message, HasSubstr("segment 1: must not be empty"));
}

}  // namespace
}  // namespace drakkar::metadata
