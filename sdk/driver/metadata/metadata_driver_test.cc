// Device metadata through the whole driver: the node's calls, the flag, restarts, leftovers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "api/metadata/document.h"
#include "base/env/file_system.h"
#include "base/testing/memory_file_system.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "rpc/dra/dra_client.h"
#include "rpc/testing/memory_transport.h"
#include "sdk/driver/driver.h"
#include "sdk/driver/testing/claim_client.h"
#include "sdk/driver/testing/driver_fixture.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Duration kTimeout = std::chrono::seconds(45);
constexpr char kFile[] =
    "/kubelet/plugins/d.example.com/dra-device-metadata/ns_a/gpu/metadata.json";

// Holds claims in namespace "ns".
class GpuClaims final : public ClaimClient {
 public:
  using ClaimClient::ClaimClient;
  void Put(const std::string& name, const std::string& uid, bool reserved = true,
           const std::string& driver = "d.example.com") {
    PutJson(StrCat(R"({"metadata":{"name":")", name, R"(","namespace":"ns","uid":")", uid,
                   R"("},"status":{)",
                   reserved ? R"("reservedFor":[{"resource":"pods","name":"p","uid":"p"}],)" : "",
                   R"("allocation":{"devices":{"results":[{"request":"gpu","driver":")", driver,
                   R"(","pool":"node","device":"gpu-0"}]}}}})"));
  }
  void Remove(const std::string& name) { Erase("ns", name); }

  // Any request other than for claims.
  int other_calls = 0;
  void List(client::ResourceRef, client::ListOptions,
            std::function<void(client::ListReply)>) override {
    ++other_calls;
  }
  void Create(client::ResourceRef, api::TreePtr, client::WriteOptions,
              client::ReplyCallback) override {
    ++other_calls;
  }
  void Update(client::ResourceRef, api::TreePtr, client::WriteOptions,
              client::ReplyCallback) override {
    ++other_calls;
  }
  void Patch(client::ResourceRef, client::PatchType, std::string, client::WriteOptions,
             client::ReplyCallback) override {
    ++other_calls;
  }
};

class GpuPlugin final : public SynchronousPlugin {
 public:
  Result<std::vector<PreparedDevice>> PrepareResourceClaim(const api::Object&) override {
    PreparedDevice device{.request_names = {"gpu"}, .pool_name = "node", .device_name = "gpu-0"};
    device.metadata = metadata;
    return std::vector{device};
  }
  Result<void> UnprepareResourceClaim(const rpc::ClaimReference&) override {
    if (busy) return FailedPrecondition("the device is busy");
    return Ok();
  }
  void HandleError(const Error& error, bool) override { errors.push_back(error.message); }

  std::optional<DeviceMetadata> metadata = DeviceMetadata{{{"model", std::string("x")}}, {}};
  bool busy = false;
  std::vector<std::string> errors;
};

class MetadataDriverTest : public DriverFixture<GpuClaims, GpuPlugin> {
 protected:
  MetadataDriverTest() { client_.Put("a", "uid-a"); }

  void Start(bool enabled = true) {
    DriverOptions options = Options();
    options.device_metadata = enabled;
    StartDriver(std::move(options));
  }
  rpc::PrepareResult Prepare(const std::string& name = "a") {
    rpc::PrepareResult result{.error = "no answer"};
    node_->Prepare({{"ns", "uid-" + name, name}}, kTimeout, [&](auto results) {
      if (results.ok()) result = results->at("uid-" + name);
    });
    loop_.RunUntilIdle();
    return result;
  }
  std::string Unprepare(const std::string& name = "a") {
    std::string error = "no answer";
    node_->Unprepare({{"ns", "uid-" + name, name}}, kTimeout, [&](auto results) {
      if (results.ok()) error = results->at("uid-" + name).error;
    });
    loop_.RunUntilIdle();
    return error;
  }
  Result<void> Update(const std::string& model) {
    PreparedDevice device{.pool_name = "node", .device_name = "gpu-0"};
    device.metadata = DeviceMetadata{{{"model", model}}, {}};
    MetadataUpdater& updater = *driver_;
    return updater.UpdateRequestMetadata({"ns", "a", "uid-a", "gpu"}, {device});
  }
  std::int64_t Generation() {
    auto text = files_.ReadFile(kFile);
    if (!text.ok()) return -1;
    auto decoded = metadata::DecodeMetadata(*text);
    return decoded.ok() ? decoded->generation : 0;
  }
};

TEST_F(MetadataDriverTest, PrepareReturnsTheMountAndUnprepareRemovesIt) {
  Start();
  const rpc::PrepareResult result = Prepare();
  EXPECT_EQ(result.error, "");
  ASSERT_EQ(result.devices.size(), 1u);
  EXPECT_THAT(result.devices[0].cdi_device_ids, ElementsAre("d.example.com/metadata=uid-a_gpu"));
  EXPECT_EQ(Generation(), 1);
  plugin_.busy = true;
  EXPECT_EQ(Unprepare(), "the device is busy");
  EXPECT_EQ(Generation(), 1) << "a prepared claim keeps its metadata";
  plugin_.busy = false;
  EXPECT_EQ(Unprepare(), "");
  EXPECT_EQ(Generation(), -1);
  EXPECT_THAT(*files_.ListDirectory("/cdi"), IsEmpty());
  EXPECT_FALSE(Update("late").ok());
}

TEST_F(MetadataDriverTest, NothingIsWrittenIfTheFlagIsOff) {
  Start(false);
  const rpc::PrepareResult result = Prepare();
  EXPECT_EQ(result.error, "");
  EXPECT_THAT(result.devices[0].cdi_device_ids, IsEmpty());
  EXPECT_FALSE(files_.Exists("/kubelet/plugins/d.example.com/dra-device-metadata"));
  EXPECT_FALSE(files_.Exists("/kubelet/plugins/d.example.com/dra-device-metadata-records"));
  EXPECT_FALSE(files_.Exists("/cdi"));
  EXPECT_EQ(Update("x").error().message, "device metadata is not enabled");
}

TEST_F(MetadataDriverTest, OnlyMetadataFromPrepareIsWrittenNeverPublishedAttributes) {
  Start();
  Slice slice;
  slice.devices.push_back({.name = "gpu-0", .attributes = {{"published", std::string("secret")}}});
  DriverResources resources;
  resources.pools["node"].slices = {slice};
  ASSERT_TRUE(driver_->PublishResources(resources).ok());
  plugin_.metadata = DeviceMetadata{};
  Prepare();
  const std::string text = *files_.ReadFile(kFile);
  EXPECT_THAT(text, HasSubstr("gpu-0"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("secret")));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("attributes")));
}

// The claim is fetched once, as without metadata; updates and clean-up make no requests.
TEST_F(MetadataDriverTest, MetadataMakesNoCallsToTheApiServer) {
  std::vector<std::size_t> reads;
  for (const bool enabled : {false, true}) {
    Start(enabled);
    client_.versions_asked.clear();
    client_.other_calls = 0;
    Prepare();
    static_cast<void>(Update("y"));
    Unprepare();
    reads.push_back(client_.versions_asked.size());
    EXPECT_EQ(client_.other_calls, 0);
  }
  EXPECT_THAT(reads, ElementsAre(1u, 1u));
}

TEST_F(MetadataDriverTest, FilesWrittenWhileTheFlagWasOnStayUntilUnprepare) {
  Start(true);
  Prepare();
  Start(false);
  Prepare();
  EXPECT_EQ(Generation(), 1) << "running pods keep theirs";
  EXPECT_EQ(Unprepare(), "");
  EXPECT_EQ(Generation(), -1);
  EXPECT_THAT(*files_.ListDirectory("/cdi"), IsEmpty());
  Start(true);
  Prepare();
  EXPECT_EQ(Generation(), 1) << "and on again";
}

TEST_F(MetadataDriverTest, AWriteFailureFailsOnlyThatClaim) {
  Start();
  client_.Put("b", "uid-b");
  ASSERT_TRUE(
      files_.WriteFile("/kubelet/plugins/d.example.com/dra-device-metadata", "", 0644).ok());
  const rpc::PrepareResult result = Prepare();
  EXPECT_THAT(result.error, HasSubstr("write device metadata: request \"gpu\": "));
  EXPECT_THAT(result.devices, IsEmpty());
  ASSERT_TRUE(files_.Remove("/kubelet/plugins/d.example.com/dra-device-metadata").ok());
  EXPECT_EQ(Prepare().error, "") << "the node retries";
}

TEST_F(MetadataDriverTest, UpdatesContinueAfterARestartOfTheDriver) {
  plugin_.metadata.reset();
  Start();
  Prepare();
  EXPECT_EQ(Generation(), 0) << "mounted, empty";
  ASSERT_TRUE(Update("x").ok());
  EXPECT_EQ(Generation(), 1);
  Start();
  ASSERT_TRUE(Update("y").ok());
  EXPECT_EQ(Generation(), 2);
  Prepare();
  EXPECT_EQ(Generation(), 2);
  driver_->Stop();
  EXPECT_FALSE(Update("z").ok());
}

TEST_F(MetadataDriverTest, LeftoversAreRemovedAtStartIfTheirClaimNoLongerNeedsThem) {
  const auto restart_with = [&](auto change) {
    client_.Put("a", "uid-a");
    client_.reachable = true;
    Start();
    Prepare();
    EXPECT_EQ(Generation(), 1);
    driver_.reset();
    change();
    Start();
    const bool kept = Generation() == 1;
    client_.reachable = true;
    Unprepare();
    EXPECT_EQ(Generation(), -1);
    return kept;
  };
  EXPECT_TRUE(restart_with([] {})) << "in use";
  EXPECT_FALSE(restart_with([&] { client_.Remove("a"); })) << "gone";
  EXPECT_FALSE(restart_with([&] { client_.Put("a", "another"); })) << "replaced";
  EXPECT_FALSE(restart_with([&] { client_.Put("a", "uid-a", false); })) << "not reserved";
  EXPECT_TRUE(restart_with([&] {
    client_.Remove("a");
    client_.reachable = false;
  })) << "unknown";
  EXPECT_THAT(plugin_.errors, IsEmpty());
}

// The request is sent before another instance of the rolling update prepares the claim, and
// answered afterwards. This instance does not know about that.
TEST_F(MetadataDriverTest, AStaleResponseRemovesNothing) {
  Start();
  Prepare();
  client_.Put("a", "uid-a", false);
  client_.slow = true;
  Start();
  client_.Put("a", "uid-a", true);
  client_.Release();
  loop_.RunUntilIdle();
  EXPECT_EQ(Generation(), 1);
}

TEST_F(MetadataDriverTest, LeftoversAreCheckedWhileNoCallIsServed) {
  Start();
  Prepare();
  client_.Put("a", "uid-a", false);
  client_.slow = true;
  Start();
  client_.Release();
  client_.slow = true;
  loop_.RunUntilIdle();  // the first response has arrived, the second is pending
  client_.Put("a", "uid-a", true);
  std::string unprepared = "no answer";
  node_->Unprepare({{"ns", "uid-b", "b"}}, kTimeout,
                   [&](auto results) { unprepared = results->at("uid-b").error; });
  loop_.RunUntilIdle();
  EXPECT_EQ(unprepared, "no answer");
  loop_.Advance(std::chrono::seconds(5));
  EXPECT_EQ(unprepared, "") << "calls wait for the server, but only briefly";
  client_.Release();
  loop_.Advance(std::chrono::seconds(2));
  EXPECT_EQ(Generation(), 1);
}

// Keeps the calls for claims in `stuck` and answers the others.
class StuckPlugin final : public Plugin {
 public:
  void PrepareResourceClaims(std::vector<api::ObjectPtr> claims, PrepareDone done) override {
    prepared.emplace_back(claims.front()->name());
    if (stuck == claims.front()->name()) return kept.push_back(std::move(done));
    PrepareResults results;
    results.emplace(std::string(claims.front()->uid()),
                    std::vector<PreparedDevice>{
                        {.request_names = {"gpu"}, .pool_name = "node", .device_name = "gpu-0"}});
    done(std::move(results));
  }
  void UnprepareResourceClaims(std::vector<rpc::ClaimReference> claims,
                               rpc::UnprepareDone done) override {
    rpc::UnprepareResults results;
    for (const rpc::ClaimReference& claim : claims) results[claim.uid] = {};
    done(std::move(results));
  }

  std::string stuck;
  std::vector<std::string> prepared;
  std::vector<PrepareDone> kept;
};

class StuckDriverTest : public DriverFixture<GpuClaims, StuckPlugin> {
 protected:
  void Start() {
    DriverOptions options = Options();
    options.device_metadata = true;
    StartDriver(std::move(options));
  }
  void Prepare(const std::string& name) {
    client_.Put(name, "uid-" + name);
    node_->Prepare({{"ns", "uid-" + name, name}}, kTimeout, [](auto) {});
    loop_.RunUntilIdle();
  }
};

TEST_F(StuckDriverTest, ACallThatIsNeverAnsweredDelaysTheCheckOfLeftoversButNoOtherCall) {
  Start();
  Prepare("a");
  ASSERT_TRUE(files_.Exists(kFile));
  client_.Remove("a");
  plugin_.stuck = "s";
  client_.slow = true;
  Start();  // asks for "a"
  client_.slow = false;
  Prepare("s");
  client_.Release();
  loop_.RunUntilIdle();  // the answer says that "a" is gone; to be asked again while nothing runs
  Prepare("b");
  EXPECT_THAT(plugin_.prepared, ElementsAre("a", "s", "b"));
  EXPECT_TRUE(files_.Exists(kFile));
  std::exchange(plugin_.kept, {}).clear();
  loop_.RunUntilIdle();
  EXPECT_FALSE(files_.Exists(kFile));
}

TEST_F(MetadataDriverTest, UndecidedLeftoversAreCheckedAgainWithoutARestart) {
  Start();
  Prepare();
  client_.Remove("a");
  client_.reachable = false;
  Start();
  loop_.Advance(std::chrono::minutes(20));
  EXPECT_EQ(Generation(), 1);
  EXPECT_LT(client_.versions_asked.size(), 20u) << "with back-off";
  client_.reachable = true;
  loop_.Advance(std::chrono::minutes(7));
  EXPECT_EQ(Generation(), -1);
  EXPECT_THAT(*files_.ListDirectory("/cdi"), IsEmpty());
}

TEST_F(MetadataDriverTest, AFailureToRemoveFilesFailsTheUnprepare) {
  Start();
  Prepare();
  ASSERT_TRUE(files_.RemoveTree("/cdi").ok());
  ASSERT_TRUE(files_.WriteFile("/cdi", "not a directory", 0644).ok());
  EXPECT_THAT(Unprepare(), HasSubstr("clean up device metadata"));
  ASSERT_TRUE(files_.Remove("/cdi").ok());
  EXPECT_EQ(Unprepare(), "") << "the node retries";
  EXPECT_EQ(Generation(), -1);
}

TEST_F(MetadataDriverTest, ALeftoverThatIsPreparedAgainIsNoLongerChecked) {
  Start();
  Prepare();
  client_.reachable = false;
  Start();  // undecided
  client_.reachable = true;
  EXPECT_EQ(Prepare().error, "");
  client_.Put("a", "uid-a", false);
  loop_.Advance(std::chrono::minutes(20));
  EXPECT_EQ(Generation(), 1) << "the node unprepares it";
}

TEST_F(MetadataDriverTest, ALeftoverThatCannotBeRemovedIsReported) {
  Start();
  Prepare();
  client_.Remove("a");
  driver_.reset();
  client_.slow = true;
  Start();
  ASSERT_TRUE(files_.RemoveTree("/cdi").ok());
  ASSERT_TRUE(files_.WriteFile("/cdi", "not a directory", 0644).ok());
  client_.slow = false;
  client_.Release();
  loop_.RunUntilIdle();
  EXPECT_THAT(plugin_.errors,
              ::testing::Contains(HasSubstr("remove device metadata of claim ns/a")));
}

TEST_F(MetadataDriverTest, LeftoversWithoutAReadableUidAreRemovedWithTheirSpecs) {
  const std::string record = "/kubelet/plugins/d.example.com/dra-device-metadata-records/ns_a";
  const auto restart_with = [&](auto change) {
    client_.Put("a", "uid-a");
    Start();
    Prepare();
    driver_.reset();
    EXPECT_TRUE(files_.WriteFile(record, "{", 0600).ok());
    EXPECT_TRUE(files_.WriteFile(kFile, "{", 0644).ok());
    change();
    Start();
    const bool kept = files_.Exists(kFile);
    EXPECT_EQ(files_.ListDirectory("/cdi")->empty(), !kept);
    return kept;
  };
  EXPECT_FALSE(restart_with([&] { client_.Remove("a"); })) << "gone";
  EXPECT_FALSE(restart_with([&] { client_.Put("a", "uid-a", false); })) << "not reserved";
  EXPECT_TRUE(restart_with([] {})) << "in use";
}

TEST_F(MetadataDriverTest, FailuresWithLeftoversAreReportedAndCounted) {
  Start();
  Prepare();
  driver_.reset();
  Metrics metrics;
  DriverOptions options = Options();
  options.metrics = &metrics;
  ASSERT_TRUE(
      files_.MakeDirectories("/kubelet/plugins/d.example.com/dra-device-metadata-claims/ns_a", 0700)
          .ok());
  ASSERT_TRUE(
      files_
          .WriteFile("/kubelet/plugins/d.example.com/dra-device-metadata-claims/ns_a/gpu.update",
                     "", 0600)
          .ok());
  ASSERT_TRUE(files_.RemoveTree("/kubelet/plugins/d.example.com/dra-device-metadata").ok());
  ASSERT_TRUE(
      files_.WriteFile("/kubelet/plugins/d.example.com/dra-device-metadata", "", 0600).ok());
  StartDriver(std::move(options));
  EXPECT_THAT(plugin_.errors, ::testing::Not(IsEmpty()));
  EXPECT_THAT(metrics.Text(),
              HasSubstr("dra_driver_background_errors_total{recoverable=\"true\"}"));
}

TEST_F(MetadataDriverTest, PreparedRequestsNameTheirPodsEvenAfterARestart) {
  plugin_.metadata.reset();
  Start();
  Prepare();
  Start();
  auto requests = driver_->PreparedRequests();
  ASSERT_TRUE(requests.ok());
  ASSERT_EQ(requests->size(), 1u);
  EXPECT_THAT(requests->front().pod_uids, ElementsAre("p"));
  EXPECT_FALSE(requests->front().has_metadata);
  ASSERT_TRUE(Update("x").ok());
  EXPECT_TRUE(driver_->PreparedRequests()->front().has_metadata);
}

TEST_F(MetadataDriverTest, AnUpdateInterruptedByACrashIsCompletedWhenTheDriverStarts) {
  constexpr char kContainerFile[] =
      "/kubelet/plugins/d.example.com/dra-device-metadata/ns_a/gpu/d.example.com-metadata.json";
  Start();
  Prepare();
  const std::string before = *files_.ReadFile(kContainerFile);
  ASSERT_TRUE(Update("y").ok());
  ASSERT_NE(*files_.ReadFile(kContainerFile), before);
  driver_.reset();
  // As if it had been killed before the containers' file was replaced.
  ASSERT_TRUE(files_.WriteFile(kContainerFile, before, 0644).ok());
  // With the flag off, too: containers that run have the file.
  Start(false);
  EXPECT_EQ(*files_.ReadFile(kContainerFile), *files_.ReadFile(kFile));
  EXPECT_EQ(Generation(), 2);
  EXPECT_THAT(plugin_.errors, IsEmpty());
}

TEST_F(MetadataDriverTest, OnlyInstancesOfARollingUpdateLockTheirFiles) {
  const std::string directory = StrCat(::testing::TempDir(), "drakkar-driver-locks-", ::getpid());
  const auto locks = [&](const std::string& uid) {
    EXPECT_TRUE(RealFileSystem().MakeDirectories(directory, 0700).ok());
    DriverOptions options = Options();
    options.device_metadata = true;
    options.serialize = true;
    options.plugin_directory = directory;
    options.rolling_update_uid = uid;
    StartDriver(std::move(options));
    EXPECT_EQ(Prepare().error, "");
    driver_.reset();
    std::vector<std::string> names = *RealFileSystem().ListDirectory(directory);
    std::ranges::sort(names);
    EXPECT_TRUE(RealFileSystem().RemoveTree(directory).ok());
    return names;
  };
  EXPECT_THAT(locks(""), IsEmpty());
  EXPECT_THAT(locks("pod-1"), ElementsAre("metadata.lock", "serialize.lock"));
}

TEST_F(MetadataDriverTest, ADriverNameThatIsNotACdiVendorIsRejectedAtStart) {
  DriverOptions options = Options();
  options.driver_name = "9.example.com";
  options.device_metadata = true;
  EXPECT_THAT(Driver::Start(options).error().message, HasSubstr("CDI vendor"));
  options.driver_name = "d.example.com";
  options.metadata_versions = {"bogus/v1"};
  EXPECT_THAT(Driver::Start(options).error().message, HasSubstr("none of the requested"));
}

}  // namespace
}  // namespace drakkar::driver
