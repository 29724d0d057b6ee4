#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rpc/dra/dra_client.h"
#include "rpc/dra/dra_codec.h"
#include "rpc/testing/contract_test.h"
#include "rpc/testing/fake_dra_plugin.h"

namespace drakkar::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const ClaimReference kClaimA{.namespace_name = "ns", .uid = "uid-a", .name = "a"};
const ClaimReference kClaimB{.namespace_name = "ns", .uid = "uid-b", .name = "b"};

class DraTest : public ContractTest {
 protected:
  DraTest() : plugin_("gpu.example.com"), path_(SocketPath("dra.sock")) {}
  ~DraTest() override {
    Do([this] {
      client_.reset();
      other_client_.reset();
      server_.reset();
    });
  }

  void Serve(std::vector<DraVersion> versions = {DraVersion::kV1, DraVersion::kV1beta1}) {
    Do([&] {
      ServiceSet services = plugin_.Services();
      services.dra_versions = std::move(versions);
      server_ = CreateServer(transport(), path_, services);
      const Result<void> started = server_->Start();
      ASSERT_TRUE(started.ok()) << started.error().message;
    });
  }

  DraPluginOptions Options(DraVersion version = DraVersion::kV1) {
    DraPluginOptions options;
    options.endpoint = path_;
    options.version = version;
    options.initial_backoff = milliseconds(50);
    options.max_backoff = milliseconds(200);
    options.on_connection_change = [this](bool connected) { changes_.push_back(connected); };
    return options;
  }

  void Dial(DraVersion version = DraVersion::kV1) {
    Do([&] { client_ = DialDraPlugin(transport(), Options(version)); });
  }

  void DialAndConnect(DraVersion version = DraVersion::kV1) {
    Dial(version);
    ASSERT_TRUE(WaitUntil([this] { return client_->IsConnected(); }));
  }

  Result<PrepareResults> Prepare(std::vector<ClaimReference> claims,
                                 Duration timeout = seconds(10)) {
    return Await<PrepareResults>(
        [&](auto done) { client_->Prepare(claims, timeout, std::move(done)); });
  }
  Result<UnprepareResults> Unprepare(std::vector<ClaimReference> claims,
                                     Duration timeout = seconds(10)) {
    return Await<UnprepareResults>(
        [&](auto done) { client_->Unprepare(claims, timeout, std::move(done)); });
  }

  FakeDraPlugin plugin_;
  std::string path_;
  std::vector<bool> changes_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<DraPluginClient> client_;
  std::unique_ptr<DraPluginClient> other_client_;
};

TEST_P(DraTest, PrepareCarriesEveryFieldInV1) {
  Serve();
  PreparedDevice device{.request_names = {"r1", "r2/sub"},
                        .pool_name = "pool",
                        .device_name = "dev-0",
                        .cdi_device_ids = {"v/c=1", "v/c=2"},
                        .share_id = "share"};
  Do([&] { plugin_.prepare_claim = [=](auto&) { return PrepareResult{.devices = {device}}; }; });
  DialAndConnect();
  const Result<PrepareResults> results = Prepare({kClaimA, kClaimB});
  ASSERT_TRUE(results.ok()) << results.error().message;
  EXPECT_EQ(*results,
            (PrepareResults{{"uid-a", {.devices = {device}}}, {"uid-b", {.devices = {device}}}}));
  Do([&] {
    EXPECT_THAT(plugin_.prepare_calls,
                ::testing::ElementsAre(::testing::ElementsAre(kClaimA, kClaimB)));
  });
}

TEST_P(DraTest, TheOlderVersionHasNoShareId) {
  Serve({DraVersion::kV1beta1});
  Do([&] {
    plugin_.prepare_claim = [](auto&) {
      PreparedDevice device;
      device.device_name = "dev-0";
      device.share_id = "share";
      return PrepareResult{.devices = {device}};
    };
  });
  DialAndConnect(DraVersion::kV1beta1);
  const Result<PrepareResults> results = Prepare({kClaimA});
  ASSERT_TRUE(results.ok()) << results.error().message;
  EXPECT_EQ(results->at("uid-a").devices.at(0).device_name, "dev-0");
  EXPECT_EQ(results->at("uid-a").devices.at(0).share_id, std::nullopt);
}

TEST_P(DraTest, UnprepareWorksInBothVersions) {
  Serve();
  for (const DraVersion version : {DraVersion::kV1, DraVersion::kV1beta1}) {
    DialAndConnect(version);
    const Result<UnprepareResults> results = Unprepare({kClaimA});
    ASSERT_TRUE(results.ok()) << results.error().message;
    EXPECT_EQ(*results, (UnprepareResults{{"uid-a", {}}}));
  }
  Do([&] { EXPECT_EQ(plugin_.unprepare_calls.size(), 2u); });
}

TEST_P(DraTest, AnAnnouncementComesBeforeTheCallItIsAbout) {
  Serve();
  DialAndConnect();
  // The object of a claim may be omitted; otherwise it is passed on byte for byte.
  const std::vector<AnnouncedClaim> announced = {{kClaimA, std::string("{\"a\":\"\xff\0\"}", 10)},
                                                 {kClaimB, ""}};
  std::size_t announced_before = 0;
  Do([&] {
    plugin_.prepare_claim = [&](auto&) {
      announced_before = plugin_.announcements.size();
      return PrepareResult();
    };
    client_->AnnouncePrepare(announced, seconds(10));
  });
  ASSERT_TRUE(Prepare({kClaimA, kClaimB}).ok());
  EXPECT_EQ(announced_before, 1u);
  Do([&] { EXPECT_THAT(plugin_.announcements, ::testing::ElementsAre(announced)); });
}

TEST_P(DraTest, AVersionThatIsNotServedIsUnimplemented) {
  Serve({DraVersion::kV1});
  DialAndConnect(DraVersion::kV1beta1);
  const Result<PrepareResults> results = Prepare({kClaimA});
  ASSERT_FALSE(results.ok());
  EXPECT_EQ(results.error().code, ErrorCode::kUnimplemented);
  EXPECT_EQ(results.error().message,
            "rpc error: code = Unimplemented desc = unknown service "
            "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin");
}

TEST_P(DraTest, OneClaimMayFailAlone) {
  Serve();
  Do([&] {
    plugin_.prepare_claim = [](const ClaimReference& claim) {
      return claim.name == "a" ? PrepareResult{.error = "no such device"} : PrepareResult();
    };
    plugin_.unprepare_claim = [](const ClaimReference&) { return UnprepareResult{"busy"}; };
  });
  DialAndConnect();
  const Result<PrepareResults> results = Prepare({kClaimA, kClaimB});
  ASSERT_TRUE(results.ok()) << results.error().message;
  EXPECT_EQ(results->at("uid-a").error, "no such device");
  EXPECT_EQ(results->at("uid-b"), PrepareResult());
  EXPECT_EQ(Unprepare({kClaimA}).value().at("uid-a").error, "busy");
}

TEST_P(DraTest, TheWholeCallMayFail) {
  Serve();
  Do([&] { plugin_.prepare_error = FailedPrecondition("the device is gone"); });
  DialAndConnect();
  const Result<PrepareResults> results = Prepare({kClaimA});
  ASSERT_FALSE(results.ok());
  EXPECT_EQ(results.error(),
            FailedPrecondition("rpc error: code = FailedPrecondition desc = the device is gone"));
}

TEST_P(DraTest, ACallTheDriverDropsIsAnswered) {
  Serve();
  Do([&] { plugin_.hold_calls = true; });
  DialAndConnect();
  std::optional<Result<PrepareResults>> result;
  Do([&] {
    client_->Prepare({kClaimA}, seconds(10), [&](auto given) { result = std::move(given); });
  });
  ASSERT_TRUE(WaitUntil([&] { return plugin_.held_calls() == 1; }));
  Do([&] { plugin_.DropCalls(); });
  ASSERT_TRUE(WaitUntil([&] { return result.has_value(); }));
  EXPECT_EQ(result->error().message,
            "rpc error: code = Internal desc = the server dropped the call");
}

TEST_P(DraTest, ACallThatIsNeverAnsweredTimesOut) {
  Serve();
  Do([&] { plugin_.hold_calls = true; });
  DialAndConnect();
  const Result<PrepareResults> results = Prepare({kClaimA}, milliseconds(50));
  ASSERT_FALSE(results.ok());
  EXPECT_EQ(results.error(),
            (Error{ErrorCode::kDeadlineExceeded,
                   "rpc error: code = DeadlineExceeded desc = context deadline exceeded"}));
  // The late answer is dropped, and the connection still works.
  Do([&] {
    plugin_.ReleaseCalls();
    plugin_.hold_calls = false;
  });
  EXPECT_TRUE(Prepare({kClaimA}).ok());
}

TEST_P(DraTest, ManyCallsShareTheConnection) {
  Serve();
  DialAndConnect();
  int answered = 0;
  Do([&] {
    for (int i = 0; i < 200; ++i) {
      client_->Prepare({kClaimA}, seconds(10), [&](auto results) { answered += results.ok(); });
    }
  });
  EXPECT_TRUE(WaitUntil([&] { return answered == 200; }));
  Do([&] { EXPECT_EQ(changes_, std::vector<bool>{true}); });
}

TEST_P(DraTest, WithoutAServerCallsFailAtOnceInsteadOfWaiting) {
  Dial();
  const Result<PrepareResults> results = Prepare({kClaimA}, seconds(1000));
  ASSERT_FALSE(results.ok());
  EXPECT_EQ(results.error().code, ErrorCode::kUnavailable) << results.error().message;
  Do([&] { EXPECT_TRUE(changes_.empty()); });
}

TEST_P(DraTest, ConnectsByItselfOnceTheServerIsThere) {
  Dial();
  EXPECT_FALSE(Prepare({kClaimA}).ok());
  Serve();
  ASSERT_TRUE(WaitUntil([this] { return client_->IsConnected(); }));
  EXPECT_TRUE(Prepare({kClaimA}).ok());
  Do([&] { EXPECT_EQ(changes_, std::vector<bool>{true}); });
}

TEST_P(DraTest, AServerThatDiesFailsTheCallAndTheClientReconnectsAfterItsRestart) {
  Serve();
  Do([&] { plugin_.hold_calls = true; });
  DialAndConnect();
  std::optional<Result<PrepareResults>> result;
  Do([&] {
    client_->Prepare({kClaimA}, seconds(10), [&](auto given) { result = std::move(given); });
  });
  ASSERT_TRUE(WaitUntil([&] { return plugin_.held_calls() == 1; }));
  Do([&] { server_.reset(); });
  ASSERT_TRUE(WaitUntil([&] { return result.has_value() && !client_->IsConnected(); }));
  EXPECT_EQ(result->error().code, ErrorCode::kUnavailable) << result->error().message;
  Do([&] {
    plugin_.ReleaseCalls();  // nobody receives them
    plugin_.hold_calls = false;
  });
  Serve();
  ASSERT_TRUE(WaitUntil([&] { return client_->IsConnected(); }));
  EXPECT_TRUE(Prepare({kClaimA}).ok());
  Do([&] { EXPECT_EQ(changes_, (std::vector<bool>{true, false, true})); });
}

TEST_P(DraTest, TwoInstancesOfADriverAreIndependent) {
  Serve();
  DialAndConnect();
  FakeDraPlugin other("gpu.example.com");
  std::unique_ptr<Server> other_server;
  std::vector<bool> other_changes;
  Do([&] {
    DraPluginOptions options = Options();
    options.endpoint = SocketPath("dra-2.sock");
    options.on_connection_change = [&](bool connected) { other_changes.push_back(connected); };
    other_server = CreateServer(transport(), options.endpoint, other.Services());
    ASSERT_TRUE(other_server->Start().ok());
    other_client_ = DialDraPlugin(transport(), options);
  });
  ASSERT_TRUE(WaitUntil([&] { return other_client_->IsConnected(); }));
  Do([&] { server_->Stop(); });
  ASSERT_TRUE(WaitUntil([&] { return !client_->IsConnected(); }));
  std::optional<Result<PrepareResults>> result;
  Do([&] {
    other_client_->Prepare({kClaimA}, seconds(10), [&](auto given) { result = std::move(given); });
  });
  ASSERT_TRUE(WaitUntil([&] { return result.has_value(); }));
  EXPECT_TRUE(result->ok());
  Do([&] {
    EXPECT_TRUE(plugin_.prepare_calls.empty());
    EXPECT_EQ(other.prepare_calls.size(), 1u);
    EXPECT_EQ(other_changes, std::vector<bool>{true});
    other_client_.reset();
    other_server.reset();
  });
}

TEST_P(DraTest, NoCallbackRunsAfterTheClientIsDestroyed) {
  Serve();
  Do([&] { plugin_.hold_calls = true; });
  DialAndConnect();
  bool ran = false;
  Do([&] { client_->Prepare({kClaimA}, seconds(10), [&](auto) { ran = true; }); });
  ASSERT_TRUE(WaitUntil([&] { return plugin_.held_calls() == 1; }));
  Do([&] {
    plugin_.ReleaseCalls();
    plugin_.hold_calls = false;
    client_.reset();
    changes_.clear();
  });
  DialAndConnect();
  EXPECT_TRUE(Prepare({kClaimA}).ok());
  Do([&] {
    EXPECT_FALSE(ran);
    EXPECT_EQ(changes_, std::vector<bool>{true});
  });
}

TEST_P(DraTest, ACallbackMayDestroyTheClient) {
  Serve();
  DialAndConnect();
  bool ran = false;
  Do([&] {
    client_->Prepare({kClaimA}, seconds(10), [&](auto) {
      client_.reset();
      ran = true;
    });
  });
  EXPECT_TRUE(WaitUntil([&] { return ran; }));
}

INSTANTIATE_CONTRACT_TEST(DraTest);

TEST(DraCodec, AnAnswerWithTooManyDevicesIsMalformed) {
  PrepareResults results;
  results["uid"].devices.resize(kMaxDriverDevices);
  EXPECT_TRUE(dra::DecodePrepareResults(dra::EncodePrepareResults(results, DraVersion::kV1),
                                        DraVersion::kV1)
                  .ok());
  results["uid"].devices.emplace_back();
  EXPECT_EQ(dra::DecodePrepareResults(dra::EncodePrepareResults(results, DraVersion::kV1),
                                      DraVersion::kV1)
                .error()
                .message,
            "NodePrepareResourcesResponse: more than 32768 devices for one claim");
}

TEST(DraCodec, NamesServicesAsPluginsAdvertiseThem) {
  EXPECT_EQ(FindDraVersion("v1.DRAPlugin"), DraVersion::kV1);
  EXPECT_EQ(FindDraVersion("v1beta1.DRAPlugin"), DraVersion::kV1beta1);
  EXPECT_EQ(FindDraVersion("v1alpha4.DRAPlugin"), std::nullopt);
  EXPECT_EQ(dra::PrepareMethod(DraVersion::kV1),
            "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources");
  EXPECT_EQ(dra::UnprepareMethod(DraVersion::kV1beta1),
            "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources");
}

TEST(DraCodec, MatchesTheWireFormat) {
  // Claim: namespace 1, uid 2, name 3.
  EXPECT_EQ(dra::EncodeClaims({{.namespace_name = "n", .uid = "u", .name = "c"}}),
            "\x0a\x09\x0a\x01n\x12\x01u\x1a\x01"
            "c");
  // A map entry with a null message, as Go may send it.
  const auto results = dra::DecodePrepareResults("\x0a\x03\x0a\x01u", DraVersion::kV1);
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(*results, (PrepareResults{{"u", {}}}));
  EXPECT_FALSE(dra::DecodeUnprepareResults("\x0a").ok());
}

}  // namespace
}  // namespace drakkar::rpc
