#include "rpc/health/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rpc/dra/dra_client.h"
#include "rpc/health/health_codec.h"
#include "rpc/testing/contract_test.h"
#include "rpc/testing/fake_dra_plugin.h"

namespace drakkar::rpc {
namespace {

using std::chrono::milliseconds;

constexpr HealthService kAll[] = {HealthService::kV1, HealthService::kV1alpha1,
                                  HealthService::kNodeHealth};

DeviceHealth Sick() {
  return {.pool_name = "pool",
          .device_name = "dev-0",
          .health = DeviceHealthState::kUnhealthy,
          .last_updated_seconds = 1'800'000'000,
          .health_check_timeout_seconds = 7,
          .message = "too hot",
          .resource_name = "example.com/gpu"};
}

// Sick() as it arrives over each service.
DeviceHealth SickOver(HealthService service) {
  DeviceHealth device = Sick();
  if (service == HealthService::kNodeHealth) {
    device.health_check_timeout_seconds = 0;
    device.message.clear();
  } else {
    device.resource_name.reset();
  }
  return device;
}

class HealthTest : public ContractTest {
 protected:
  HealthTest() : plugin_("gpu.example.com"), path_(SocketPath("dra.sock")) {}
  ~HealthTest() override {
    Do([this] {
      stream_.reset();
      client_.reset();
      server_.reset();
    });
  }

  void Serve(std::vector<HealthService> services = {std::begin(kAll), std::end(kAll)}) {
    Do([&] {
      ServiceSet set = plugin_.Services();
      set.health_services = std::move(services);
      server_ = CreateServer(transport(), path_, set);
      ASSERT_TRUE(server_->Start().ok());
    });
  }

  void Watch(HealthService service) {
    Do([&] {
      if (client_ == nullptr) {
        DraPluginOptions options;
        options.endpoint = path_;
        options.initial_backoff = milliseconds(50);
        options.on_connection_change = [](bool) {};
        client_ = DialDraPlugin(transport(), options);
      }
      reports_.clear();
      end_.reset();
      HealthStreamCallbacks callbacks;
      callbacks.on_report = [this](HealthReport report) { reports_.push_back(std::move(report)); };
      callbacks.on_end = [this](Result<void> result) { end_ = std::move(result); };
      stream_ = client_->WatchHealth(service, std::move(callbacks));
    });
  }

  FakeDraPlugin plugin_;
  std::string path_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<DraPluginClient> client_;
  std::unique_ptr<HealthStream> stream_;
  std::vector<HealthReport> reports_;
  std::optional<Result<void>> end_;
};

TEST_P(HealthTest, EachServiceDeliversReportsInOrder) {
  Serve();
  for (const HealthService service : kAll) {
    SCOPED_TRACE(HealthServiceName(service));
    Do([&] { plugin_.PushHealth({Sick()}); });
    Watch(service);
    ASSERT_TRUE(WaitUntil([&] { return reports_.size() == 1; }));
    Do([&] {
      plugin_.PushHealth({});
      plugin_.PushHealth({Sick(), Sick()});
    });
    ASSERT_TRUE(WaitUntil([&] { return reports_.size() == 3; }));
    const DeviceHealth sick = SickOver(service);
    EXPECT_EQ(reports_, (std::vector<HealthReport>{{sick}, {}, {sick, sick}}));
    EXPECT_FALSE(end_.has_value());
  }
}

TEST_P(HealthTest, ADriverThatLacksTheServiceIsUnimplemented) {
  Serve({HealthService::kV1});
  for (const HealthService service : {HealthService::kV1alpha1, HealthService::kNodeHealth}) {
    Watch(service);
    ASSERT_TRUE(WaitUntil([&] { return end_.has_value(); }));
    EXPECT_EQ(end_->error().code, ErrorCode::kUnimplemented);
    EXPECT_EQ(end_->error().message, "rpc error: code = Unimplemented desc = unknown service " +
                                         std::string(HealthServiceName(service)));
  }
}

TEST_P(HealthTest, ADriverThatDoesNotReportHealthSaysSo) {
  Serve();
  Do([&] { plugin_.health_supported = false; });
  Watch(HealthService::kV1);
  ASSERT_TRUE(WaitUntil([&] { return end_.has_value(); }));
  EXPECT_EQ(end_->error().code, ErrorCode::kUnimplemented);
}

TEST_P(HealthTest, TheDriverMayEndTheStreamCleanlyAfterItsLastReport) {
  Serve();
  Watch(HealthService::kV1);
  ASSERT_TRUE(WaitUntil([&] { return plugin_.health_watchers() == 1; }));
  Do([&] {
    for (int i = 0; i < 100; ++i) plugin_.PushHealth({Sick()});
    plugin_.EndHealth(Ok());
  });
  ASSERT_TRUE(WaitUntil([&] { return end_.has_value(); }));
  EXPECT_TRUE(end_->ok());
  EXPECT_EQ(reports_.size(), 100u);
}

TEST_P(HealthTest, DestroyingTheStreamCancelsItAtTheDriver) {
  Serve();
  Do([&] { plugin_.PushHealth({Sick()}); });
  Watch(HealthService::kV1);
  ASSERT_TRUE(WaitUntil([&] { return reports_.size() == 1; }));
  Do([&] { stream_.reset(); });
  EXPECT_TRUE(WaitUntil([&] { return plugin_.health_watchers() == 0; }));
  EXPECT_FALSE(end_.has_value());
}

TEST_P(HealthTest, AReportMayDestroyItsOwnStream) {
  Serve();
  int reports = 0;
  Watch(HealthService::kV1);
  Do([&] {
    HealthStreamCallbacks callbacks;
    callbacks.on_report = [&](const HealthReport&) {
      ++reports;
      stream_.reset();
    };
    callbacks.on_end = [](auto) { FAIL(); };
    stream_ = client_->WatchHealth(HealthService::kV1, std::move(callbacks));
    plugin_.PushHealth({Sick()});
    plugin_.PushHealth({Sick()});
  });
  EXPECT_TRUE(WaitUntil([&] { return reports == 1 && plugin_.health_watchers() == 0; }));
  Do([&] { EXPECT_EQ(reports, 1); });
}

TEST_P(HealthTest, TheEndOfTheServerEndsTheStream) {
  Serve();
  Watch(HealthService::kV1alpha1);
  ASSERT_TRUE(WaitUntil([&] { return plugin_.health_watchers() == 1; }));
  Do([&] { server_->Stop(); });
  ASSERT_TRUE(WaitUntil([&] { return end_.has_value(); }));
  EXPECT_EQ(end_->error().code, ErrorCode::kUnavailable) << end_->error().message;
  Do([&] { plugin_.PushHealth({Sick()}); });  // nobody receives it
}

TEST_P(HealthTest, CallsAndStreamsRunSideBySide) {
  Serve();
  Do([&] { plugin_.PushHealth({Sick()}); });
  Watch(HealthService::kV1);
  ASSERT_TRUE(WaitUntil([&] { return reports_.size() == 1; }));
  const auto results = Await<PrepareResults>([&](auto done) {
    client_->Prepare({{.namespace_name = "n", .uid = "u", .name = "c"}}, std::chrono::seconds(10),
                     std::move(done));
  });
  EXPECT_TRUE(results.ok());
  EXPECT_FALSE(end_.has_value());
}

INSTANTIATE_CONTRACT_TEST(HealthTest);

TEST(HealthCodec, NamesServicesAndMethodsAsOnTheWire) {
  EXPECT_EQ(health::WatchMethod(HealthService::kV1), "/v1.DRAResourceHealth/NodeWatchResources");
  EXPECT_EQ(health::WatchMethod(HealthService::kV1alpha1),
            "/v1alpha1.DRAResourceHealth/NodeWatchResources");
  EXPECT_EQ(health::WatchMethod(HealthService::kNodeHealth), "/v1alpha1.NodeHealth/WatchResources");
  for (const HealthService service : kAll) {
    EXPECT_EQ(FindHealthService(HealthServiceName(service)), service);
  }
  EXPECT_EQ(FindHealthService("v2.DRAResourceHealth"), std::nullopt);
}

TEST(HealthCodec, MatchesBothWireFormats) {
  const HealthReport report = {{.pool_name = "p",
                                .device_name = "d",
                                .health = DeviceHealthState::kHealthy,
                                .last_updated_seconds = 5,
                                .health_check_timeout_seconds = 6,
                                .message = "m",
                                .resource_name = "r"}};
  EXPECT_EQ(health::EncodeReport(report, HealthService::kV1),
            "\x0a\x11\x0a\x06\x0a\x01p\x12\x01"
            "d\x10\x01\x18\x05\x20\x06\x2a\x01m");
  EXPECT_EQ(health::EncodeReport(report, HealthService::kNodeHealth),
            "\x0a\x14\x0a\x01p\x12\x01"
            "d\x1a\x07Healthy\x20\x05\x2a\x01r");
}

TEST(HealthCodec, AReportAboutTooManyDevicesIsMalformed) {
  for (const HealthService service : {HealthService::kV1, HealthService::kNodeHealth}) {
    // Each device is an empty message of two bytes.
    std::string bytes;
    for (int i = 0; i < kMaxDriverDevices; ++i) bytes += std::string("\x0a\0", 2);
    EXPECT_EQ(health::DecodeReport(bytes, service)->size(), std::size_t{kMaxDriverDevices});
    bytes += std::string("\x0a\0", 2);
    EXPECT_EQ(health::DecodeReport(bytes, service).error().message,
              "a report about more than 32768 devices");
  }
}

TEST(HealthCodec, StatesItDoesNotKnowAreUnknown) {
  EXPECT_EQ(ParseDeviceHealthState("healthy"), DeviceHealthState::kUnknown);
  // health = 9
  const auto report = health::DecodeReport("\x0a\x02\x10\x09", HealthService::kV1);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->at(0).health, DeviceHealthState::kUnknown);
}

}  // namespace
}  // namespace drakkar::rpc
