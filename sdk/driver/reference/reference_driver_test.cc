#include "sdk/driver/reference/reference_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/metadata/document.h"
#include "api/tree/draft.h"
#include "base/testing/memory_file_system.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "cdi/spec_reader.h"
#include "cdi/spec_writer.h"
#include "rpc/dra/dra_client.h"
#include "rpc/testing/memory_transport.h"
#include "sdk/driver/testing/claim_client.h"
#include "tests/support/api_server.h"

namespace drakkar::driver {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr char kRegistry[] = "/registry";
constexpr char kSpecDirectory[] = "/cdi";

// A node, a server and the driver on one loop.
class ReferenceDriverTest : public ::testing::Test {
 protected:
  ReferenceDriverTest()
      : server_(loop_, FeatureGates().With(Gate::kDRAOptionalNodePreparation, true)),
        client_(server_.NewClient("driver")),
        transport_(loop_) {
    server_.Create(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"node-1"}})");
  }
  ~ReferenceDriverTest() override { driver_.reset(); }

  void Start(std::string_view yaml = "") {
    auto config = ParseDeviceConfig(yaml);
    ASSERT_TRUE(config.ok()) << config.error().message;
    driver_ = std::make_unique<ReferenceDriver>(
        ReferenceDriver::Options{.loop = loop_,
                                 .random = loop_.random(),
                                 .files = files_,
                                 .client = *client_,
                                 .transport = transport_,
                                 .node_name = "node-1",
                                 .registry_directory = kRegistry,
                                 .plugin_directory = "/plugin",
                                 .cdi_directory = kSpecDirectory,
                                 .device_metadata = device_metadata_,
                                 .devices = *config});
    auto started = driver_->Start();
    ASSERT_TRUE(started.ok()) << started.error().message;
    loop_.RunUntilIdle();
    plugin_ = rpc::DialDraPlugin(transport_, {.endpoint = "/plugin/dra.sock"});
    loop_.RunUntilIdle();
  }

  void Restart(std::string_view yaml = "") {
    plugin_.reset();
    driver_.reset();
    Start(yaml);
  }

  std::vector<api::ObjectPtr> Slices() {
    std::vector<api::ObjectPtr> slices;
    server_.client().List({.kind = testing::KindNamed("ResourceSlice")}, {},
                          [&](client::ListReply reply) { slices = std::move(reply.items); });
    loop_.RunUntilIdle();
    return slices;
  }

  // An allocated, reserved claim; `results` are {request, device}.
  rpc::ClaimReference AllocatedClaim(const std::string& name,
                                     std::vector<std::pair<std::string, std::string>> results,
                                     std::string config = "") {
    server_.Create(StrCat(
        R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":")", name,
        R"(","namespace":"default"},"spec":{"devices":{"requests":[{"name":"gpu","exactly":)",
        R"({"deviceClassName":"sim"}},{"name":"other","exactly":{"deviceClassName":"sim"}}]}}})"));
    api::ObjectPtr claim = server_.Get("ResourceClaim", "default/" + name);
    if (results.empty()) return {"default", std::string(claim->uid()), name};
    api::Draft draft(claim->tree());
    for (const auto& [request, device] : results) {
      draft["status"]["allocation"]["devices"]["results"].Append({{"request", api::Draft(request)},
                                                                  {"driver", "sim.drakkar.io"},
                                                                  {"pool", "node-1"},
                                                                  {"device", api::Draft(device)}});
    }
    if (!config.empty()) {
      draft["status"]["allocation"]["devices"]["config"].Append(
          {{"source", "FromClaim"},
           {"requests", api::Draft::Array({api::Draft("gpu")})},
           {"opaque", {{"driver", "sim.drakkar.io"}, {"parameters", api::Draft::Raw(config)}}}});
    }
    draft["status"]["reservedFor"].Append(
        {{"resource", "pods"}, {"name", "pod"}, {"uid", "pod-uid"}});
    auto reply = server_.Update("ResourceClaim", "default/" + name, "status", draft.Freeze());
    EXPECT_TRUE(reply.ok()) << reply.error->message;
    return {"default", std::string(claim->uid()), name};
  }

  rpc::PrepareResult Prepare(const rpc::ClaimReference& claim) {
    std::optional<Result<rpc::PrepareResults>> answer;
    plugin_->Prepare({claim}, std::chrono::seconds(45),
                     [&](Result<rpc::PrepareResults> results) { answer = std::move(results); });
    loop_.RunUntilIdle();
    EXPECT_TRUE(answer.has_value());
    if (!answer->ok()) return {.error = answer->error().message};
    return (*answer)->at(claim.uid);
  }

  std::string Unprepare(const rpc::ClaimReference& claim) {
    std::optional<Result<rpc::UnprepareResults>> answer;
    plugin_->Unprepare({claim}, std::chrono::seconds(45),
                       [&](Result<rpc::UnprepareResults> results) { answer = std::move(results); });
    loop_.RunUntilIdle();
    EXPECT_TRUE(answer.has_value());
    return answer->ok() ? (*answer)->at(claim.uid).error : answer->error().message;
  }

  cdi::Spec SpecOf(const rpc::ClaimReference& claim) {
    auto text = files_.ReadFile(SpecPath(claim));
    EXPECT_TRUE(text.ok());
    auto spec = cdi::ReadSpecJson(text.ok() ? *text : "");
    EXPECT_TRUE(spec.ok()) << spec.error().message;
    return spec.ok() ? *spec : cdi::Spec();
  }
  std::string SpecPath(const rpc::ClaimReference& claim) {
    return StrCat(kSpecDirectory, "/sim.drakkar.io_claim_", claim.uid, ".json");
  }

  bool device_metadata_ = false;
  SeededLoop loop_;
  testing::TestApiServer server_;
  std::unique_ptr<client::Client> client_;
  rpc::MemoryTransport transport_;
  MemoryFileSystem files_;
  std::unique_ptr<ReferenceDriver> driver_;
  std::unique_ptr<rpc::DraPluginClient> plugin_;
};

TEST_F(ReferenceDriverTest, RegistersWithANode) {
  Start();
  auto node = rpc::MakeRegistrationClient(transport_);
  std::optional<Result<rpc::PluginInfo>> info;
  node->GetInfo("/registry/sim.drakkar.io-reg.sock", std::chrono::seconds(1),
                [&](Result<rpc::PluginInfo> answer) { info = std::move(answer); });
  loop_.RunUntilIdle();
  ASSERT_TRUE(info && info->ok());
  EXPECT_EQ((*info)->type, "DRAPlugin");
  EXPECT_EQ((*info)->name, "sim.drakkar.io");
  EXPECT_EQ((*info)->endpoint, "/plugin/dra.sock");
  EXPECT_THAT(
      (*info)->supported_versions,
      ElementsAre("v1.DRAPlugin", "v1beta1.DRAPlugin", "drakkar.v1.PrepareAnnouncements",
                  "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth", "v1alpha1.NodeHealth"));
  EXPECT_FALSE(driver_->driver()->registration_status().has_value());
  // A node deletes the slices of its drivers when it starts; the registration restores them.
  server_.Delete("ResourceSlice", std::string(Slices().front()->name()));
  node->NotifyRegistrationStatus("/registry/sim.drakkar.io-reg.sock", {.plugin_registered = true},
                                 std::chrono::seconds(5), [](Result<void>) {});
  loop_.RunUntilIdle();
  EXPECT_TRUE(driver_->driver()->registration_status()->plugin_registered);
  EXPECT_EQ(Slices().size(), 1u);
}

TEST_F(ReferenceDriverTest, PublishesWhichOperationsTheNodeSkips) {
  Start("skipNodeOperations: [NodeUnprepareResources]\n");
  const auto slices = Slices();
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ((*slices.front())["spec"]["skipNodeOperations"].at(0).str(), "NodeUnprepareResources");
}

TEST_F(ReferenceDriverTest, PublishesOnePoolNamedAfterTheNode) {
  Start("attributes: {model: Longship, generation: 2}\ncapacity: {memory: 16Gi}\n");
  const auto slices = Slices();
  ASSERT_EQ(slices.size(), 1u);
  const api::Object& slice = *slices.front();
  EXPECT_TRUE(slice.name().starts_with("00000-sim.drakkar.io-node-1-")) << slice.name();
  const api::Value spec = slice["spec"];
  EXPECT_EQ(spec["driver"].str(), "sim.drakkar.io");
  EXPECT_EQ(spec["nodeName"].str(), "node-1");
  EXPECT_EQ(spec["pool"]["name"].str(), "node-1");
  EXPECT_EQ(spec["pool"]["generation"].integer(), 1);
  EXPECT_EQ(spec["pool"]["resourceSliceCount"].integer(), 1);
  ASSERT_EQ(spec["devices"].size(), 4u);
  EXPECT_EQ(spec["devices"].at(3)["name"].str(), "sim-3");
  EXPECT_EQ(spec["devices"].at(0)["attributes"].Entry("model")["string"].str(), "Longship");
  EXPECT_EQ(spec["devices"].at(0)["attributes"]["generation"]["int"].integer(), 2);
  EXPECT_EQ(spec["devices"].at(0)["capacity"].Entry("memory")["value"].str(), "16Gi");
  const api::Value owner = slice["metadata"]["ownerReferences"].at(0);
  EXPECT_EQ(owner["kind"].str(), "Node");
  EXPECT_EQ(owner["uid"].str(), server_.Get("Node", "node-1")->uid());
  EXPECT_TRUE(owner["controller"].boolean());
}

TEST_F(ReferenceDriverTest, GivesAClaimItsDevicesThroughCdi) {
  Start("attributes: {model: Longship 8}\ncapacity: {memory: 16Gi}\n");
  const auto claim = AllocatedClaim("a", {{"gpu", "sim-0"}, {"gpu", "sim-2"}, {"other", "sim-1"}},
                                    R"({"mode":"fast"})");
  const rpc::PrepareResult result = Prepare(claim);
  EXPECT_EQ(result.error, "");
  ASSERT_EQ(result.devices.size(), 3u);
  EXPECT_THAT(result.devices[0].cdi_device_ids,
              ElementsAre("sim.drakkar.io/claim=" + claim.uid + "-gpu"));
  EXPECT_TRUE(result.devices[1].cdi_device_ids.empty());
  EXPECT_EQ(result.devices[1].device_name, "sim-2");
  EXPECT_THAT(result.devices[2].cdi_device_ids,
              ElementsAre("sim.drakkar.io/claim=" + claim.uid + "-other"));

  const cdi::Spec spec = SpecOf(claim);
  EXPECT_EQ(spec.kind, "sim.drakkar.io/claim");
  ASSERT_EQ(spec.devices.size(), 2u);
  const cdi::ContainerEdits& edits = spec.devices[0].container_edits;
  EXPECT_THAT(edits.env, Contains("DRAKKAR_DEVICES=sim-0,sim-2"));
  EXPECT_THAT(edits.env, Contains("DRAKKAR_DEVICE_GPU=sim-0,sim-2"));
  EXPECT_THAT(edits.env, Contains("DRAKKAR_SIM_2_MODEL=Longship 8"));
  EXPECT_THAT(edits.env, Contains(R"(DRAKKAR_CONFIG_GPU={"mode":"fast"})"));
  ASSERT_EQ(edits.mounts.size(), 2u);
  EXPECT_EQ(edits.mounts[0].container_path, "/var/run/drakkar/devices/sim-0");
  EXPECT_THAT(edits.mounts[0].options, ElementsAre("ro", "bind"));
  EXPECT_EQ(*files_.ReadFile(edits.mounts[0].host_path + "/model"), "Longship 8\n");
  EXPECT_EQ(*files_.ReadFile(edits.mounts[0].host_path + "/memory"), "16Gi\n");
  EXPECT_EQ(files_.Stat(SpecPath(claim))->mode, 0644u);
  EXPECT_THAT(spec.annotations, ElementsAre(Pair("sim.drakkar.io/claim", "default/a"),
                                            Pair("sim.drakkar.io/devices", "sim-0,sim-2,sim-1")));
  EXPECT_THAT(spec.devices[1].container_edits.env, Contains("DRAKKAR_DEVICES=sim-1"));
}

TEST_F(ReferenceDriverTest, PrepareIsIdempotentAndSurvivesARestart) {
  Start();
  const auto claim = AllocatedClaim("a", {{"gpu", "sim-0"}});
  const rpc::PrepareResult first = Prepare(claim);
  EXPECT_EQ(first.error, "");
  const std::string text = *files_.ReadFile(SpecPath(claim));
  EXPECT_EQ(Prepare(claim), first);
  Restart();
  EXPECT_EQ(*files_.ReadFile(SpecPath(claim)), text);
  EXPECT_EQ(Prepare(claim), first);
  EXPECT_EQ(*files_.ReadFile(SpecPath(claim)), text);
  EXPECT_EQ(Slices().size(), 1u);
  EXPECT_EQ(Slices().front()->root()["spec"]["pool"]["generation"].integer(), 1);
}

TEST_F(ReferenceDriverTest, UnprepareRemovesEverythingAndAcceptsUnknownClaims) {
  Start();
  const auto claim = AllocatedClaim("a", {{"gpu", "sim-0"}});
  EXPECT_EQ(Prepare(claim).error, "");
  EXPECT_EQ(Unprepare(claim), "");
  EXPECT_FALSE(files_.Exists(SpecPath(claim)));
  EXPECT_THAT(*files_.ListDirectory(kSpecDirectory), IsEmpty());
  EXPECT_EQ(Unprepare(claim), "");
  EXPECT_EQ(Unprepare({"default", "never-seen", "b"}), "");
  EXPECT_EQ(Unprepare({"default", "../../etc", "b"}), "");
}

TEST_F(ReferenceDriverTest, LeftoversAreRemovedAtStartIfTheClaimIsGone) {
  Start();
  const auto gone = AllocatedClaim("gone", {{"gpu", "sim-0"}});
  const auto stays = AllocatedClaim("stays", {{"gpu", "sim-1"}});
  EXPECT_EQ(Prepare(gone).error, "");
  EXPECT_EQ(Prepare(stays).error, "");
  server_.Delete("ResourceClaim", "default/gone");
  api::ObjectPtr claim = server_.Get("ResourceClaim", "default/gone");
  if (claim != nullptr) {
    api::Draft draft(claim->tree());
    draft["metadata"]["finalizers"] = api::Draft::Array();
    server_.Update("ResourceClaim", "default/gone", "", draft.Freeze());
  }
  ASSERT_EQ(server_.Get("ResourceClaim", "default/gone"), nullptr);
  ASSERT_TRUE(files_.WriteFile("/cdi/sim.drakkar.io_claim_stray.json", "{}", 0644).ok());
  ASSERT_TRUE(files_.WriteFile("/cdi/other.io_claim_stray.json", "{}", 0644).ok());
  ASSERT_TRUE(files_.WriteFile("/cdi/a.json", "{}", 0644).ok());
  ASSERT_TRUE(files_.WriteFile("/cdi/sim.drakkar.io_claim_stray.yaml", "{}", 0644).ok());
  Restart();
  EXPECT_FALSE(files_.Exists(SpecPath(gone)));
  EXPECT_FALSE(files_.Exists("/cdi/sim.drakkar.io_claim_stray.json"));
  EXPECT_TRUE(files_.Exists(SpecPath(stays)));
  EXPECT_TRUE(files_.Exists("/cdi/other.io_claim_stray.json"));
  EXPECT_TRUE(files_.Exists("/cdi/a.json"));
  EXPECT_TRUE(files_.Exists("/cdi/sim.drakkar.io_claim_stray.yaml"));
}

TEST_F(ReferenceDriverTest, ClaimsOfAnOlderDriverAreFoundByTheirRecords) {
  Start();
  const auto gone = AllocatedClaim("gone", {{"gpu", "sim-0"}});
  const auto stays = AllocatedClaim("stays", {{"gpu", "sim-1"}});
  ASSERT_TRUE(files_.MakeDirectories("/plugin/claims", 0755).ok());
  for (const auto& claim : {gone, stays}) {
    EXPECT_EQ(Prepare(claim).error, "");
    cdi::Spec spec = SpecOf(claim);
    spec.annotations.clear();
    ASSERT_TRUE(files_.WriteFile(SpecPath(claim), cdi::WriteSpecJson(spec), 0644).ok());
    ASSERT_TRUE(files_
                    .WriteFile(StrCat("/plugin/claims/", claim.uid, ".json"),
                               StrCat(R"({"namespace":"default","name":")", claim.name,
                                      R"(","uid":")", claim.uid, R"(","devices":["sim-1"]})"),
                               0600)
                    .ok());
  }
  const auto release = [&](const std::string& key) {
    server_.Delete("ResourceClaim", key);
    if (api::ObjectPtr claim = server_.Get("ResourceClaim", key); claim != nullptr) {
      api::Draft draft(claim->tree());
      draft["metadata"]["finalizers"] = api::Draft::Array();
      server_.Update("ResourceClaim", key, "", draft.Freeze());
    }
  };
  release("default/gone");
  Restart();
  EXPECT_FALSE(files_.Exists(SpecPath(gone)));
  EXPECT_TRUE(files_.Exists(SpecPath(stays)));
  EXPECT_THAT(*files_.ListDirectory("/plugin/claims"), ElementsAre(stays.uid + ".json"));
  EXPECT_EQ(Unprepare(stays), "");
  EXPECT_THAT(*files_.ListDirectory("/plugin/claims"), IsEmpty());
}

// The server's response to the driver's request at start arrives when the claim is in use again.
TEST(ReferenceDriverLeftovers, ALateResponseRemovesNothing) {
  SeededLoop loop;
  MemoryFileSystem files;
  rpc::MemoryTransport transport(loop);
  ClaimClient client(loop);
  const auto put = [&](bool reserved) {
    client.PutJson(
        StrCat(R"({"metadata":{"name":"a","namespace":"ns","uid":"u1"},"status":{)",
               reserved ? R"("reservedFor":[{"resource":"pods","name":"p","uid":"p"}],)" : "",
               R"("allocation":{"devices":{"results":[{"request":"gpu","driver":)",
               R"("sim.drakkar.io","pool":"node-1","device":"sim-0"}]}}}})"));
  };
  const auto start = [&] {
    auto driver = std::make_unique<ReferenceDriver>(
        ReferenceDriver::Options{.loop = loop,
                                 .random = loop.random(),
                                 .files = files,
                                 .client = client,
                                 .transport = transport,
                                 .node_name = "node-1",
                                 .registry_directory = kRegistry,
                                 .plugin_directory = "/plugin",
                                 .cdi_directory = kSpecDirectory,
                                 .devices = *ParseDeviceConfig("")});
    EXPECT_TRUE(driver->Start().ok());
    loop.RunUntilIdle();
    return driver;
  };
  const auto prepare = [&] {
    auto node = rpc::DialDraPlugin(transport, {.endpoint = "/plugin/dra.sock"});
    std::string error = "no answer";
    node->Prepare({{"ns", "u1", "a"}}, std::chrono::seconds(45),
                  [&](auto results) { error = results->at("u1").error; });
    loop.RunUntilIdle();
    return error;
  };
  const std::string spec = StrCat(kSpecDirectory, "/sim.drakkar.io_claim_u1.json");
  put(true);
  auto driver = start();
  EXPECT_EQ(prepare(), "");
  driver.reset();
  put(false);
  client.slow = true;
  driver = start();
  client.slow = false;
  put(true);
  EXPECT_EQ(prepare(), "");
  client.Release();
  loop.RunUntilIdle();
  EXPECT_TRUE(files.Exists(spec));
  driver.reset();
  put(false);
  driver = start();
  EXPECT_FALSE(files.Exists(spec));
}

TEST_F(ReferenceDriverTest, DirectoriesOfRemovedDevicesAreRemovedAtStartUnlessAClaimHoldsThem) {
  Start("count: 2\n");
  const auto ended = AllocatedClaim("ended", {{"gpu", "sim-0"}});
  const auto stays = AllocatedClaim("stays", {{"gpu", "sim-1"}});
  EXPECT_EQ(Prepare(ended).error, "");
  EXPECT_EQ(Prepare(stays).error, "");
  EXPECT_EQ(Unprepare(ended), "");
  EXPECT_THAT(*files_.ListDirectory("/plugin/devices"), ElementsAre("sim-0", "sim-1"));
  Restart("count: 1\nnamePrefix: new-\n");
  EXPECT_THAT(*files_.ListDirectory("/plugin/devices"), ElementsAre("sim-1"));
}

TEST_F(ReferenceDriverTest, RejectsDevicesItDoesNotHave) {
  Start("count: 1\n");
  EXPECT_THAT(Prepare(AllocatedClaim("a", {{"gpu", "sim-7"}})).error,
              HasSubstr("device sim-7 does not exist"));
  EXPECT_THAT(Prepare(AllocatedClaim("b", {})).error, HasSubstr("not allocated"));
}

TEST_F(ReferenceDriverTest, EveryFailedFileCallFailsPrepareAndTheNextOneRepairsIt) {
  Start();
  const auto claim = AllocatedClaim("a", {{"gpu", "sim-0"}});
  EXPECT_EQ(Prepare(claim).error, "");
  const std::string text = *files_.ReadFile(SpecPath(claim));
  bool failed_once = false;
  for (std::size_t n = 0; n < 200; ++n) {
    EXPECT_EQ(Unprepare(claim), "");
    files_.FailCall(n);
    const std::size_t before = files_.calls();
    const std::string error = Prepare(claim).error;
    const bool reached = files_.calls() - before > n;
    files_.FailCall(SIZE_MAX - files_.calls() - 1);
    failed_once = failed_once || !error.empty();
    EXPECT_EQ(Prepare(claim).error, "");
    EXPECT_EQ(*files_.ReadFile(SpecPath(claim)), text);
    if (!reached) break;
  }
  EXPECT_TRUE(failed_once);
}

TEST_F(ReferenceDriverTest, UnhealthyDevicesAreReportedAndTainted) {
  Start("count: 2\ndevices: [{name: sim-1, health: Unhealthy, message: fan stuck}]\n");
  const auto slices = Slices();
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ((*slices[0])["spec"]["devices"].at(1)["taints"].at(0)["key"].str(),
            "sim.drakkar.io/unhealthy");
  rpc::HealthReport report;
  auto stream =
      plugin_->WatchHealth(rpc::HealthService::kV1,
                           {.on_report = [&](rpc::HealthReport got) { report = std::move(got); }});
  loop_.RunUntilIdle();
  ASSERT_EQ(report.size(), 2u);
  EXPECT_EQ(report[0].health, rpc::DeviceHealthState::kHealthy);
  EXPECT_EQ(report[1].health, rpc::DeviceHealthState::kUnhealthy);
  EXPECT_EQ(report[1].message, "fan stuck");
}

TEST_F(ReferenceDriverTest, ADeviceThatFailsIsTaintedByOneWriteAndFreedWhenItRecovers) {
  Start("count: 2\n");
  using State = rpc::DeviceHealthState;
  const auto report = [&](State state) {
    EXPECT_TRUE(
        driver_->driver()
            ->ReportHealth({{.pool_name = "node-1", .device_name = "sim-1", .health = state}})
            .ok());
    loop_.RunUntilIdle();
    return (*Slices()[0])["spec"]["devices"].at(1)["taints"].size();
  };
  const auto updates = [&] { return driver_->driver()->slices()->counts().updates; };
  EXPECT_EQ(report(State::kUnhealthy), 1u);
  EXPECT_EQ(updates(), 1u);
  EXPECT_EQ(report(State::kUnhealthy), 1u);
  EXPECT_EQ(updates(), 1u);
  EXPECT_EQ(report(State::kHealthy), 0u);
  EXPECT_EQ(updates(), 2u);
}

TEST_F(ReferenceDriverTest, OtherDevicesReplaceThePublishedOnes) {
  Start("count: 2\n");
  auto config = ParseDeviceConfig("count: 3\n");
  EXPECT_TRUE(driver_->SetDevices(*config).ok());
  loop_.RunUntilIdle();
  const auto slices = Slices();
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ((*slices[0])["spec"]["devices"].size(), 3u);
}

TEST_F(ReferenceDriverTest, ContainersSeeTheAttributesAndTheirChanges) {
  device_metadata_ = true;
  Start("attributes: {model: Longship 8}\ncount: 2");
  const rpc::ClaimReference claim = AllocatedClaim("a", {{"gpu", "sim-0"}, {"other", "sim-1"}});
  const rpc::PrepareResult result = Prepare(claim);
  ASSERT_EQ(result.error, "");
  EXPECT_THAT(result.devices[0].cdi_device_ids,
              ::testing::Contains(StrCat("sim.drakkar.io/metadata=", claim.uid, "_gpu")));
  const auto read = [&](std::string_view request) {
    return *metadata::DecodeMetadata(*files_.ReadFile(
        StrCat("/plugin/dra-device-metadata/default_a/", request, "/metadata.json")));
  };
  EXPECT_EQ(read("gpu").requests[0].devices[0].attributes.at("model"),
            AttributeValue(std::string("Longship 8")));
  ASSERT_TRUE(driver_
                  ->SetDevices(*ParseDeviceConfig(
                      "attributes: {model: Longship 8}\ncount: 2\n"
                      "devices: [{name: sim-0, attributes: {model: Longship 9}}]"))
                  .ok());
  EXPECT_EQ(read("gpu").generation, 2);
  EXPECT_EQ(read("gpu").requests[0].devices[0].attributes.at("model"),
            AttributeValue(std::string("Longship 9")));
  EXPECT_EQ(read("other").generation, 1) << "nothing changed there";
  EXPECT_EQ(Unprepare(claim), "");
  EXPECT_FALSE(files_.Exists("/plugin/dra-device-metadata/default_a"));
}

TEST_F(ReferenceDriverTest, DeferredMetadataIsWrittenWithTheNextSetDevices) {
  device_metadata_ = true;
  Start("deferMetadata: true");
  Prepare(AllocatedClaim("a", {{"gpu", "sim-0"}}));
  const std::string path = "/plugin/dra-device-metadata/default_a/gpu/metadata.json";
  EXPECT_EQ(*files_.ReadFile(path), "");
  ASSERT_TRUE(driver_->SetDevices(*ParseDeviceConfig("attributes: {model: late}")).ok());
  EXPECT_EQ(metadata::DecodeMetadata(*files_.ReadFile(path))->generation, 1);
}

}  // namespace
}  // namespace drakkar::driver
