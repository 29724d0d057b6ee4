// Device metadata through the whole driver: the node's calls, the flag, restarts, leftovers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/metadata/document.h"
#include "base/testing/memory_file_system.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "rpc/dra/dra_client.h"
#include "rpc/testing/memory_transport.h"
#include "sdk/driver/driver.h"

namespace drakkar::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Duration kTimeout = std::chrono::seconds(45);
constexpr char kFile[] = "/kubelet/plugins/d.example.com/dra-device-metadata/ns_a/gpu/metadata.json";

// Holds claims of namespace "ns", or cannot be reached.
class ClaimClient final : public client::Client {
 public:
  explicit ClaimClient(EventLoop& loop) : loop_(loop) {}

  void Put(const std::string& name, const std::string& uid, bool reserved = true,
           const std::string& driver = "d.example.com") {
    claims_[name] = std::make_shared<api::Object>(*api::ParseJson(StrCat(
        R"({"metadata":{"name":")", name, R"(","namespace":"ns","uid":")", uid,
        R"("},"status":{)",
        reserved ? R"("reservedFor":[{"resource":"pods","name":"p","uid":"p"}],)" : "",
        R"("allocation":{"devices":{"results":[{"request":"gpu","driver":")", driver,
        R"(","pool":"node","device":"gpu-0"}]}}}})")));
  }
  void Delete(const std::string& name) { claims_.erase(name); }
  bool reachable = true;

  void Get(client::ResourceRef ref, client::ReplyCallback done) override {
    client::Reply reply;
    const auto found = claims_.find(ref.name);
    if (!reachable) {
      reply.error = Unavailable("connection refused");
    } else if (found == claims_.end()) {
      reply.error = NotFound("not there");
    } else {
      reply.object = found->second;
    }
    loop_.Post([reply, done = std::move(done)] { done(reply); });
  }
  void List(client::ResourceRef, client::ListOptions,
            std::function<void(client::ListReply)>) override {}
  void Create(client::ResourceRef, api::TreePtr, client::WriteOptions,
              client::ReplyCallback) override {}
  void Update(client::ResourceRef, api::TreePtr, client::WriteOptions,
              client::ReplyCallback) override {}
  void Patch(client::ResourceRef, client::PatchType, std::string, client::WriteOptions,
             client::ReplyCallback) override {}
  void Delete(client::ResourceRef, client::DeleteOptions, client::ReplyCallback) override {}
  void DeleteCollection(client::ResourceRef, client::ListOptions, client::DeleteOptions,
                        client::ReplyCallback) override {}
  std::unique_ptr<client::WatchHandle> Watch(client::ResourceRef, client::WatchOptions,
                                             client::WatchCallbacks) override {
    return nullptr;
  }

 private:
  EventLoop& loop_;
  std::map<std::string, api::ObjectPtr> claims_;
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

class MetadataDriverTest : public ::testing::Test {
 protected:
  MetadataDriverTest() : transport_(loop_), client_(loop_) { client_.Put("a", "uid-a"); }
  ~MetadataDriverTest() override { driver_.reset(); }

  void Start(bool enabled = true) {
    driver_.reset();
    auto driver = Driver::Start({.loop = loop_,
                                 .random = loop_.random(),
                                 .files = files_,
                                 .client = client_,
                                 .transport = transport_,
                                 .plugin = plugin_,
                                 .driver_name = "d.example.com",
                                 .node_name = "n",
                                 .registry_directory = "/kubelet/plugins_registry",
                                 .device_metadata = enabled,
                                 .cdi_directory = "/cdi"});
    ASSERT_TRUE(driver.ok()) << driver.error().message;
    driver_ = *std::move(driver);
    node_ = rpc::DialDraPlugin(transport_, {.endpoint = driver_->plugin_socket_path()});
    loop_.RunUntilIdle();
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

  SeededLoop loop_;
  rpc::MemoryTransport transport_;
  MemoryFileSystem files_;
  ClaimClient client_;
  GpuPlugin plugin_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<rpc::DraPluginClient> node_;
};

TEST_F(MetadataDriverTest, PrepareAnswersWithTheMountAndUnprepareRemovesIt) {
  Start();
  const rpc::PrepareResult result = Prepare();
  EXPECT_EQ(result.error, "");
  ASSERT_EQ(result.devices.size(), 1u);
  EXPECT_THAT(result.devices[0].cdi_device_ids, ElementsAre("d.example.com/metadata=uid-a_gpu"));
  EXPECT_EQ(Generation(), 1);
  plugin_.busy = true;
  EXPECT_EQ(Unprepare(), "the device is busy");
  EXPECT_EQ(Generation(), 1) << "what is still prepared keeps its metadata";
  plugin_.busy = false;
  EXPECT_EQ(Unprepare(), "");
  EXPECT_EQ(Generation(), -1);
  EXPECT_THAT(*files_.ListDirectory("/cdi"), IsEmpty());
  EXPECT_FALSE(Update("late").ok());
}

TEST_F(MetadataDriverTest, NothingAtAllIsWrittenWhenTheFlagIsOff) {
  Start(false);
  const rpc::PrepareResult result = Prepare();
  EXPECT_EQ(result.error, "");
  EXPECT_THAT(result.devices[0].cdi_device_ids, IsEmpty());
  EXPECT_FALSE(files_.Exists("/kubelet/plugins/d.example.com/dra-device-metadata"));
  EXPECT_FALSE(files_.Exists("/kubelet/plugins/d.example.com/dra-device-metadata-claims"));
  EXPECT_FALSE(files_.Exists("/cdi"));
  EXPECT_EQ(Update("x").error().message, "device metadata is not enabled");
}

TEST_F(MetadataDriverTest, WhatWasMadeWhileTheFlagWasOnStaysUntilUnprepare) {
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

TEST_F(MetadataDriverTest, AWriteFailureFailsThePrepareOfThatClaimAlone) {
  Start();
  client_.Put("b", "uid-b");
  ASSERT_TRUE(files_.WriteFile("/kubelet/plugins/d.example.com/dra-device-metadata", "", 0644).ok());
  const rpc::PrepareResult result = Prepare();
  EXPECT_THAT(result.error, HasSubstr("write device metadata: request \"gpu\": "));
  EXPECT_THAT(result.devices, IsEmpty());
  ASSERT_TRUE(files_.Remove("/kubelet/plugins/d.example.com/dra-device-metadata").ok());
  EXPECT_EQ(Prepare().error, "") << "the node tries again";
}

TEST_F(MetadataDriverTest, UpdatesGoOnAfterARestartOfTheDriver) {
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

TEST_F(MetadataDriverTest, LeftoversAreRemovedAtStartWhenTheirClaimNoLongerNeedsThem) {
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
  EXPECT_FALSE(restart_with([&] { client_.Delete("a"); })) << "gone";
  EXPECT_FALSE(restart_with([&] { client_.Put("a", "another"); })) << "replaced";
  EXPECT_FALSE(restart_with([&] { client_.Put("a", "uid-a", false); })) << "not reserved";
  EXPECT_TRUE(restart_with([&] {
    client_.Delete("a");
    client_.reachable = false;
  })) << "unknown";
  EXPECT_THAT(plugin_.errors, IsEmpty());
}

TEST_F(MetadataDriverTest, ADriverNameThatIsNoCdiVendorIsRefusedAtStart) {
  DriverOptions options{.loop = loop_,
                        .random = loop_.random(),
                        .files = files_,
                        .client = client_,
                        .transport = transport_,
                        .plugin = plugin_,
                        .driver_name = "9.example.com",
                        .node_name = "n",
                        .registry_directory = "/kubelet/plugins_registry",
                        .device_metadata = true};
  EXPECT_THAT(Driver::Start(options).error().message, HasSubstr("CDI vendor"));
  options.driver_name = "d.example.com";
  options.metadata_versions = {"bogus/v1"};
  EXPECT_THAT(Driver::Start(options).error().message, HasSubstr("none of the requested"));
}

}  // namespace
}  // namespace drakkar::driver
