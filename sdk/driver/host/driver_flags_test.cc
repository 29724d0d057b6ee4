#include "sdk/driver/host/driver_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

namespace drakkar::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DriverFlags, OneCallParsesThemAndLeavesTheDriversOwnArguments) {
  DriverFlags flags{.driver_name = "gpu.example.com"};
  auto rest = flags.Parse({"--node-name", "n1", "--count=3", "run", "--cdi-dir=/x",
                           "--enable-device-metadata", "--", "--node-name", "n2"});
  ASSERT_TRUE(rest.ok()) << rest.error().message;
  EXPECT_THAT(*rest, ElementsAre("--count=3", "run", "--", "--node-name", "n2"));
  EXPECT_EQ(flags.driver_name, "gpu.example.com");
  EXPECT_EQ(flags.node_name, "n1");
  EXPECT_EQ(flags.cdi_directory, "/x");
  EXPECT_TRUE(flags.enable_device_metadata);
}

TEST(DriverFlags, MetadataIsOffUnlessTheFlagSaysSo) {
  DriverFlags flags;
  ASSERT_TRUE(flags.Parse({}).ok());
  EXPECT_FALSE(flags.enable_device_metadata);
  ASSERT_TRUE(flags.Parse({"--enable-device-metadata=true"}).ok());
  EXPECT_TRUE(flags.enable_device_metadata);
  ASSERT_TRUE(flags.Parse({"--enable-device-metadata=false"}).ok());
  EXPECT_FALSE(flags.enable_device_metadata);
}

TEST(DriverFlags, MistakesGetAClearError) {
  DriverFlags flags;
  EXPECT_EQ(flags.Parse({"--node-name"}).error().message, "--node-name needs a value");
  EXPECT_EQ(flags.Parse({"--log-level=loud"}).error().message,
            "--log-level must be debug, info, warning or error, not \"loud\"");
  EXPECT_EQ(flags.Parse({"--logging-format=xml"}).error().message,
            "--logging-format must be text or json, not \"xml\"");
  EXPECT_EQ(flags.Parse({"--enable-device-metadata=maybe"}).error().message,
            "--enable-device-metadata must be true or false, not \"maybe\"");
  EXPECT_EQ(flags.Parse({"--unhealthy-taint=Bad"}).error().message,
            "--unhealthy-taint must be NoSchedule, NoExecute or None, not \"Bad\"");
  EXPECT_EQ(flags.Set("nonsense", "x").error().message, "unknown flag --nonsense");
}

TEST(DriverFlags, EveryValueOfAChoiceIsAccepted) {
  DriverFlags flags;
  for (const char* effect : {"NoSchedule", "NoExecute", "None", ""}) {
    ASSERT_TRUE(flags.Set("unhealthy-taint", effect).ok()) << effect;
    EXPECT_EQ(flags.unhealthy_taint, effect);
  }
  for (const char* level : {"debug", "info", "warning", "error"}) {
    ASSERT_TRUE(flags.Set("log-level", level).ok()) << level;
    EXPECT_EQ(flags.log_level, level);
  }
  for (const char* format : {"text", "json"}) {
    ASSERT_TRUE(flags.Set("logging-format", format).ok()) << format;
    EXPECT_EQ(flags.logging_format, format);
  }
}

TEST(DriverFlags, ParseCommandLineReportsWhetherTheDriverCanStart) {
  std::string program = "driver", node = "--node-name=n1", odd = "--odd";
  char* good[] = {program.data(), node.data()};
  DriverFlags flags;
  EXPECT_TRUE(flags.ParseCommandLine(2, good));
  EXPECT_EQ(flags.node_name, "n1");
  ::setenv("NODE_NAME", "of-the-pod", 1);
  DriverFlags in_a_pod;
  EXPECT_TRUE(in_a_pod.ParseCommandLine(1, good));
  EXPECT_EQ(in_a_pod.node_name, "of-the-pod") << "set by a DaemonSet";
  ::unsetenv("NODE_NAME");
  char* bad[] = {program.data(), odd.data()};
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(flags.ParseCommandLine(2, bad));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("unknown argument --odd"));
  EXPECT_THAT(said, HasSubstr("--enable-device-metadata"));
}

TEST(DriverFlags, OtherCommandLineLibrariesCanRegisterThem) {
  DriverFlags flags;
  for (const DriverFlagInfo& flag : flags.Describe()) {
    EXPECT_FALSE(flag.help.empty()) << flag.name;
    EXPECT_TRUE(flags.Set(flag.name, flag.default_value).ok()) << flag.name;
  }
  EXPECT_THAT(flags.Help(), HasSubstr("--enable-device-metadata"));
}

TEST(DriverFlags, TheirDefaultsAreWhatTheyAreSetTo) {
  const auto value = [](const DriverFlags& flags, std::string_view name) {
    for (const DriverFlagInfo& flag : flags.Describe()) {
      if (flag.name == name) return flag.default_value;
    }
    return std::string("no such flag");
  };
  DriverFlags flags{.node_name = "n1"};
  EXPECT_EQ(value(flags, "node-name"), "n1");
  EXPECT_EQ(value(flags, "enable-device-metadata"), "false");
  EXPECT_THAT(flags.Help(), HasSubstr("Name of the node this driver runs on. Default: n1."));
  EXPECT_THAT(flags.Help(), ::testing::Not(HasSubstr("Default: false")));
  flags.enable_device_metadata = true;
  EXPECT_EQ(value(flags, "enable-device-metadata"), "true");
}

TEST(DriverFlags, TheEnvironmentFillsEmptyFields) {
  DriverFlags flags{.node_name = "given"};
  flags.ReadEnvironment([](const char* name) -> const char* {
    return std::string(name) == "POD_UID" ? "u" : std::string(name) == "NODE_NAME" ? "n" : nullptr;
  });
  EXPECT_EQ(flags.node_name, "given");
  EXPECT_EQ(flags.pod_uid, "u");
  EXPECT_EQ(flags.kubeconfig, "");
  flags.ReadEnvironment([](const char*) -> const char* { return "/config"; });
  EXPECT_EQ(flags.kubeconfig, "/config");
  EXPECT_EQ(flags.pod_uid, "u") << "already set";
}

}  // namespace
}  // namespace drakkar::driver
