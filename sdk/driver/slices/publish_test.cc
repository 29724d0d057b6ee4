// Publishes to a real API server: what it rejects and what it keeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "base/testing/memory_file_system.h"
#include "base/testing/seeded_loop.h"
#include "rpc/testing/memory_transport.h"
#include "sdk/driver/driver.h"
#include "sdk/driver/slices/slice_controller.h"
#include "telemetry/metrics/metrics.h"
#include "tests/support/api_server.h"

namespace drakkar::driver {
namespace {

using ::testing::HasSubstr;

class PublishTest : public ::testing::Test {
 protected:
  explicit PublishTest(FeatureGates gates = FeatureGates()) : api_(loop_, gates) {}

  void Publish(const std::string& node_name, const Pool& pool, const std::string& name = "pool") {
    controller_ = std::make_unique<SliceController>(SliceController::Options{
        .loop = loop_,
        .random = loop_.random(),
        .client = api_.client(),
        .driver_name = "d.example.com",
        .node_name = node_name,
        .on_error = [this](const Error& error) { errors_.push_back(error.message); }});
    DriverResources resources;
    resources.pools[name] = pool;
    auto accepted = controller_->Publish(resources);
    ASSERT_TRUE(accepted.ok()) << accepted.error().message;
    loop_.RunUntilIdle();
  }
  std::vector<api::ObjectPtr> Slices() {
    std::vector<api::ObjectPtr> slices;
    api_.client().List({.kind = testing::KindNamed("ResourceSlice")}, {},
                       [&](client::ListReply reply) { slices = std::move(reply.items); });
    loop_.RunUntilIdle();
    return slices;
  }

  SeededLoop loop_;
  testing::TestApiServer api_;
  std::vector<std::string> errors_;
  std::unique_ptr<SliceController> controller_;
};

Pool OneDevice(Device device) {
  Pool pool;
  pool.slices = {{.devices = {std::move(device)}}};
  return pool;
}

TEST_F(PublishTest, TheServersErrorIsReportedWithTheField) {
  api_.Create(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}})");
  Publish("n", OneDevice({.name = "Not_A_Label"}));
  ASSERT_EQ(errors_.size(), 1u);
  EXPECT_THAT(errors_[0], HasSubstr("pool \"pool\", slice #0, create"));
  EXPECT_THAT(errors_[0], HasSubstr("spec.devices[0].name"));
  EXPECT_TRUE(Slices().empty());
}

TEST_F(PublishTest, WithoutANodeAPoolIsForSelectedNodesOrForAll) {
  Pool pool = OneDevice({.name = "fabric-0",
                         .binds_to_node = true,
                         .binding_conditions = {"example.com/attached"},
                         .binding_failure_conditions = {"example.com/failed"}});
  pool.node_selector = *api::ParseJson(
      R"({"nodeSelectorTerms":[{"matchExpressions":[{"key":"rack","operator":"In","values":["1"]}]}]})");
  Publish("", pool);
  EXPECT_THAT(errors_, ::testing::IsEmpty());
  auto slices = Slices();
  ASSERT_EQ(slices.size(), 1u);
  const api::Value spec = (*slices[0])["spec"];
  EXPECT_FALSE(spec["nodeName"].exists());
  EXPECT_EQ(spec["nodeSelector"]["nodeSelectorTerms"].size(), 1u);
  EXPECT_TRUE(spec["devices"].at(0)["bindsToNode"].boolean());
  EXPECT_EQ(api::WriteJson(spec["devices"].at(0)["bindingConditions"]),
            R"(["example.com/attached"])");
  EXPECT_EQ(api::WriteJson(spec["devices"].at(0)["bindingFailureConditions"]),
            R"(["example.com/failed"])");
  EXPECT_TRUE((*slices[0])["metadata"]["ownerReferences"].empty());
  controller_.reset();

  Pool everywhere = OneDevice({.name = "license-0"});
  everywhere.all_nodes = true;
  // Another pool; the previous one is no longer published and is deleted.
  Publish("", everywhere, "everywhere");
  slices = Slices();
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_TRUE((*slices[0])["spec"]["allNodes"].boolean());
}

class NoPlugin final : public SynchronousPlugin {
  Result<std::vector<PreparedDevice>> PrepareResourceClaim(const api::Object&) override {
    return std::vector<PreparedDevice>();
  }
  Result<void> UnprepareResourceClaim(const rpc::ClaimReference&) override { return Ok(); }
};

TEST_F(PublishTest, ForgetHealthRemovesTheTaint) {
  api_.Create(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}})");
  MemoryFileSystem files;
  rpc::MemoryTransport transport(loop_);
  NoPlugin plugin;
  auto driver = Driver::Start({.loop = loop_,
                               .random = loop_.random(),
                               .files = files,
                               .client = api_.client(),
                               .transport = transport,
                               .plugin = plugin,
                               .driver_name = "d.example.com",
                               .node_name = "n",
                               .health_service = true,
                               .unhealthy_taint = {.key = "d.example.com/unhealthy"}});
  ASSERT_TRUE(driver.ok()) << driver.error().message;
  DriverResources resources;
  resources.pools["pool"] = OneDevice({.name = "gpu-0"});
  ASSERT_TRUE((*driver)->PublishResources(resources).ok());
  const auto taints = [&] {
    loop_.Advance(std::chrono::seconds(2));
    return (*Slices().at(0))["spec"]["devices"].at(0)["taints"].size();
  };
  EXPECT_EQ(taints(), 0u);
  ASSERT_TRUE((*driver)
                  ->ReportHealth({{.pool_name = "pool",
                                   .device_name = "gpu-0",
                                   .health = rpc::DeviceHealthState::kUnhealthy}})
                  .ok());
  EXPECT_EQ(taints(), 1u);
  (*driver)->ForgetHealth("pool", "gpu-0");
  EXPECT_EQ(taints(), 0u);
}

TEST_F(PublishTest, DevicesInEverySliceAreTaintedAndWritesAreCounted) {
  api_.Create(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}})");
  MemoryFileSystem files;
  rpc::MemoryTransport transport(loop_);
  NoPlugin plugin;
  Metrics metrics;
  auto driver = Driver::Start({.loop = loop_,
                               .random = loop_.random(),
                               .files = files,
                               .client = api_.client(),
                               .transport = transport,
                               .plugin = plugin,
                               .driver_name = "d.example.com",
                               .node_name = "n",
                               .health_service = true,
                               .unhealthy_taint = {.key = "d.example.com/unhealthy"},
                               .metrics = &metrics});
  ASSERT_TRUE(driver.ok()) << driver.error().message;
  DriverResources resources;
  resources.pools["pool"].slices.resize(2);
  resources.pools["pool"].slices[0].devices = {{.name = "gpu-0"}, {.name = "gpu-1"}};
  resources.pools["pool"].slices[1].devices = {{.name = "gpu-2"}, {.name = "gpu-3"}};
  ASSERT_TRUE((*driver)->PublishResources(resources).ok());
  loop_.Advance(std::chrono::seconds(2));
  std::vector<rpc::DeviceHealth> reports;
  for (const char* name : {"gpu-1", "gpu-3"}) {
    reports.push_back(
        {.pool_name = "pool", .device_name = name, .health = rpc::DeviceHealthState::kUnhealthy});
  }
  ASSERT_TRUE((*driver)->ReportHealth(reports).ok());
  loop_.Advance(std::chrono::seconds(2));
  std::vector<std::string> tainted;
  for (const api::ObjectPtr& slice : Slices()) {
    for (const api::Value device : (*slice)["spec"]["devices"].elements()) {
      if (!device["taints"].empty()) tainted.emplace_back(device["name"].str());
    }
  }
  EXPECT_THAT(tainted, ::testing::UnorderedElementsAre("gpu-1", "gpu-3"));
  ASSERT_TRUE((*driver)->PublishResources({}).ok());
  loop_.Advance(std::chrono::seconds(2));
  (*driver)->UpdateMetrics();
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("dra_driver_slice_writes{verb=\"create\"} 2"));
  EXPECT_THAT(text, HasSubstr("dra_driver_slice_writes{verb=\"update\"} 2"));
  EXPECT_THAT(text, HasSubstr("dra_driver_slice_writes{verb=\"delete\"} 2"));
  EXPECT_THAT(text, HasSubstr("dra_driver_health_watchers 0"));
}

class GatePublishTest : public PublishTest {
 protected:
  GatePublishTest()
      : PublishTest(*FeatureGates::Create(
            {.turned_on = {Gate::kNodeDeclaredFeatures, Gate::kDRAOptionalNodePreparation}})) {}
};

TEST_F(GatePublishTest, SkippedOperationsAreWrittenAsAList) {
  Pool pool = OneDevice({.name = "license-0"});
  pool.all_nodes = true;
  pool.slices[0].skip_node_operations = {"*"};
  Publish("", pool);
  EXPECT_THAT(errors_, ::testing::IsEmpty());
  const auto slices = Slices();
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(api::WriteJson((*slices[0])["spec"]["skipNodeOperations"]), R"(["*"])");
}

TEST_F(PublishTest, WithTheGateOffTheServersErrorNamesTheField) {
  Pool pool = OneDevice({.name = "license-0"});
  pool.all_nodes = true;
  pool.slices[0].skip_node_operations = {"*"};
  Publish("", pool);
  ASSERT_EQ(errors_.size(), 1u);
  EXPECT_THAT(errors_[0], HasSubstr("spec.skipNodeOperations"));
}

}  // namespace
}  // namespace drakkar::driver
