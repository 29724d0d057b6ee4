// The monitor by itself: when it opens streams, what it publishes, writes and lists.
#include "node/health/health_monitor.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/testing/memory_file_system.h"
#include "base/testing/seeded_loop.h"
#include "features/gates/feature_gates.h"
#include "node/testing/health_node.h"
#include "node/testing/logged_lines.h"

namespace drakkar::node {
namespace {

using rpc::DeviceHealthState;
using std::chrono::milliseconds;
using std::chrono::seconds;

class ImmediateWork final : public BlockingWork {
 public:
  void Run(absl::AnyInvocable<Result<void>()> work,
           absl::AnyInvocable<void(Result<void>)> done) override {
    ++runs;
    done(work());
  }
  int runs = 0;
};

// A driver whose streams the test controls.
class ScriptedClient final : public rpc::DraPluginClient {
 public:
  bool IsConnected() const override { return connected; }
  void Prepare(const std::vector<rpc::ClaimReference>&, Duration, rpc::PrepareDone) override {}
  void AnnouncePrepare(const std::vector<rpc::AnnouncedClaim>&, Duration) override {}
  void Unprepare(const std::vector<rpc::ClaimReference>&, Duration, rpc::UnprepareDone) override {}
  std::unique_ptr<rpc::HealthStream> WatchHealth(rpc::HealthService,
                                                 rpc::HealthStreamCallbacks callbacks) override {
    ++opened;
    stream = std::move(callbacks);
    return nullptr;
  }
  void End(Result<void> result) {
    auto end = std::move(stream.on_end);
    end(std::move(result));
  }
  bool connected = true;
  int opened = 0;
  rpc::HealthStreamCallbacks stream;
};

ClaimInfo Claim(const std::string& name, std::set<std::string> pods,
                std::map<std::string, std::vector<std::string>> devices) {
  ClaimInfo info;
  info.uid = "uid-" + name;
  info.name = name;
  info.namespace_name = "default";
  info.pod_uids = std::move(pods);
  for (const auto& [driver, names] : devices) {
    for (const std::string& device : names) {
      info.drivers[driver].devices.push_back({.pool_name = "pool", .device_name = device});
    }
  }
  return info;
}

class HealthMonitorTest : public ::testing::Test {
 protected:
  ScriptedClient& Add(const std::string& driver) {
    ScriptedClient& scripted = Register(driver);
    loop.RunUntilIdle();
    return scripted;
  }
  // Without running the loop.
  ScriptedClient& Register(const std::string& driver) {
    auto plugin = std::make_shared<PluginInstance>();
    plugin->driver = driver;
    plugin->health_services = {rpc::HealthService::kV1};
    auto client = std::make_unique<ScriptedClient>();
    ScriptedClient& scripted = *client;
    plugin->client = std::move(client);
    plugins.push_back(plugin);
    monitor.Add(plugin);
    return scripted;
  }
  void Report(ScriptedClient& client, const std::string& device, DeviceHealthState state,
              std::int64_t timeout = 0) {
    client.stream.on_report(node::Report(device, state, "", timeout));
    loop.RunUntilIdle();
  }
  std::string Devices() {
    std::string text;
    const api::TreePtr list = monitor.ListDevices().Freeze();
    for (const api::Value item : list->root().elements()) {
      text += StrCat(item["driver"].str(), "/", item["device"].str(), " ", item["health"].str());
      for (const api::Value claim : item["claims"].elements()) {
        text += StrCat(" ", claim["name"].str());
        for (const api::Value uid : claim["podUIDs"].elements()) text += StrCat(":", uid.str());
      }
      text += "; ";
    }
    return text;
  }
  std::string File() {
    const auto content = files.ReadFile("/dra_health_state");
    return content.ok() ? *content : "";
  }

  SeededLoop loop;
  MemoryFileSystem files;
  ImmediateWork work;
  FeatureGates gates;
  ClaimCache claims;
  Metrics metrics;
  std::vector<std::vector<HealthMonitor::Change>> published;
  std::vector<PluginInstancePtr> plugins;
  HealthMonitor monitor{
      {.loop = loop,
       .files = files,
       .work = work,
       .gates = gates,
       .claims = claims,
       .metrics = &metrics,
       .directory = "/",
       .on_changed = [this](const auto& changes) { published.push_back(changes); }}};
};

TEST_F(HealthMonitorTest, AnOpenStreamIsNotOpenedAgain) {
  ScriptedClient& client = Add("d");
  EXPECT_EQ(client.opened, 1);
  monitor.Connected(plugins[0]);
  monitor.DriverUsable("d");
  loop.RunUntilIdle();
  EXPECT_EQ(client.opened, 1);
}

TEST_F(HealthMonitorTest, ADriverThatBecomesUsableEndsOnlyItsOwnBackOff) {
  ScriptedClient& client = Add("d");
  client.End(Unavailable("restarting"));
  monitor.DriverUsable("another");
  loop.RunUntilIdle();
  EXPECT_EQ(client.opened, 1) << "still backing off";
  monitor.DriverUsable("d");
  loop.RunUntilIdle();
  EXPECT_EQ(client.opened, 2);
}

TEST_F(HealthMonitorTest, ADriverWithoutTheServiceIsAskedAgainOnlyAfterItReconnects) {
  ScriptedClient& client = Add("d");
  client.End(Error{ErrorCode::kUnimplemented, "no such service"});
  monitor.DriverUsable("d");
  loop.Advance(seconds(120));
  EXPECT_EQ(client.opened, 1);
  monitor.Connected(plugins[0]);
  loop.RunUntilIdle();
  EXPECT_EQ(client.opened, 2);
}

TEST_F(HealthMonitorTest, ADriverThatLostTheServiceAfterAFailureIsAskedAgainAfterItReconnects) {
  ScriptedClient& client = Add("d");
  client.End(Unavailable("restarting"));
  loop.Advance(seconds(2));
  ASSERT_EQ(client.opened, 2) << "after the back-off";
  client.End(Error{ErrorCode::kUnimplemented, "no such service"});
  monitor.Connected(plugins[0]);
  loop.RunUntilIdle();
  EXPECT_EQ(client.opened, 3);
}

TEST_F(HealthMonitorTest, AnInstanceThatIsUsedAgainIsAskedForHealthAgain) {
  ScriptedClient& old = Add("d");
  old.End(Error{ErrorCode::kUnimplemented, "no such service"});
  ScriptedClient& successor = Add("d");
  EXPECT_EQ(successor.opened, 1);
  successor.connected = false;
  monitor.DriverUsable("d");
  loop.RunUntilIdle();
  EXPECT_EQ(old.opened, 2);
}

TEST_F(HealthMonitorTest, WhatARemovedInstanceStillSaysIsIgnored) {
  ScriptedClient& client = Add("d");
  rpc::HealthStreamCallbacks stream = std::move(client.stream);
  ScriptedClient& other = Add("e");
  Report(other, "x", DeviceHealthState::kHealthy);
  published.clear();
  monitor.Remove(plugins[0]);
  stream.on_report(node::Report("a", DeviceHealthState::kHealthy));
  stream.on_end(Ok());
  loop.Advance(seconds(2));
  EXPECT_TRUE(published.empty());
  EXPECT_EQ(Devices(), "e/x Healthy; ");
}

TEST_F(HealthMonitorTest, OnlyInstancesThatAreRemovedOrReplacedLoseTheirStream) {
  Add("d");
  ScriptedClient& second = Add("d");
  ScriptedClient& other = Add("e");
  Report(second, "a", DeviceHealthState::kHealthy);
  Report(other, "x", DeviceHealthState::kHealthy);
  monitor.Remove(plugins[0]);
  loop.RunUntilIdle();
  EXPECT_EQ(Devices(), "d/a Healthy; e/x Healthy; ");
  EXPECT_EQ(second.opened, 1);
  monitor.Remove(plugins[1]);
  loop.RunUntilIdle();
  EXPECT_EQ(Devices(), "e/x Healthy; ");
  monitor.Remove(plugins[1]);  // no longer known
  EXPECT_EQ(other.opened, 1);
}

TEST_F(HealthMonitorTest, GaugesOfDriversWithoutDevicesAreRemoved) {
  auto gauge = [&](const std::string& driver) {
    monitor.CountDevices();
    return metrics.Text().find(StrCat("drakkar_node_devices{driver_name=\"", driver, "\"")) !=
           std::string::npos;
  };
  for (int round = 0; round < 2; ++round) {
    for (const char* driver : {"d", "e"}) {
      claims.Add(Claim(driver, {"p"}, {{driver, {"a"}}}));
      EXPECT_TRUE(gauge(driver));
    }
    claims.Erase("default/d");
    EXPECT_FALSE(gauge("d"));
    EXPECT_TRUE(gauge("e"));
    claims.Erase("default/e");
    EXPECT_FALSE(gauge("e"));
  }
}

TEST_F(HealthMonitorTest, AReportResetsTheBackOff) {
  ScriptedClient& client = Add("d");
  for (int i = 0; i < 6; ++i) {
    client.End(Unavailable("restarting"));
    loop.Advance(seconds(40));
  }
  Report(client, "a", DeviceHealthState::kHealthy);
  const int before = client.opened;
  client.End(Unavailable("restarting"));
  loop.Advance(milliseconds(1'100));
  EXPECT_EQ(client.opened, before + 1);
}

TEST_F(HealthMonitorTest, AShortTimeoutIsNotDelayedByALongOne) {
  ScriptedClient& client = Add("d");
  Report(client, "a", DeviceHealthState::kHealthy, 5);
  Report(client, "b", DeviceHealthState::kHealthy, 600);
  published.clear();
  loop.Advance(seconds(6));
  ASSERT_EQ(published.size(), 1u);
  ASSERT_EQ(published[0].size(), 1u);
  EXPECT_EQ(published[0][0].device.device, "a");
  EXPECT_EQ(published[0][0].now.health, DeviceHealthState::kUnknown);
}

TEST_F(HealthMonitorTest, ChangesOfOneTurnArePublishedTogether) {
  ScriptedClient& client = Add("d");
  client.stream.on_report(node::Report("a", DeviceHealthState::kHealthy));
  client.stream.on_report(node::Report("b", DeviceHealthState::kHealthy));
  loop.RunUntilIdle();
  ASSERT_EQ(published.size(), 1u);
  EXPECT_EQ(published[0].size(), 2u);
}

TEST_F(HealthMonitorTest, TheFileFollowsConfirmationsAndExpiries) {
  ScriptedClient& client = Add("d");
  Report(client, "a", DeviceHealthState::kHealthy);
  loop.Advance(seconds(2));
  const std::string first = File();
  EXPECT_NE(first, "");
  Report(client, "a", DeviceHealthState::kHealthy);
  loop.Advance(seconds(2));
  EXPECT_NE(File(), first) << "the time of the last report is in the file";
  loop.Advance(seconds(40));
  EXPECT_EQ(File(), "{}") << "expired";
  const int runs = work.runs;
  client.stream.on_report({});
  loop.Advance(seconds(2));
  EXPECT_EQ(work.runs, runs) << "an empty report changes nothing";
}

TEST_F(HealthMonitorTest, ALongListIsWrittenCompletely) {
  ScriptedClient& client = Add("d");
  rpc::HealthReport report;
  for (std::size_t i = 0; i < 3 * HealthMonitor::kEncodePerTurn; ++i) {
    report.push_back(node::Report(std::to_string(i), DeviceHealthState::kHealthy)[0]);
  }
  client.stream.on_report(report);
  loop.Advance(seconds(2));
  HealthCache read;
  ASSERT_TRUE(read.Decode(File(), HealthNow(loop.clock())).ok()) << File();
  EXPECT_EQ(read.List(HealthNow(loop.clock())).size(), report.size());
}

TEST_F(HealthMonitorTest, ListsEveryReportedOrHeldDeviceWithAllItsHolders) {
  claims.Add(Claim("c", {"p", "q"}, {{"d", {"a", "b"}}, {"e", {"x"}}}));
  claims.Add(Claim("f", {"r"}, {{"d", {"b", "b"}}}));
  ScriptedClient& client = Add("d");
  Report(client, "b", DeviceHealthState::kUnhealthy);
  Report(client, "free", DeviceHealthState::kHealthy);
  EXPECT_EQ(Devices(),
            "d/a Unknown c:p:q; d/b Unhealthy c:p:q f:r; d/free Healthy; e/x Unknown c:p:q; ");
  ASSERT_EQ(published.size(), 2u);
  EXPECT_EQ(published[0][0].pod_uids, (std::set<std::string>{"p", "q", "r"}));
  EXPECT_TRUE(published[1][0].pod_uids.empty());
}

TEST_F(HealthMonitorTest, DevicesAreCountedOnlyWithTheGateOn) {
  claims.Add(Claim("c", {"p"}, {{"d", {"a"}}}));
  monitor.CountDevices();
  EXPECT_NE(metrics.Text().find("drakkar_node_devices"), std::string::npos);
  Metrics untouched;
  const FeatureGates off = FeatureGates().With(Gate::kResourceHealthStatus, false);
  HealthMonitor without({.loop = loop,
                         .files = files,
                         .work = work,
                         .gates = off,
                         .claims = claims,
                         .metrics = &untouched,
                         .directory = "/",
                         .on_changed = [](const auto&) {}});
  without.CountDevices();
  EXPECT_EQ(untouched.Text().find("drakkar_node_devices"), std::string::npos);
}

TEST_F(HealthMonitorTest, AContainerHasRowsOnlyForTheRequestsItNames) {
  ClaimInfo info = Claim("c", {"p"}, {});
  info.drivers["d"].devices = {
      {.request_names = {"big/first", "other"}, .pool_name = "pool", .device_name = "a"},
      {.request_names = {"small"}, .pool_name = "pool", .device_name = "b"}};
  info.drivers["e"].devices = {{.pool_name = "pool", .device_name = "x"}};
  claims.Add(info);
  const auto pod = api::ParseJson(
      R"({"metadata":{"name":"p","namespace":"default","uid":"p"},
          "spec":{"resourceClaims":[{"name":"gpu","resourceClaimName":"c"}],"containers":[
            {"resources":{"claims":[{"name":"gpu","request":"other"}]}},
            {"resources":{"claims":[{"name":"gpu","request":"small"}]}},
            {"resources":{"claims":[{"name":"gpu"}]}},
            {"resources":{"claims":[{"name":"gpu","request":"big"}]}}]}})");
  ASSERT_TRUE(pod.ok());
  auto rows = [&](std::size_t container) {
    const api::Value root = (*pod)->root();
    const api::TreePtr status =
        monitor.ResourceStatus(root, root["spec"]["containers"].at(container)).Freeze();
    std::string text;
    for (const api::Value row : status->root().elements()) {
      for (const api::Value resource : row["resources"].elements()) {
        text += StrCat(row["name"].str(), " ", resource["resourceID"].str(), "; ");
      }
    }
    return text;
  };
  auto other_pod = api::Draft((*pod));
  other_pod["metadata"]["uid"] = "another";
  const api::TreePtr another = other_pod.Freeze();
  EXPECT_TRUE(monitor.ResourceStatus(another->root(), another->root()["spec"]["containers"].at(2))
                  .Freeze()
                  ->root()
                  .empty())
      << "it does not hold the claim";
  EXPECT_EQ(rows(0), "claim:gpu/other d/pool/a; claim:gpu/other e/pool/x; ");
  EXPECT_EQ(rows(1), "claim:gpu/small d/pool/b; claim:gpu/small e/pool/x; ");
  EXPECT_EQ(rows(2), "claim:gpu d/pool/a; claim:gpu d/pool/b; claim:gpu e/pool/x; ");
  EXPECT_EQ(rows(3), "claim:gpu/big d/pool/a; claim:gpu/big e/pool/x; ");
}

TEST_F(HealthMonitorTest, AnInstanceThatIsReplacedBeforeItsStreamOpensIsNeverAsked) {
  ScriptedClient& first = Register("d");
  ScriptedClient& second = Register("d");
  loop.RunUntilIdle();
  EXPECT_EQ(first.opened, 0);
  EXPECT_EQ(second.opened, 1);
}

TEST_F(HealthMonitorTest, AReplacedInstanceIsNotAskedAgainAfterItsBackOff) {
  ScriptedClient& old = Add("d");
  old.End(Unavailable("restarting"));
  ScriptedClient& successor = Add("d");
  loop.Advance(seconds(120));
  EXPECT_EQ(old.opened, 1);
  EXPECT_EQ(successor.opened, 1);
}

TEST_F(HealthMonitorTest, AConnectionAloneDoesNotEndABackOff) {
  ScriptedClient& client = Add("d");
  client.End(Unavailable("restarting"));
  monitor.Connected(plugins[0]);
  loop.RunUntilIdle();
  EXPECT_EQ(client.opened, 1);
  loop.Advance(seconds(2));
  EXPECT_EQ(client.opened, 2);
}

TEST_F(HealthMonitorTest, ADriverThatBecomesUsableBacksOffFromTheStart) {
  ScriptedClient& client = Add("d");
  for (int i = 0; i < 6; ++i) {
    client.End(Unavailable("restarting"));
    loop.Advance(seconds(40));
  }
  monitor.DriverUsable("d");
  loop.RunUntilIdle();
  const int before = client.opened;
  client.End(Unavailable("restarting"));
  loop.Advance(milliseconds(1'100));
  EXPECT_EQ(client.opened, before + 1);
}

TEST_F(HealthMonitorTest, OnlyTheFirstFailureSinceAReportIsLogged) {
  ScriptedClient& client = Add("d");
  LoggedLines log;
  for (int i = 0; i < 3; ++i) {
    client.End(Unavailable("restarting"));
    loop.Advance(seconds(40));
  }
  EXPECT_EQ(log.Count("health stream failed"), 1u);
  Report(client, "a", DeviceHealthState::kHealthy);
  client.End(Unavailable("restarting"));
  EXPECT_EQ(log.Count("health stream failed"), 2u);
}

TEST_F(HealthMonitorTest, ReportsThatAreMalformedOrTooLargeAreLoggedOnce) {
  ScriptedClient& client = Add("d");
  LoggedLines log;
  Report(client, "a", DeviceHealthState::kHealthy);
  EXPECT_EQ(log.Count("too many devices"), 0u);
  for (int i = 0; i < 2; ++i) {
    Report(client, std::string(HealthCache::kMaxNameBytes + 1, 'x'), DeviceHealthState::kHealthy);
    client.stream.on_malformed(InvalidArgument("no device name"));
  }
  EXPECT_EQ(log.Count("too many devices"), 1u);
  EXPECT_EQ(log.Count("malformed health report"), 1u);
  const rpc::HealthStreamCallbacks stream = std::move(client.stream);
  monitor.Remove(plugins[0]);
  stream.on_malformed(InvalidArgument("no device name"));
  EXPECT_EQ(log.Count("malformed health report"), 1u);
}

TEST_F(HealthMonitorTest, AShortTimeoutAfterALongOneIsNotDelayedEither) {
  ScriptedClient& client = Add("d");
  Report(client, "b", DeviceHealthState::kHealthy, 600);
  Report(client, "a", DeviceHealthState::kHealthy, 5);
  published.clear();
  loop.Advance(seconds(6));
  ASSERT_EQ(published.size(), 1u);
  EXPECT_EQ(published[0][0].device.device, "a");
}

TEST_F(HealthMonitorTest, ADeviceThatIsReportedAgainExpiresAgain) {
  ScriptedClient& client = Add("d");
  for (int round = 0; round < 3; ++round) {
    Report(client, "a", DeviceHealthState::kHealthy, 5);
    published.clear();
    loop.Advance(seconds(6));
    ASSERT_EQ(published.size(), 1u) << round;
    EXPECT_EQ(published[0][0].now.health, DeviceHealthState::kUnknown) << round;
  }
}

TEST_F(HealthMonitorTest, SinceWhenADeviceIsUnknownIsRememberedOnlyWhileAPodHoldsIt) {
  claims.Add(Claim("c", {"p"}, {{"d", {"held"}}}));
  ScriptedClient& client = Add("d");
  Report(client, "held", DeviceHealthState::kHealthy, 5);
  Report(client, "free", DeviceHealthState::kHealthy, 5);
  loop.Advance(seconds(6));
  const HealthTime now = HealthNow(loop.clock());
  EXPECT_TRUE(monitor.cache().Get({"d", "pool", "held"}, now).since.has_value());
  EXPECT_FALSE(monitor.cache().Get({"d", "pool", "free"}, now).since.has_value());
}

TEST_F(HealthMonitorTest, AFileThatIsLoadedExpires) {
  HealthCache before;
  before.Update("d", 1, node::Report("a", DeviceHealthState::kHealthy), HealthNow(loop.clock()));
  ASSERT_TRUE(files.WriteFile("/dra_health_state", before.Encode(), 0600).ok());
  monitor.Load();
  EXPECT_EQ(Devices(), "d/a Healthy; ");
  loop.Advance(seconds(31));
  ASSERT_EQ(published.size(), 1u);
  EXPECT_EQ(published[0][0].now.health, DeviceHealthState::kUnknown);
}

TEST_F(HealthMonitorTest, WithTheGateOffNothingIsReadAskedOrCounted) {
  HealthCache before;
  before.Update("d", 1, node::Report("a", DeviceHealthState::kHealthy), HealthNow(loop.clock()));
  ASSERT_TRUE(files.WriteFile("/dra_health_state", before.Encode(), 0600).ok());
  gates = FeatureGates().With(Gate::kResourceHealthStatus, false);
  monitor.Load();
  EXPECT_EQ(Devices(), "");
  EXPECT_EQ(Add("d").opened, 0);
}

// Keeps each piece of work until the test runs it.
class HeldWork final : public BlockingWork {
 public:
  void Run(absl::AnyInvocable<Result<void>()> work,
           absl::AnyInvocable<void(Result<void>)> done) override {
    held.push_back([work = std::move(work), done = std::move(done)]() mutable { done(work()); });
  }
  void RunAll() {
    for (auto& each : std::exchange(held, {})) each();
  }
  std::vector<absl::AnyInvocable<void()>> held;
};

TEST_F(HealthMonitorTest, AWriteWaitsForTheOneInFlightAndMetricsAreOptional) {
  HeldWork slow;
  HealthMonitor slow_monitor({.loop = loop,
                              .files = files,
                              .work = slow,
                              .gates = gates,
                              .claims = claims,
                              .metrics = nullptr,
                              .directory = "/",
                              .on_changed = [](const auto&) {}});
  auto plugin = std::make_shared<PluginInstance>();
  plugin->driver = "d";
  plugin->health_services = {rpc::HealthService::kV1};
  auto owned = std::make_unique<ScriptedClient>();
  ScriptedClient& client = *owned;
  plugin->client = std::move(owned);
  slow_monitor.Add(plugin);
  loop.RunUntilIdle();
  client.stream.on_report(node::Report("a", DeviceHealthState::kHealthy));
  loop.Advance(seconds(2));
  ASSERT_EQ(slow.held.size(), 1u);
  client.stream.on_report(node::Report("b", DeviceHealthState::kHealthy));
  loop.Advance(seconds(5));
  EXPECT_EQ(slow.held.size(), 1u) << "never two at once";
  slow.RunAll();
  EXPECT_EQ(File().find("\"pool/b\""), std::string::npos);
  loop.Advance(seconds(2));
  ASSERT_EQ(slow.held.size(), 1u);
  slow.RunAll();
  EXPECT_NE(File().find("\"pool/b\""), std::string::npos);
  loop.Advance(seconds(5));
  EXPECT_TRUE(slow.held.empty()) << "nothing has changed since";
}

}  // namespace
}  // namespace drakkar::node
