#include "controllers/pool_status/controller.h"

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "controllers/pool_status/views.h"
#include "controllers/testing/controllers_fixture.h"

namespace drakkar::controllers {
namespace {

class PoolStatusTest : public ControllersFixture {
 protected:
  void Slice(std::string_view name, std::string_view pool, std::string_view devices,
             int slices = 1) {
    Create(StrCat(
        R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":")", name,
        R"("},"spec":{"driver":"gpu.example.com","nodeName":"n1","pool":{"name":")", pool,
        R"(","generation":1,"resourceSliceCount":)", slices, R"(},"devices":[)", devices, "]}}"));
  }
  api::Value Ask(std::string_view name, std::string_view spec = "") {
    Create(StrCat(R"({"apiVersion":"resource.k8s.io/v1alpha3","kind":"ResourcePoolStatusRequest",
        "metadata":{"name":")",
                  name, R"("},"spec":{"driver":"gpu.example.com")", spec, "}}"));
    Settle(std::chrono::seconds(1));
    return Status(name);
  }
  api::Value Status(std::string_view name) {
    kept_ = server_.Get("ResourcePoolStatusRequest", std::string(name));
    return kept_ == nullptr ? api::Value() : (*kept_)["status"];
  }
  api::ObjectPtr kept_;
};

TEST_F(PoolStatusTest, ARequestIsAnsweredWithTheNumbersOfEachPool) {
  Slice("a", "p1", R"({"name":"d1"},{"name":"d2"},{"name":"d3",
      "taints":[{"key":"k","effect":"NoSchedule"}]},{"name":"d4"})");
  Slice("b", "p2", R"({"name":"d1"})");
  Create(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c"},
      "spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"x"}}]}}})");
  Change("ResourceClaim", "default/c", "status", [](api::Draft& claim) {
    claim["status"]["allocation"]["devices"]["results"].Append(
        {{"request", "r"}, {"driver", "gpu.example.com"}, {"pool", "p1"}, {"device", "d1"}});
  });
  const api::Value status = Ask("ask");
  EXPECT_EQ(status["poolCount"].integer(), 2);
  const api::Value pool = status["pools"].at(0);
  EXPECT_EQ(pool["poolName"].str(), "p1");
  EXPECT_EQ(pool["nodeName"].str(), "n1");
  EXPECT_EQ(pool["totalDevices"].integer(), 4);
  EXPECT_EQ(pool["allocatedDevices"].integer(), 1);
  EXPECT_EQ(pool["unavailableDevices"].integer(), 1);
  EXPECT_EQ(pool["availableDevices"].integer(), 2);
  EXPECT_EQ(status["conditions"].at(0)["type"].str(), "Complete");
  EXPECT_EQ(status["conditions"].at(0)["message"].str(), "Calculated status for 2 pools");
  EXPECT_EQ(Ask("one", R"(,"poolName":"p2")")["pools"].size(), 1u);
  const api::Value limited = Ask("few", R"(,"limit":1)");
  EXPECT_EQ(limited["pools"].size(), 1u);
  EXPECT_EQ(limited["poolCount"].integer(), 2);
}

TEST_F(PoolStatusTest, AnIncompletePoolIsWaitedForAndThenReported) {
  Slice("a", "p1", R"({"name":"d1"})", 2);
  EXPECT_FALSE(Ask("ask").has_value());
  Settle(std::chrono::seconds(20));
  const api::Value status = Status("ask");
  EXPECT_EQ(status["conditions"].at(0)["message"].str(),
            "Calculated status for 1 pools (1 incomplete)");
  EXPECT_FALSE(status["pools"].at(0)["totalDevices"].exists());
  EXPECT_NE(status["pools"].at(0)["validationError"].str().find("observed 1/2 slices"),
            std::string_view::npos);
}

// Slices are given to the planner as they are: the server has rules for them.
api::Value Views(std::string_view slices, std::vector<std::string_view> in_use,
                 std::string_view attribute, api::TreePtr& kept) {
  static std::vector<api::TreePtr> trees;
  trees.push_back(api::ParseJson(slices).value());
  PoolView view{.driver = "gpu.example.com",
                .name = "p",
                .slices = {},
                .in_use = {in_use.begin(), in_use.end()},
                .consumed = {{"memory", *api::Quantity::Parse("6Gi")}},
                .default_attribute = attribute};
  for (const api::Value each : trees.back()->root().elements()) view.slices.push_back(each);
  api::Draft status = api::Draft::Object();
  AddPoolViews(view, status);
  kept = status.Freeze();
  return kept->root();
}

constexpr char kPartitions[] = R"([{"partitionTypeAttribute":"gpu.example.com/profile",
  "sharedCounters":[{"name":"gpu","counters":{"slices":{"value":"8"}}}]},
  {"partitionTypeAttribute":"gpu.example.com/profile","devices":[
  {"name":"full","attributes":{"profile":{"string":"Full"}},
   "consumesCounters":[{"counterSet":"gpu","counters":{"slices":{"value":"8"}}}]},
  {"name":"half-a","attributes":{"profile":{"string":"Half"}},
   "consumesCounters":[{"counterSet":"gpu","counters":{"slices":{"value":"4"}}}]},
  {"name":"half-b","attributes":{"profile":{"string":"Half"}},
   "consumesCounters":[{"counterSet":"gpu","counters":{"slices":{"value":"4"}}}]},
  {"name":"plain"}]}])";

TEST(PoolViewsTest, PartitionsAreCountedByTypeAgainstWhatIsLeft) {
  api::TreePtr kept;
  api::Value status = Views(kPartitions, {}, "", kept);
  EXPECT_EQ(api::WriteJson(status["partitionSummary"]),
            R"([{"attribute":"gpu.example.com/profile","type":"Full","total":1,"allocatable":1},)"
            R"({"attribute":"gpu.example.com/profile","type":"Half","total":2,"allocatable":2}])");
  status = Views(kPartitions, {"half-a"}, "", kept);
  EXPECT_EQ(status["partitionSummary"].at(0)["allocatable"].integer(), 0);
  EXPECT_EQ(status["partitionSummary"].at(1)["allocatable"].integer(), 1);
  EXPECT_FALSE(status["shareableSummary"].exists());
}

TEST(PoolViewsTest, TheAttributeOfTheRequestCountsIfNoSliceHasOne) {
  std::string slices = kPartitions;
  for (std::size_t at;
       (at = slices.find("\"partitionTypeAttribute\":\"gpu.example.com/profile\",")) !=
       std::string::npos;) {
    slices.erase(
        at, std::string_view("\"partitionTypeAttribute\":\"gpu.example.com/profile\",").size());
  }
  api::TreePtr kept;
  EXPECT_TRUE(Views(slices, {}, "", kept).empty());
  EXPECT_EQ(Views(slices, {}, "gpu.example.com/profile", kept)["partitionSummary"].size(), 2u);
  EXPECT_EQ(Views(slices, {}, "gpu.example.com/other", kept)["validationError"].str(),
            "PartitionTypeMissing: device \"full\" in pool gpu.example.com/p does not carry "
            "partition type attribute \"gpu.example.com/other\"");
}

TEST(PoolViewsTest, DifferentCostsOfOneTypeAreAnError) {
  std::string slices = kPartitions;
  slices.replace(slices.rfind("\"4\""), 3, "\"2\"");
  api::TreePtr kept;
  const api::Value status = Views(slices, {}, "", kept);
  EXPECT_EQ(status["validationError"].str(),
            "PartitionCostMismatch: devices of partition type \"Half\" in pool gpu.example.com/p "
            "consume different counters");
  EXPECT_FALSE(status["partitionSummary"].exists());
}

TEST(PoolViewsTest, SharedDevicesAreCountedWithTheirCapacity) {
  api::TreePtr kept;
  const api::Value status = Views(R"([{"devices":[
    {"name":"a","allowMultipleAllocations":true,"capacity":{"memory":{"value":"4Gi"}}},
    {"name":"b","allowMultipleAllocations":true,"capacity":{"memory":{"value":"4Gi"}}},
    {"name":"own","capacity":{"memory":{"value":"4Gi"}}}]}])",
                                  {"a"}, "", kept);
  EXPECT_EQ(api::WriteJson(status["shareableSummary"]),
            R"({"fullyAvailableDevices":1,"partiallyAvailableDevices":1,"capacity":[)"
            R"({"name":"memory","total":"8Gi","consumed":"6Gi","available":"2Gi"}]})");
}

TEST_F(PoolStatusTest, AnAnsweredRequestIsDeletedAfterAnHour) {
  Ask("ask");
  Settle(std::chrono::minutes(59));
  EXPECT_TRUE(Status("ask").has_value());
  Settle(std::chrono::minutes(2));
  EXPECT_EQ(server_.Get("ResourcePoolStatusRequest", "ask"), nullptr);
}

}  // namespace
}  // namespace drakkar::controllers
