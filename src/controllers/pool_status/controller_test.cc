#include "controllers/pool_status/controller.h"

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

TEST_F(PoolStatusTest, AnAnsweredRequestIsDeletedAfterAnHour) {
  Ask("ask");
  Settle(std::chrono::minutes(59));
  EXPECT_TRUE(Status("ask").has_value());
  Settle(std::chrono::minutes(2));
  EXPECT_EQ(server_.Get("ResourcePoolStatusRequest", "ask"), nullptr);
}

}  // namespace
}  // namespace drakkar::controllers
