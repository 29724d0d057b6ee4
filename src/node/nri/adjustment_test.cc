#include "node/nri/adjustment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drakkar::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ContainerConfig Config() {
  ContainerConfig config;
  config.id = "c1";
  config.name = "c";
  config.command = {"sh"};
  config.arguments = {"-c", "true"};
  config.environment = {{"A", "1"}, {"AB", "2"}};
  config.mounts = {{.host_path = "/host", .container_path = "/data", .readonly = true}};
  config.annotations = {{"note", "x"}};
  return config;
}

TEST(NriAdjustment, PluginsSeeTheContainersConfiguration) {
  const rpc::NriContainer container = DescribeContainer("s1", Config());
  EXPECT_EQ(container.id, "c1");
  EXPECT_EQ(container.pod_sandbox_id, "s1");
  EXPECT_THAT(container.args, ElementsAre("sh", "-c", "true"));
  EXPECT_THAT(container.env, ElementsAre("A=1", "AB=2"));
  EXPECT_THAT(container.mounts,
              ElementsAre(rpc::NriMount{"/data", "bind", "/host", {"rbind", "rprivate", "ro"}}));
}

TEST(NriAdjustment, EachPluginSeesThePreviousPluginsAdjustments) {
  AdjustmentCollector collector(DescribeContainer("s1", Config()));
  ASSERT_TRUE(
      collector
          .Add("10-a", {.annotations = {{"-note", ""}}, .env = {{"A", "changed"}, {"NEW", "n"}}})
          .ok());
  EXPECT_THAT(collector.container().env, ElementsAre("AB=2", "A=changed", "NEW=n"));
  ASSERT_TRUE(
      collector
          .Add("20-b", {.mounts = {{"-/data", "", "", {}}, {"/more", "bind", "/m", {"bind", "ro"}}},
                        .env = {{"-AB", ""}}})
          .ok());
  EXPECT_THAT(collector.container().env, ElementsAre("A=changed", "NEW=n"));
  EXPECT_TRUE(collector.container().annotations.empty());

  ContainerConfig config = Config();
  ApplyAdjustment(collector.adjustment(), config);
  EXPECT_EQ(DescribeContainer("s1", config).env, collector.container().env);
  EXPECT_TRUE(config.annotations.empty());
  ASSERT_EQ(config.mounts.size(), 1u);
  EXPECT_EQ(config.mounts[0].container_path, "/more");
  EXPECT_EQ(config.mounts[0].host_path, "/m");
  EXPECT_TRUE(config.mounts[0].readonly);
  EXPECT_TRUE(config.mounts[0].options.empty());
}

TEST(NriAdjustment, MountsKeepTheirTypePropagationAndOptions) {
  ContainerConfig config;
  ApplyAdjustment({.mounts = {{"/scratch", "tmpfs", "tmpfs", {"size=1m", "rw"}},
                              {"/shared", "", "/s", {"rbind", "rslave"}}}},
                  config);
  ASSERT_EQ(config.mounts.size(), 2u);
  EXPECT_EQ(config.mounts[0].type, "tmpfs");
  EXPECT_THAT(config.mounts[0].options, ElementsAre("size=1m"));
  EXPECT_EQ(config.mounts[1].type, "bind");
  EXPECT_EQ(config.mounts[1].propagation, MountPropagation::kHostToContainer);
}

TEST(NriAdjustment, TwoPluginsMayNotChangeTheSameField) {
  AdjustmentCollector collector(DescribeContainer("s1", Config()));
  ASSERT_TRUE(collector.Add("10-a", {.env = {{"A", "x"}}}).ok());
  const auto refused = collector.Add("20-b", {.annotations = {{"k", "v"}}, .env = {{"-A", ""}}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "NRI plugins 10-a and 20-b both change environment variable A of container c");
  EXPECT_FALSE(collector.container().annotations.contains("k")) << "nothing of it was taken";
  EXPECT_THAT(collector.Add("20-b", {.mounts = {{"relative", "bind", "/x", {}}}}).error().message,
              HasSubstr("not an absolute path"));
}

}  // namespace
}  // namespace drakkar::node
