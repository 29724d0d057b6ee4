#include "sdk/driver/reference/device_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drakkar::driver {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(std::string_view yaml) {
  auto config = ParseDeviceConfig(yaml);
  return config.ok() ? "" : config.error().message;
}

TEST(DeviceConfig, AnEmptyFileMeansFourDevices) {
  for (const char* text : {"", "# nothing\n", "{}"}) {
    auto config = ParseDeviceConfig(text);
    ASSERT_TRUE(config.ok()) << config.error().message;
    ASSERT_EQ(config->devices.size(), 4u);
    EXPECT_EQ(config->devices[0].device.name, "sim-0");
    EXPECT_EQ(config->driver_name, "sim.drakkar.io");
  }
}

TEST(DeviceConfig, ReadsAttributesOfEveryType) {
  auto config = ParseDeviceConfig(
      "count: 1\n"
      "attributes:\n"
      "  text: a b\n"
      "  number: 7\n"
      "  truth: true\n"
      "  example.com/version: {version: 1.2.3}\n"
      "  forced: {string: \"7\"}\n"
      "  numbers: {ints: [1, 2]}\n"
      "  truths: {bools: [true, false]}\n"
      "  texts: {strings: [a]}\n"
      "  versions: {versions: [1.0.0, 2.0.0]}\n");
  ASSERT_TRUE(config.ok()) << config.error().message;
  const auto& attributes = config->devices[0].device.attributes;
  EXPECT_EQ(attributes.at("text"), AttributeValue(std::string("a b")));
  EXPECT_EQ(attributes.at("number"), AttributeValue(std::int64_t{7}));
  EXPECT_EQ(attributes.at("truth"), AttributeValue(true));
  EXPECT_EQ(attributes.at("example.com/version"), AttributeValue(Version{"1.2.3"}));
  EXPECT_EQ(attributes.at("forced"), AttributeValue(std::string("7")));
  EXPECT_EQ(attributes.at("numbers"), AttributeValue(std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(attributes.at("truths"), AttributeValue(std::vector<bool>{true, false}));
  EXPECT_EQ(attributes.at("texts"), AttributeValue(std::vector<std::string>{"a"}));
  EXPECT_EQ(attributes.at("versions"), AttributeValue(std::vector<Version>{{"1.0.0"}, {"2.0.0"}}));
}

TEST(DeviceConfig, NamesOfAttributesAreIdentifiers) {
  const auto name = [](const std::string& text) {
    return ErrorOf("count: 1\nattributes: {\"" + text + "\": 1}\n");
  };
  for (const std::string& good : {std::string("a"), std::string("_"), std::string("aA0zZ9_"),
                                  std::string(32, 'a'), std::string("example.com/x9")}) {
    EXPECT_EQ(name(good), "") << good;
  }
  for (const std::string& bad : {std::string("0a"), std::string("a/"), std::string("a:b"),
                                 std::string("a@b"), std::string("a[b"), std::string("a`b"),
                                 std::string("a{b"), std::string("a-b"), std::string(33, 'a')}) {
    EXPECT_THAT(name(bad), HasSubstr("a name must start with a letter or _")) << bad;
  }
  EXPECT_THAT(name("Not_Dns/x"), HasSubstr("must be a DNS name"));
}

TEST(DeviceConfig, ASecondDocumentIsRefusedWithItsLine) {
  EXPECT_THAT(ErrorOf("count: 1\n---\ncount: 2\n"), HasSubstr("line 2"));
  EXPECT_THAT(ErrorOf("# text\n\n---\ncount: 1\n---\ncount: 2\n"), HasSubstr("line 5"));
}

TEST(DeviceConfig, SkippedOperationsAreABooleanOrAList) {
  EXPECT_EQ(ParseDeviceConfig("skipNodeOperations: true\n")->skip_node_operations,
            std::vector<std::string>{"*"});
  EXPECT_TRUE(ParseDeviceConfig("skipNodeOperations: false\n")->skip_node_operations.empty());
  EXPECT_EQ(
      ParseDeviceConfig("skipNodeOperations: [NodeUnprepareResources]\n")->skip_node_operations,
      std::vector<std::string>{"NodeUnprepareResources"});
  EXPECT_EQ(ErrorOf("skipNodeOperations: [NodePrepareResources]\n"), "");
  EXPECT_NE(ErrorOf("skipNodeOperations: [Something]\n"), "");
}

TEST(DeviceConfig, SingleDevicesExtendAndOverrideTheCommonFields) {
  auto config = ParseDeviceConfig(
      "count: 2\n"
      "attributes: {model: a, kept: 1}\n"
      "taints: [{key: k, effect: NoSchedule}]\n"
      "bindingConditions: [example.com/attached]\n"
      "bindsToNode: true\n"
      "skipNodeOperations: ['*']\n"
      "devices:\n"
      "  - {name: sim-1, attributes: {model: b}, taints: [], health: Unhealthy}\n"
      "  - {name: extra, bindingConditions: []}\n");
  ASSERT_TRUE(config.ok()) << config.error().message;
  ASSERT_EQ(config->devices.size(), 3u);
  EXPECT_EQ(config->skip_node_operations, std::vector<std::string>{"*"});
  const SimulatedDevice& changed = config->devices[1];
  EXPECT_EQ(changed.device.attributes.at("model"), AttributeValue(std::string("b")));
  EXPECT_EQ(changed.device.attributes.at("kept"), AttributeValue(std::int64_t{1}));
  EXPECT_TRUE(changed.device.taints.empty());
  EXPECT_EQ(changed.health, "Unhealthy");
  EXPECT_EQ(config->devices[0].device.taints.size(), 1u);
  EXPECT_TRUE(config->devices[0].device.binds_to_node);
  EXPECT_EQ(config->devices[2].device.name, "extra");
  EXPECT_TRUE(config->devices[2].device.binding_conditions.empty());
  EXPECT_EQ(config->devices[2].device.taints.size(), 1u);
}

struct BadFile {
  const char* text;
  const char* problem;
  const char* position;
};

TEST(DeviceConfig, ErrorsIncludeFieldAndPosition) {
  const BadFile cases[] = {
      {"count: many\n", "count: must be an integer", "line 1, column 1"},
      {"count: -1\n", "between 0 and 10000", "line 1, column 1"},
      {"counts: 4\n", "counts: is not a known field", "line 1, column 1"},
      {"count: 4\ncount: 5\n", "already set", "line 2, column 1"},
      {"- a\n", "must be a map", "line 1, column 1"},
      {"driver: Not_A_Name\n", "driver: ", "line 1, column 1"},
      {"driver: 4ever.example.com\n", "driver: ", "line 1, column 1"},
      {"namePrefix: UP\n", "namePrefix: ", "line 1, column 1"},
      {"attributes:\n  model: {version: one}\n", "semantic version", "line 2, column 11"},
      {"attributes:\n  model: 1.5\n", "attributes.model: must be a string", "line 2, column 3"},
      {"attributes:\n  model: {ints: [1, a]}\n", "the attribute's type", "line 2, column 11"},
      {"attributes:\n  mo-del: x\n", "a name must start with", "line 2, column 3"},
      {"capacity:\n  memory: lots\n", "a quantity such as 16Gi", "line 2, column 3"},
      {"taints:\n  - {key: k, effect: Sometimes}\n", "taints[0].effect: must be NoSchedule",
       "line 2, column 14"},
      {"taints:\n  - {effect: None}\n", "taints[0].key", "line 2, column 5"},
      {"devices:\n  - name: a\n  - name: a\n", "is listed twice", "line 3, column 5"},
      {"devices:\n  - name: a\n    colour: red\n", "devices[0].colour: is not a known field",
       "line 3, column 5"},
      {"devices:\n  - attributes: {}\n", "devices[0].name", "line 2, column 5"},
      {"devices:\n  - {name: a, health: Ill}\n", "must be Healthy", "line 2, column 15"},
      {"skipNodeOperations: yes please\n", "must be true, false or a list of operations",
       "line 1, column 1"},
      {"skipNodeOperations: [Everything]\n", "\"Everything\" must be one of", "line 1, column 1"},
      {"devices:\n  - name: a\n    bindingConditions: ['no name']\n", "\"no name\" must be a name",
       "line 3, column 5"},
      {"attributes:\n  a: 12345678901234567890123456789012345678901234567890123456789012345x\n",
       "must not exceed 64 bytes", "line 2, column 3"},
      {"attributes:\n  a23456789012345678901234567890123: x\n", "at most 32 characters",
       "line 2, column 3"},
      {"attributes:\n  4you: x\n", "a name must start with", "line 2, column 3"},
      {"attributes:\n  Not_A_Name/a: x\n", "must be a DNS name", "line 2, column 3"},
      {"attributes:\n  example.com/: x\n", "a name must start with", "line 2, column 3"},
      {"a: [\n", "", "line "},
      {"count: 1\n---\ncount: 2\n", "one document", "line 2, column 1"},
  };
  for (const BadFile& each : cases) {
    const std::string error = ErrorOf(each.text);
    EXPECT_THAT(error, HasSubstr(each.problem)) << each.text;
    EXPECT_THAT(error, HasSubstr(each.position)) << each.text;
  }
}

}  // namespace
}  // namespace drakkar::driver
