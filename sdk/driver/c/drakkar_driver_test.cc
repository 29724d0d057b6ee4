#include "sdk/driver/c/drakkar_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "sdk/driver/host/driver_flags.h"

namespace {

using ::testing::HasSubstr;

int Prepare(void*, const drakkar_claim*, drakkar_prepare_result*, drakkar_error*) {
  return 0;
}
int Unprepare(void*, const char*, const char*, const char*, drakkar_error*) {
  return 0;
}

TEST(CInterface, RejectsInvalidOptionsWithAMessage) {
  drakkar_error error = {};
  EXPECT_EQ(drakkar_driver_start(nullptr, &error), nullptr);
  EXPECT_THAT(error.message, HasSubstr("options must not be null"));
  drakkar_driver_options options = {};
  options.size = sizeof(options);
  EXPECT_EQ(drakkar_driver_start(&options, &error), nullptr);
  EXPECT_THAT(error.message, HasSubstr("driver_name must not be null"));
  options.driver_name = "c.example.com";
  EXPECT_EQ(drakkar_driver_start(&options, &error), nullptr);
  EXPECT_THAT(error.message, HasSubstr("set prepare and unprepare"));
  options.prepare = Prepare;
  options.unprepare = Unprepare;
  EXPECT_EQ(drakkar_driver_start(&options, &error), nullptr);
  EXPECT_THAT(error.message, HasSubstr("set node_name"));
  options.node_name = "n1";
  options.taint_unhealthy = 1;
  EXPECT_EQ(drakkar_driver_start(&options, &error), nullptr);
  EXPECT_THAT(error.message, HasSubstr("requires health_service"));
  options.taint_unhealthy = 0;
  options.kubeconfig = "/nowhere/kubeconfig";
  EXPECT_EQ(drakkar_driver_start(&options, &error), nullptr);
  EXPECT_THAT(error.message, HasSubstr("/nowhere/kubeconfig"));
  // The error argument is optional.
  EXPECT_EQ(drakkar_driver_start(&options, nullptr), nullptr);
  drakkar_driver_stop(nullptr);
}

TEST(CInterface, AcceptsOptionsOfOlderHeadersButNotOfNewerOnes) {
  drakkar_error error = {};
  struct {
    drakkar_driver_options options = {};
    char behind[64] = {};
  } newer;
  drakkar_driver_options& options = newer.options;
  options.driver_name = "c.example.com";
  // Memory after the older struct does not belong to the library and must not be read.
  options.running_pod_sandbox = reinterpret_cast<decltype(options.running_pod_sandbox)>(1);
  options.size = offsetof(drakkar_driver_options, running_pod_sandbox);
  EXPECT_EQ(drakkar_driver_start(&options, &error), nullptr);
  EXPECT_THAT(error.message, HasSubstr("set prepare and unprepare"));
  options.size = sizeof(newer);
  EXPECT_EQ(drakkar_driver_start(&options, &error), nullptr);
  EXPECT_THAT(error.message, HasSubstr("compiled for a newer library"));
  for (const std::size_t never : {std::size_t{0}, sizeof(options) - 1, sizeof(void*)}) {
    options.size = never;
    EXPECT_EQ(drakkar_driver_start(&options, &error), nullptr);
    EXPECT_THAT(error.message, HasSubstr("options.size must be"));
  }
}

TEST(CInterface, DevicesMustBeAddedBeforeTheyAreDescribed) {
  drakkar_resources* resources = drakkar_resources_new();
  EXPECT_NE(drakkar_resources_set_int(resources, "p", "d", "a", 1), 0);
  EXPECT_EQ(drakkar_resources_add_device(resources, "p", "d"), 0);
  EXPECT_EQ(drakkar_resources_add_device(resources, "p", "d"), 0);
  EXPECT_EQ(drakkar_resources_set_int(resources, "p", "d", "a", 1), 0);
  EXPECT_EQ(drakkar_resources_set_string(resources, "p", "d", "s", "x"), 0);
  EXPECT_EQ(drakkar_resources_set_version(resources, "p", "d", "v", "1.2.3"), 0);
  EXPECT_EQ(drakkar_resources_set_bool(resources, "p", "d", "b", 1), 0);
  EXPECT_EQ(drakkar_resources_set_capacity(resources, "p", "d", "memory", "1Gi"), 0);
  drakkar_error error = {};
  EXPECT_NE(drakkar_resources_set_pci(resources, "p", "d", "nonsense", &error), 0);
  EXPECT_THAT(error.message, HasSubstr("invalid PCI Bus ID format"));
  EXPECT_NE(drakkar_driver_publish(nullptr, resources, &error), 0);
  drakkar_resources_free(resources);
}

// A flag without a C field would be left over.
TEST(CInterface, HasEveryFlagOfCppDrivers) {
  for (const drakkar::driver::DriverFlagInfo& flag : drakkar::driver::DriverFlags{}.Describe()) {
    const std::string value = !flag.default_value.empty()      ? flag.default_value
                              : flag.name == "unhealthy-taint" ? "NoExecute"
                                                               : "x";
    std::string program = "driver", word = "--" + flag.name + "=" + value;
    char* argv[] = {program.data(), word.data(), nullptr};
    int argc = 2;
    drakkar_driver_options options = {};
    drakkar_error error = {};
    EXPECT_EQ(drakkar_driver_parse_flags(&options, &argc, argv, &error), 0) << error.message;
    EXPECT_EQ(argc, 1) << flag.name;
    EXPECT_THAT(drakkar_driver_flags_help(), HasSubstr("--" + flag.name));
  }
}

TEST(CInterface, ASwitchMayHaveAValue) {
  for (const bool on : {true, false}) {
    std::string program = "driver",
                word = on ? "--enable-device-metadata=true" : "--enable-device-metadata=false";
    char* argv[] = {program.data(), word.data(), nullptr};
    int argc = 2;
    drakkar_driver_options options = {};
    options.enable_device_metadata = on ? 0 : 1;
    EXPECT_EQ(drakkar_driver_parse_flags(&options, &argc, argv, nullptr), 0);
    EXPECT_EQ(options.enable_device_metadata, on ? 1 : 0);
  }
}

TEST(CInterface, AConditionNeedsATypeAStatusAndAReason) {
  drakkar_claim_status* status = drakkar_claim_status_new();
  ASSERT_EQ(drakkar_claim_status_add_device(status, "p", "d", nullptr), 0);
  EXPECT_NE(drakkar_claim_status_add_condition(status, nullptr, "True", "Up", nullptr), 0);
  EXPECT_NE(drakkar_claim_status_add_condition(status, "Ready", nullptr, "Up", nullptr), 0);
  EXPECT_NE(drakkar_claim_status_add_condition(status, "Ready", "True", nullptr, nullptr), 0);
  EXPECT_EQ(drakkar_claim_status_add_condition(status, "Ready", "True", "Up", nullptr), 0);
  drakkar_claim_status_free(status);
}

TEST(CInterface, AnInvalidCdiSpecIsNotWritten) {
  drakkar_error error = {};
  const std::string path = ::testing::TempDir() + "/drakkar_c_test_spec.json";
  EXPECT_NE(drakkar_cdi_write_spec(path.c_str(), "{", &error), 0);
  EXPECT_NE(drakkar_cdi_write_spec(path.c_str(),
                                   R"({"cdiVersion":"0.5.0","kind":"x","devices":[]})", &error),
            0);
  EXPECT_NE(std::string(error.message), "");
}

}  // namespace
