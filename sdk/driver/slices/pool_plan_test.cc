#include "sdk/driver/slices/pool_plan.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "sdk/driver/slices/dropped_fields.h"

namespace drakkar::driver {
namespace {

const SliceIdentity kIdentity{.driver = "d.example.com", .node_name = "n", .owner_name = "n"};

api::TreePtr Tree(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return *tree;
}

// A pool whose slices have one device each, named as given.
DesiredPool Want(std::vector<std::string> devices) {
  DesiredPool pool;
  for (const std::string& name : devices) {
    pool.specs.push_back(Tree(R"({"devices":[{"name":")" + name + R"("}]})"));
  }
  return pool;
}

// The slices on the server after a plan is carried out.
std::vector<api::ObjectPtr> Apply(const PoolPlan& plan, std::vector<api::ObjectPtr> slices) {
  for (const api::ObjectPtr& gone : plan.deletions) std::erase(slices, gone);
  for (const SliceUpdate& update : plan.updates) {
    std::erase(slices, update.before);
    slices.push_back(std::make_shared<api::Object>(update.body));
  }
  for (const SliceCreation& creation : plan.creations) {
    api::Draft draft(creation.body);
    draft["metadata"]["name"] =
        std::string(creation.body->root()["metadata"]["generateName"].str()) + "x7k2q";
    slices.push_back(std::make_shared<api::Object>(draft.Freeze()));
  }
  return slices;
}

PoolPlan Plan(const DesiredPool& want, const std::vector<api::ObjectPtr>& slices) {
  return PlanPool(kIdentity, "pool", &want, slices);
}

TEST(PoolPlan, NamesBeginWithTheIndex) {
  EXPECT_EQ(SliceNamePrefix(kIdentity, 10, 11), "0000a-d.example.com-n-");
  EXPECT_EQ(SliceNamePrefix({.driver = "d"}, 0, 1), "00000-d-");
  EXPECT_EQ(SliceNamePrefix(kIdentity, 1, 0x100001), "000001-d.example.com-n-");
}

TEST(PoolPlan, TheFirstPublicationIsGenerationOne) {
  const PoolPlan plan = Plan(Want({"a", "b"}), {});
  EXPECT_EQ(plan.generation, 1);
  ASSERT_EQ(plan.creations.size(), 2u);
  const api::Value spec = plan.creations[1].body->root()["spec"];
  EXPECT_EQ(spec["driver"].str(), "d.example.com");
  EXPECT_EQ(spec["nodeName"].str(), "n");
  EXPECT_EQ(spec["pool"]["resourceSliceCount"].integer(), 2);
  EXPECT_TRUE(Plan(Want({"a", "b"}), Apply(plan, {})).empty());
}

TEST(PoolPlan, OneChangedSliceKeepsTheGeneration) {
  const auto slices = Apply(Plan(Want({"a", "b"}), {}), {});
  const PoolPlan plan = Plan(Want({"a", "c"}), slices);
  EXPECT_EQ(plan.generation, 1);
  EXPECT_EQ(plan.updates.size(), 1u);
  EXPECT_EQ(plan.updates[0].index, 1u);
  EXPECT_TRUE(plan.deletions.empty() && plan.creations.empty());
}

TEST(PoolPlan, TwoChangedSlicesRaiseTheGenerationOfAll) {
  const auto slices = Apply(Plan(Want({"a", "b", "c"}), {}), {});
  const PoolPlan plan = Plan(Want({"x", "y", "c"}), slices);
  EXPECT_EQ(plan.generation, 2);
  EXPECT_EQ(plan.updates.size(), 3u);
  EXPECT_TRUE(Plan(Want({"x", "y", "c"}), Apply(plan, slices)).empty());
}

TEST(PoolPlan, ACreatedSliceRaisesTheGeneration) {
  const auto slices = Apply(Plan(Want({"a"}), {}), {});
  const PoolPlan plan = Plan(Want({"a", "b"}), slices);
  EXPECT_EQ(plan.generation, 2);
  EXPECT_EQ(plan.updates.size(), 1u);
  EXPECT_EQ(plan.creations.size(), 1u);
}

TEST(PoolPlan, TheDriversGenerationIsUsedIfItIsHigher) {
  DesiredPool want = Want({"a"});
  want.generation = 7;
  auto slices = Apply(Plan(want, {}), {});
  EXPECT_EQ((*slices[0])["spec"]["pool"]["generation"].integer(), 7);
  want = Want({"b", "c"});
  want.generation = 7;
  EXPECT_EQ(Plan(want, slices).generation, 8);
}

TEST(PoolPlan, UnknownAndDuplicateSlicesAreDeleted) {
  auto slices = Apply(Plan(Want({"a"}), {}), {});
  for (const char* name :
       {"foreign", "000000-d.example.com-n-x", "00001-d.example.com-n-x", "00000-zzz"}) {
    api::Draft draft(slices[0]->tree());
    draft["metadata"]["name"] = name;
    slices.push_back(std::make_shared<api::Object>(draft.Freeze()));
  }
  const PoolPlan plan = Plan(Want({"a"}), slices);
  EXPECT_EQ(plan.deletions.size(), 4u);
  EXPECT_EQ(plan.generation, 1);
  EXPECT_TRUE(plan.updates.empty() && plan.creations.empty());
}

TEST(PoolPlan, AnInterruptedChangeIsFinishedWithoutAnother) {
  const auto before = Apply(Plan(Want({"a", "b", "c"}), {}), {});
  const DesiredPool want = Want({"x", "y", "c"});
  PoolPlan half = Plan(want, before);
  half.updates.resize(1);
  const auto slices = Apply(half, before);
  const PoolPlan rest = Plan(want, slices);
  EXPECT_EQ(rest.generation, 2);
  EXPECT_EQ(rest.updates.size(), 2u);
  EXPECT_TRUE(rest.deletions.empty() && rest.creations.empty());
  EXPECT_TRUE(Plan(want, Apply(rest, slices)).empty());
}

TEST(PoolPlan, APoolThatIsNotPublishedIsDeleted) {
  const auto slices = Apply(Plan(Want({"a", "b"}), {}), {});
  EXPECT_EQ(PlanPool(kIdentity, "pool", nullptr, slices).deletions.size(), 2u);
}

TEST(PoolPlan, TimesOfTaintsAreKept) {
  DesiredPool want;
  want.specs = {Tree(R"({"devices":[{"name":"a","taints":[{"key":"k","effect":"NoSchedule"}]}]})")};
  auto slices = Apply(Plan(want, {}), {});
  api::Draft stored(slices[0]->tree());
  stored["spec"]["devices"].at(0)["taints"].at(0)["timeAdded"] = "2025-06-07T08:09:10Z";
  slices = {std::make_shared<api::Object>(stored.Freeze())};
  EXPECT_TRUE(Plan(want, slices).empty());
  // Another change keeps the time.
  want.specs = {Tree(R"({"devices":[{"name":"a","attributes":{"x":{"int":1}},)"
                     R"("taints":[{"key":"k","effect":"NoSchedule"}]}]})")};
  PoolPlan plan = Plan(want, slices);
  ASSERT_EQ(plan.updates.size(), 1u);
  const auto time = [](const PoolPlan& of) {
    return of.updates[0].body->root()["spec"]["devices"].at(0)["taints"].at(0)["timeAdded"].str();
  };
  EXPECT_EQ(time(plan), "2025-06-07T08:09:10Z");
  // A difference of one second is ignored, two seconds are a change.
  want.specs = {Tree(R"({"devices":[{"name":"a","taints":[{"key":"k","effect":"NoSchedule",)"
                     R"("timeAdded":"2025-06-07T08:09:11Z"}]}]})")};
  EXPECT_TRUE(Plan(want, slices).empty());
  want.specs = {Tree(R"({"devices":[{"name":"a","taints":[{"key":"k","effect":"NoSchedule",)"
                     R"("timeAdded":"2025-06-07T08:09:12Z"}]}]})")};
  plan = Plan(want, slices);
  ASSERT_EQ(plan.updates.size(), 1u);
  EXPECT_EQ(time(plan), "2025-06-07T08:09:12Z");
}

TEST(PoolPlan, TimesOfTaintsAreKeptPerDeviceAndTaint) {
  const auto slice = [](std::string_view first, std::string_view second) {
    return StrCat(R"({"devices":[{"name":"a","taints":[{"key":"k","effect":"NoSchedule")", first,
                  R"(}]},{"name":"b","taints":[{"key":"k","effect":"NoSchedule")", second,
                  R"(},{"key":"l","effect":"NoSchedule"}]}]})");
  };
  const auto time = [](std::string_view text) { return StrCat(R"(,"timeAdded":")", text, "\""); };
  const api::TreePtr stored =
      Tree(slice(time("2026-01-01T00:00:00Z"), time("2026-01-01T00:00:05Z")));
  const api::TreePtr merged = WithStoredTaintTimes(Tree(slice("", "")), stored->root());
  const api::Value devices = merged->root()["devices"];
  EXPECT_EQ(devices.at(0)["taints"].at(0)["timeAdded"].str(), "2026-01-01T00:00:00Z");
  EXPECT_EQ(devices.at(1)["taints"].at(0)["timeAdded"].str(), "2026-01-01T00:00:05Z");
  EXPECT_FALSE(devices.at(1)["taints"].at(1)["timeAdded"].exists()) << "a new taint";
  // A time that differs by more than a second, or that cannot be read, is the driver's wish.
  for (const char* wish : {"2026-01-01T00:00:07Z", "soon"}) {
    const api::TreePtr wished = WithStoredTaintTimes(Tree(slice("", time(wish))), stored->root());
    EXPECT_EQ(wished->root()["devices"].at(1)["taints"].at(0)["timeAdded"].str(), wish);
  }
  const api::TreePtr two = Tree(R"({"devices":[{"name":"a","taints":[{"key":"k","timeAdded":)"
                                R"("2026-01-01T00:00:00Z"},{"key":"l","timeAdded":)"
                                R"("2026-01-01T00:00:05Z"}]}]})");
  const api::TreePtr both = WithStoredTaintTimes(
      Tree(R"({"devices":[{"name":"a","taints":[{"key":"k"},{"key":"l"}]}]})"), two->root());
  EXPECT_EQ(both->root()["devices"].at(0)["taints"].at(1)["timeAdded"].str(),
            "2026-01-01T00:00:05Z");
  const api::TreePtr odd = Tree(slice("", time("once")));
  EXPECT_EQ(WithStoredTaintTimes(Tree(slice("", time("2026-01-01T00:00:00Z"))), odd->root())
                ->root()["devices"]
                .at(1)["taints"]
                .at(0)["timeAdded"]
                .str(),
            "2026-01-01T00:00:00Z");
}

TEST(PoolPlan, SkippedOperationsAreComparedByMeaning) {
  DesiredPool want;
  want.specs = {Tree(R"({"skipNodeOperations":["*"]})")};
  auto slices = Apply(Plan(want, {}), {});
  api::Draft stored(slices[0]->tree());
  stored["spec"]["skipNodeOperations"] = true;
  EXPECT_TRUE(Plan(want, {std::make_shared<api::Object>(stored.Freeze())}).empty());
  stored["spec"]["skipNodeOperations"] = false;
  EXPECT_FALSE(Plan(want, {std::make_shared<api::Object>(stored.Freeze())}).empty());
}

TEST(DroppedFeatures, AreNamedByTheirGate) {
  const auto dropped = [](std::string_view sent, std::string_view stored) {
    return Join(DroppedFeatures(Tree(sent)->root(), Tree(stored)->root()), " ");
  };
  constexpr char kPlain[] = R"({"devices":[{"name":"a"}]})";
  EXPECT_EQ(dropped(kPlain, kPlain), "");
  EXPECT_EQ(dropped(R"({"devices":[{"name":"a","taints":[{"key":"k"}]}]})", kPlain),
            "DRADeviceTaints");
  EXPECT_EQ(dropped(R"({"devices":[{"name":"a","bindingConditions":["x"]}]})", kPlain),
            "DRADeviceBindingConditions");
  EXPECT_EQ(
      dropped(R"({"devices":[{"name":"a","consumesCounters":[{"counterSet":"s"}]}]})", kPlain),
      "DRAPartitionableDevices");
  EXPECT_EQ(dropped(R"({"devices":[{"name":"a","allowMultipleAllocations":true}]})", kPlain),
            "DRAConsumableCapacity");
  EXPECT_EQ(dropped(R"({"devices":[{"name":"a"}],"partitionTypeAttribute":"x/y",)"
                    R"("skipNodeOperations":["*"]})",
                    kPlain),
            "DRAPartitionableDevicesType DRAOptionalNodeOperations");
  EXPECT_EQ(dropped(R"({"devices":[{"name":"a"}],"sharedCounters":[{"name":"s"}]})", kPlain),
            "DRAPartitionableDevices");
  EXPECT_EQ(dropped(R"({"devices":[{"name":"a"}],"perDeviceNodeSelection":true})", kPlain),
            "DRAPartitionableDevices");
  EXPECT_EQ(dropped(R"({"devices":[{"name":"a"},{"name":"b","taints":[{"key":"k"}]}]})",
                    R"({"devices":[{"name":"a"},{"name":"b"}]})"),
            "DRADeviceTaints")
      << "of the second device";
  EXPECT_EQ(dropped(R"({"devices":[{"name":"a","consumesCounters":[{"counterSet":"s",)"
                    R"("compatibilityGroups":["g"]}]}]})",
                    R"({"devices":[{"name":"a","consumesCounters":[{"counterSet":"s"}]}]})"),
            "DRADeviceCompatibilityGroups");
  EXPECT_EQ(dropped(R"({"devices":[{"name":"a","consumesCounters":[{"counterSet":"s"},)"
                    R"({"counterSet":"t","compatibilityGroups":["g"]}]}]})",
                    R"({"devices":[{"name":"a","consumesCounters":[{"counterSet":"s"},)"
                    R"({"counterSet":"t"}]}]})"),
            "DRADeviceCompatibilityGroups")
      << "of the second counter set";
  EXPECT_EQ(dropped(R"({"devices":[{"name":"a","consumesCounters":[{"counterSet":"s",)"
                    R"("compatibilityGroups":["g"]}]}]})",
                    kPlain),
            "DRAPartitionableDevices")
      << "the groups are gone with their counters";
  EXPECT_EQ(
      dropped(R"({"devices":[{"name":"a","capacity":{"m":{"value":"1","requestPolicy":{}}}}]})",
              R"({"devices":[{"name":"a","capacity":{"m":{"value":"1"}}}]})"),
      "DRAConsumableCapacity");
  EXPECT_EQ(dropped(R"({"devices":[{"name":"a","capacity":{"l":{"value":"1"},)"
                    R"("m":{"value":"1","requestPolicy":{}}}}]})",
                    R"({"devices":[{"name":"a","capacity":{"l":{"value":"1"},)"
                    R"("m":{"value":"1"}}}]})"),
            "DRAConsumableCapacity")
      << "of the second capacity";
  EXPECT_EQ(dropped(R"({"devices":[{"name":"b"}]})", kPlain), "unknown");
}

TEST(PoolPlan, ANameThatOnlyBeginsWithANumberHasNoIndex) {
  api::Draft draft(Apply(Plan(Want({"a"}), {}), {})[0]->tree());
  draft["metadata"]["name"] = "0000g-d.example.com-n-x";
  const PoolPlan plan = Plan(Want({"a"}), {std::make_shared<api::Object>(draft.Freeze())});
  EXPECT_EQ(plan.deletions.size(), 1u);
  EXPECT_EQ(plan.creations.size(), 1u);
}

}  // namespace
}  // namespace drakkar::driver
