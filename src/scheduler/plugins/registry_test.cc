#include "scheduler/plugins/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/plugins/dynamic_resources/dynamic_resources.h"
#include "scheduler/testing/test_context.h"

namespace drakkar::scheduler {
namespace {

using ::testing::Contains;
using ::testing::Not;

std::vector<std::string> Names(const Plugins& plugins) {
  std::vector<std::string> names;
  for (const auto& plugin : plugins) names.emplace_back(plugin->name());
  return names;
}

class Nothing final : public Plugin {};
class FilterOnly final : public Plugin {
 public:
  Status Filter(Cycle&, NodeSet&) override { return Status::Success(); }
};

TEST(Registry, PointsAreThoseThatAPluginOverrides) {
  EXPECT_EQ(PointsOf<Nothing>(), 0);
  EXPECT_EQ(PointsOf<FilterOnly>(), static_cast<Points>(Point::kFilter));
  EXPECT_EQ(PointsOf<DynamicResources>(), Point::kPreEnqueue | Point::kPreFilter | Point::kFilter |
                                              Point::kPostFilter | Point::kPrefer | Point::kScore |
                                              Point::kReserve | Point::kPreBind);
}

TEST(Registry, EveryPluginIsMadeOnceInTheOrderOfTheRows) {
  TestContext world;
  const Plugins plugins = MakePlugins(world.context);
  ASSERT_EQ(plugins.size(), PluginRows().size());
  for (std::size_t i = 0; i < plugins.size(); ++i) {
    EXPECT_EQ(plugins[i]->name(), PluginRows()[i].name);
    EXPECT_EQ(plugins[i]->id(), i);
    EXPECT_EQ(plugins[i]->weight(), PluginRows()[i].weight);
    EXPECT_EQ(plugins[i]->Has(Point::kFilter),
              (PluginRows()[i].points & static_cast<Points>(Point::kFilter)) != 0);
  }
}

TEST(Registry, APluginWhoseGateIsOffIsOmittedAndTheOthersKeepTheirIds) {
  TestContext all;
  TestContext some(FeatureGates().With(Gate::kNodeDeclaredFeatures, false));
  const Plugins with = MakePlugins(all.context);
  const Plugins without = MakePlugins(some.context);
  EXPECT_THAT(Names(with), Contains("NodeDeclaredFeatures"));
  EXPECT_THAT(Names(without), Not(Contains("NodeDeclaredFeatures")));
  EXPECT_EQ(GetPlugin<DynamicResources>(without).id(), GetPlugin<DynamicResources>(with).id());
}

TEST(Registry, TheProfileChoosesPointsWeightAndPlace) {
  TestContext world;
  ProfileConfig profile;
  profile.plugins["TaintToleration"] = {.points = static_cast<Points>(Point::kScore),
                                        .weight = 7,
                                        .places = {{static_cast<Points>(Point::kScore), 4}}};
  const Plugins plugins = MakePlugins(world.context, profile);
  const auto found = std::find_if(plugins.begin(), plugins.end(), [](const auto& plugin) {
    return plugin->name() == "TaintToleration";
  });
  ASSERT_NE(found, plugins.end());
  EXPECT_TRUE((*found)->Has(Point::kScore));
  EXPECT_FALSE((*found)->Has(Point::kFilter));
  EXPECT_EQ((*found)->weight(), 7);
  EXPECT_EQ((*found)->PlaceAt(Point::kScore), 4);
  EXPECT_EQ((*found)->PlaceAt(Point::kFilter), -1);
}

TEST(Registry, FilesCannotNameAMandatoryPlugin) {
  EXPECT_NE(FindPluginRow("NodeName"), nullptr);
  EXPECT_EQ(FindPluginRow("UnsupportedFields"), nullptr);
  EXPECT_EQ(FindPluginRow("NoSuchPlugin"), nullptr);
}

TEST(Registry, NoPluginIsBothSupportedAndUnsupported) {
  for (const PluginRow& row : PluginRows()) EXPECT_FALSE(IsForeignPlugin(row.name)) << row.name;
  EXPECT_TRUE(IsForeignPlugin("VolumeBinding"));
}

}  // namespace
}  // namespace drakkar::scheduler
