#include "sdk/driver/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <future>

#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "base/env/file_lock.h"
#include "base/exec/worker_pool.h"
#include "base/testing/memory_file_system.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "rpc/dra/dra_client.h"
#include "rpc/testing/memory_transport.h"
#include "rpc/testing/transport_harness.h"
#include "sdk/driver/prepare/announced_claims.h"
#include "sdk/driver/prepare/node_service.h"
#include "sdk/driver/testing/claim_client.h"
#include "sdk/driver/testing/driver_fixture.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Duration kTimeout = std::chrono::seconds(45);

// Holds claims in namespace "default".
class NamedClaims final : public ClaimClient {
 public:
  using ClaimClient::ClaimClient;
  void Put(const std::string& name, const std::string& uid, bool allocated = true) {
    PutJson(StrCat(R"({"metadata":{"name":")", name, R"(","namespace":"default","uid":")", uid,
                   R"("})", allocated ? R"(,"status":{"allocation":{}})" : "", "}"));
  }
};

// Answers when the test says so, or immediately with one device.
class ScriptedPlugin final : public Plugin {
 public:
  void PrepareResourceClaims(std::vector<api::ObjectPtr> claims, PrepareDone done) override {
    std::vector<std::string> names;
    for (const auto& claim : claims) names.emplace_back(claim->name());
    calls.push_back("prepare " + Join(names, ","));
    if (hold) {
      held.push_back(std::move(done));
      return;
    }
    PrepareResults results;
    for (const auto& claim : claims) {
      if (claim->name() == "forgotten") continue;
      const std::string uid(claim->uid());
      if (claim->name() == "broken") {
        results.emplace(uid, FailedPrecondition("it is broken"));
        continue;
      }
      const std::string id = claim->name() == "badid" ? "no id" : "vendor.com/gpu=a";
      results.emplace(
          uid, std::vector<PreparedDevice>{{.request_names = {"gpu/small", "plain"},
                                            .pool_name = "pool",
                                            .device_name = "dev-" + std::string(claim->name()),
                                            .cdi_device_ids = {id}}});
    }
    results.emplace("nobody-asked", FailedPrecondition("x"));
    done(prepare_error ? Result<PrepareResults>(*prepare_error)
                       : Result<PrepareResults>(std::move(results)));
  }
  void UnprepareResourceClaims(std::vector<rpc::ClaimReference> claims,
                               rpc::UnprepareDone done) override {
    calls.push_back("unprepare " + claims.front().name);
    rpc::UnprepareResults results;
    for (const auto& claim : claims) {
      if (claim.name != "forgotten") results[claim.uid] = {};
    }
    done(std::move(results));
  }
  void HandleError(const Error& error, bool) override { errors.push_back(error.message); }

  bool hold = false;
  std::optional<Error> prepare_error;
  std::vector<PrepareDone> held;
  std::vector<std::string> calls;
  std::vector<std::string> errors;
};

class DriverTest : public DriverFixture<NamedClaims, ScriptedPlugin> {
 protected:
  void Start(DriverOptions options) { StartDriver(std::move(options)); }
  void Start() { StartDriver(Options()); }

  static rpc::ClaimReference Claim(const std::string& name) {
    return {"default", "uid-" + name, name};
  }
  void Put(const std::string& name) { client_.Put(name, "uid-" + name); }

  Result<rpc::PrepareResults> Prepare(std::vector<rpc::ClaimReference> claims) {
    std::optional<Result<rpc::PrepareResults>> answer;
    node_->Prepare(claims, kTimeout, [&](auto results) { answer = std::move(results); });
    loop_.RunUntilIdle();
    return answer ? std::move(*answer) : Result<rpc::PrepareResults>(Internal("no answer"));
  }
};

TEST_F(DriverTest, OpensTheSocketsOfKubernetes) {
  Start();
  EXPECT_THAT(transport_.ListeningPaths(),
              ElementsAre("/kubelet/plugins/d.example.com/dra.sock",
                          "/kubelet/plugins_registry/d.example.com-reg.sock"));
  driver_->Stop();
  EXPECT_TRUE(transport_.ListeningPaths().empty());
  driver_->Stop();
}

// The node announces claims while it syncs its intent.
class AnnouncementTest : public DriverTest {
 protected:
  // `object` is the claim as sent by the node; if empty, it is omitted.
  void Announce(const std::string& name, const std::string& object = "") {
    node_->AnnouncePrepare({{Claim(name), object}}, kTimeout);
  }
  static std::string Json(const std::string& name, const std::string& uid) {
    return StrCat(R"({"metadata":{"name":")", name, R"(","namespace":"default","uid":")", uid,
                  R"("},"status":{"allocation":{}}})");
  }
  std::size_t reads() const { return client_.versions_asked.size(); }
  // The call uses the claim that exists now, not one that was read before.
  void ExpectToFindTheClaimReplaced() {
    const auto results = Prepare({Claim("a")});
    ASSERT_TRUE(results.ok());
    EXPECT_THAT(results->at("uid-a").error, HasSubstr("got replaced"));
  }
};

TEST_F(AnnouncementTest, AClaimIsFetchedOnceForTheAnnouncementAndTheCall) {
  Put("a");
  Start();
  Announce("a");
  loop_.RunUntilIdle();
  EXPECT_EQ(reads(), 1u);
  EXPECT_TRUE(plugin_.calls.empty()) << "an announcement is not a call";
  EXPECT_TRUE(Prepare({Claim("a")}).ok());
  EXPECT_EQ(reads(), 1u);
  EXPECT_TRUE(Prepare({Claim("a")}).ok());
  EXPECT_EQ(reads(), 2u) << "it serves one call";
}

TEST_F(AnnouncementTest, AClaimSentByTheNodeIsNotFetched) {
  Start();
  Announce("a", Json("a", "uid-a"));
  loop_.RunUntilIdle();
  EXPECT_TRUE(plugin_.calls.empty()) << "an announcement is not a call";
  const auto results = Prepare({Claim("a")});
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(results->at("uid-a").error, "");
  EXPECT_EQ(reads(), 0u);
  EXPECT_THAT(plugin_.calls, ElementsAre("prepare a"));
}

TEST_F(AnnouncementTest, AClaimSentByTheNodeMustMatchTheCall) {
  Put("a");
  Start();
  std::size_t expected = 0;
  for (const std::string& object :
       {Json("a", "uid-of-another"), Json("b", "uid-a"), std::string("{"), std::string("[]"),
        std::string(R"({"metadata":{"name":"a","namespace":"default","uid":"uid-a"}})")}) {
    Announce("a", object);
    loop_.RunUntilIdle();
    const auto results = Prepare({Claim("a")});
    ASSERT_TRUE(results.ok()) << object;
    EXPECT_EQ(results->at("uid-a").error, "") << object;
    EXPECT_EQ(reads(), ++expected) << object;
  }
}

TEST_F(AnnouncementTest, AClaimSentByTheNodeServesOneCallAndExpires) {
  Put("a");
  Start();
  Announce("a", Json("a", "uid-a"));
  EXPECT_TRUE(Prepare({Claim("a")}).ok());
  EXPECT_TRUE(Prepare({Claim("a")}).ok());
  EXPECT_EQ(reads(), 1u);
  Announce("a", Json("a", "uid-a"));
  loop_.Advance(AnnouncedClaims::kKeptFor);
  EXPECT_TRUE(Prepare({Claim("a")}).ok());
  EXPECT_EQ(reads(), 2u);
}

TEST_F(AnnouncementTest, ACallWaitsForAFetchInFlight) {
  Put("a");
  Start();
  client_.slow = true;
  Announce("a");
  loop_.RunUntilIdle();
  std::optional<Result<rpc::PrepareResults>> answer;
  node_->Prepare({Claim("a")}, kTimeout, [&](auto results) { answer = std::move(results); });
  loop_.RunUntilIdle();
  EXPECT_FALSE(answer);
  client_.Release();
  loop_.RunUntilIdle();
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ((*answer)->at("uid-a").error, "");
  EXPECT_EQ(reads(), 1u);
}

TEST_F(AnnouncementTest, AFetchedClaimExpires) {
  Put("a");
  Start();
  Announce("a");
  loop_.Advance(AnnouncedClaims::kKeptFor);
  client_.Put("a", "uid-of-another");
  ExpectToFindTheClaimReplaced();
}

TEST_F(AnnouncementTest, AnotherAnnouncementFetchesAgain) {
  Put("a");
  Start();
  Announce("a");
  loop_.RunUntilIdle();
  client_.Put("a", "uid-of-another");
  Announce("a");
  loop_.RunUntilIdle();
  ExpectToFindTheClaimReplaced();
}

TEST_F(AnnouncementTest, TheCallRetriesAFailedFetch) {
  Put("a");
  Start();
  client_.reachable = false;
  Announce("a");
  loop_.RunUntilIdle();
  client_.reachable = true;
  const auto results = Prepare({Claim("a")});
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(results->at("uid-a").error, "");
}

TEST_F(AnnouncementTest, TheNumberOfAnnouncementsIsBounded) {
  Start();
  for (std::size_t i = 0; i < AnnouncedClaims::kMaxBatches + 10; ++i) {
    Put("c" + std::to_string(i));
    Announce("c" + std::to_string(i));
  }
  loop_.RunUntilIdle();
  EXPECT_EQ(reads(), AnnouncedClaims::kMaxBatches);
  EXPECT_TRUE(Prepare({Claim("c" + std::to_string(AnnouncedClaims::kMaxBatches + 9))}).ok());
  EXPECT_EQ(reads(), AnnouncedClaims::kMaxBatches + 1);
}

TEST_F(DriverTest, TheServiceOpensAndClosesBeforeTheRegistration) {
  std::vector<std::string> changes;
  transport_.OnSocketChange([&](const std::string& path, bool listening) {
    changes.push_back((listening ? "+" : "-") + std::string(BaseName(path)));
  });
  Start();
  driver_->Stop();
  loop_.RunUntilIdle();
  EXPECT_THAT(changes, ElementsAre("+dra.sock", "+d.example.com-reg.sock", "-dra.sock",
                                   "-d.example.com-reg.sock"));
}

TEST_F(DriverTest, ARollingUpdateUsesSeparateSockets) {
  DriverOptions options = Options();
  options.rolling_update_uid = "ad4af911-5bcd-47c5-a554-f35cea869472";
  Start(std::move(options));
  EXPECT_EQ(driver_->plugin_socket_path(),
            "/kubelet/plugins/d.example.com/dra-ad4af911-5bcd-47c5-a554-f35cea869472.sock");
  EXPECT_EQ(
      driver_->registrar_socket_path(),
      "/kubelet/plugins_registry/d.example.com-ad4af911-5bcd-47c5-a554-f35cea869472-reg.sock");
}

TEST_F(DriverTest, OneSocketCanServeBoth) {
  DriverOptions options = Options();
  options.plugin_directory = options.registry_directory;
  options.plugin_socket = options.registrar_socket = "common.sock";
  Start(std::move(options));
  EXPECT_THAT(transport_.ListeningPaths(), ElementsAre("/kubelet/plugins_registry/common.sock"));
  auto registration = rpc::MakeRegistrationClient(transport_);
  std::string endpoint;
  registration->GetInfo("/kubelet/plugins_registry/common.sock", kTimeout,
                        [&](Result<rpc::PluginInfo> info) { endpoint = info->endpoint; });
  loop_.RunUntilIdle();
  EXPECT_EQ(endpoint, "/kubelet/plugins_registry/common.sock");
  Put("a");
  EXPECT_TRUE(Prepare({Claim("a")}).ok());
}

TEST_F(DriverTest, RejectsInvalidOptions) {
  const auto error = [&](auto change) {
    DriverOptions options = Options();
    change(options);
    auto driver = Driver::Start(std::move(options));
    EXPECT_TRUE(transport_.ListeningPaths().empty());
    return driver.ok() ? std::string() : driver.error().message;
  };
  EXPECT_EQ(error([](auto& o) { o.driver_name = ""; }), "driver name must be set");
  EXPECT_THAT(error([](auto& o) { o.driver_name = "../x"; }), HasSubstr("driver name \"../x\""));
  EXPECT_THAT(error([](auto& o) { o.driver_name = std::string(64, 'a'); }), HasSubstr("63 bytes"));
  EXPECT_EQ(error([](auto& o) { o.dra_v1 = o.dra_v1beta1 = false; }),
            "no supported DRA gRPC API is implemented and enabled");
  EXPECT_EQ(error([](auto& o) {
              o.rolling_update_uid = "a";
              o.registrar_socket = "b";
            }),
            "rolling updates and explicit registration socket filename are mutually exclusive");
  EXPECT_THAT(error([](auto& o) { o.plugin_directory = "/" + std::string(120, 'd'); }),
              HasSubstr("use a shorter directory"));
  EXPECT_THAT(error([](auto& o) { o.registry_directory = "/" + std::string(120, 'd'); }),
              HasSubstr("use a shorter directory"));
  const auto starts = [&](auto change) {
    DriverOptions options = Options();
    change(options);
    return Driver::Start(std::move(options)).ok();
  };
  EXPECT_TRUE(starts([](auto& o) { o.driver_name = std::string(63, 'a'); }));
  EXPECT_THAT(error([](auto& o) { o.rolling_update_uid = "../up"; }),
              HasSubstr("pod UID \"../up\" is not a UID"));
  EXPECT_TRUE(starts([](auto& o) { o.dra_v1 = false; })) << "one version is enough";
  EXPECT_TRUE(starts([](auto& o) { o.dra_v1beta1 = false; }));
  EXPECT_EQ(error([](auto& o) {
              o.node_name = "n";
              o.pool_name = "p";
            }),
            "pool_name and owner are only for drivers that run without a node");
  EXPECT_EQ(error([](auto& o) {
              o.node_name = "n";
              o.owner = *api::ParseJson("{}");
            }),
            "pool_name and owner are only for drivers that run without a node");
  EXPECT_TRUE(starts([](auto& o) {
    o.node_name = "";
    o.pool_name = "p";
  }));
  EXPECT_EQ(error([](auto& o) {
              o.unhealthy_taint.key = "k";
              o.health_service = false;
            }),
            "unhealthy_taint requires health_service");
}

TEST_F(DriverTest, AnswersWithTheBaseNamesOfRequests) {
  Start();
  Put("a");
  auto results = Prepare({Claim("a")});
  ASSERT_TRUE(results.ok()) << results.error().message;
  ASSERT_EQ(results->size(), 1u);
  const rpc::PrepareResult& result = results->at("uid-a");
  EXPECT_EQ(result.error, "");
  EXPECT_THAT(result.devices[0].request_names, ElementsAre("gpu", "plain"));
  EXPECT_EQ(result.devices[0].device_name, "dev-a");
}

TEST_F(DriverTest, AFailedClaimDoesNotAffectTheOthers) {
  Start();
  for (const char* name : {"a", "broken", "forgotten", "badid"}) Put(name);
  auto results = Prepare({Claim("a"), Claim("broken"), Claim("forgotten"), Claim("badid")});
  ASSERT_TRUE(results.ok());
  ASSERT_EQ(results->size(), 4u);
  EXPECT_EQ(results->at("uid-a").error, "");
  EXPECT_EQ(results->at("uid-broken").error, "it is broken");
  EXPECT_EQ(results->at("uid-forgotten").error, "the driver returned no result for the claim");
  EXPECT_THAT(results->at("uid-badid").error, HasSubstr("bad CDI device id"));
  EXPECT_TRUE(results->at("uid-badid").devices.empty());
}

TEST_F(DriverTest, ClaimsAreCheckedBeforeThePluginSeesThem) {
  Start();
  Put("a");
  client_.Put("unallocated", "uid-unallocated", false);
  client_.Put("replaced", "another-uid");
  const auto refused = [&](const std::string& name) {
    auto results = Prepare({Claim(name)});
    return results.ok() ? results->at("uid-" + name).error : "no answer";
  };
  EXPECT_EQ(refused("gone"), "get resource claims: retrieve claim default/gone: not there");
  EXPECT_EQ(refused("unallocated"), "get resource claims: claim default/unallocated not allocated");
  EXPECT_EQ(refused("replaced"), "get resource claims: claim default/replaced got replaced");
  EXPECT_TRUE(plugin_.calls.empty());
  // The other claims of the call are not affected.
  auto results = Prepare({Claim("gone"), Claim("a"), Claim("replaced")});
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(results->size(), 3u);
  EXPECT_EQ(results->at("uid-a").error, "");
  EXPECT_THAT(results->at("uid-gone").error, HasSubstr("not there"));
  EXPECT_THAT(plugin_.calls, ElementsAre("prepare a"));
}

TEST_F(DriverTest, OlderServersAreAskedForOlderVersions) {
  Start();
  Put("a");
  client_.served_version = "v1beta1";
  EXPECT_TRUE(Prepare({Claim("a")}).ok());
  EXPECT_THAT(client_.versions_asked, ElementsAre("v1", "v1beta2", "v1beta1"));
}

TEST_F(DriverTest, AnErrorOfThePluginFailsTheCall) {
  Start();
  Put("a");
  plugin_.prepare_error = Unavailable("hardware busy");
  EXPECT_THAT(Prepare({Claim("a")}).error().message,
              HasSubstr("prepare resource claims: hardware busy"));
}

TEST_F(DriverTest, UnprepareNeedsNoClaimOnTheServer) {
  Start();
  std::optional<Result<rpc::UnprepareResults>> answer;
  node_->Unprepare({Claim("gone"), Claim("forgotten")}, kTimeout,
                   [&](auto results) { answer = std::move(results); });
  loop_.RunUntilIdle();
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ((*answer)->at("uid-gone").error, "");
  EXPECT_NE((*answer)->at("uid-forgotten").error, "");
  EXPECT_TRUE(client_.versions_asked.empty());
}

TEST_F(DriverTest, CallsForOneClaimAreSerializedAndOthersRunConcurrently) {
  Start();
  plugin_.hold = true;
  for (const char* name : {"a", "b", "c"}) Put(name);
  std::vector<std::string> answers;
  const auto prepare = [&](const std::string& id, std::vector<rpc::ClaimReference> claims) {
    node_->Prepare(std::move(claims), kTimeout, [&, id](auto) { answers.push_back(id); });
    loop_.RunUntilIdle();
  };
  prepare("first", {Claim("a")});
  prepare("second", {Claim("a"), Claim("b")});
  prepare("third", {Claim("b")});
  prepare("fourth", {Claim("c")});
  // The second waits for the first, and the third, for a claim of the second, does not overtake it.
  EXPECT_THAT(plugin_.calls, ElementsAre("prepare a", "prepare c"));
  const auto answer = [&](std::size_t index) {
    PrepareDone done = std::move(plugin_.held[index]);
    done(PrepareResults());
    loop_.RunUntilIdle();
  };
  answer(1);
  EXPECT_THAT(answers, ElementsAre("fourth"));
  answer(0);
  EXPECT_THAT(plugin_.calls, ElementsAre("prepare a", "prepare c", "prepare a,b"));
  answer(2);
  answer(3);
  EXPECT_THAT(answers, ElementsAre("fourth", "first", "second", "third"));
}

TEST_F(DriverTest, FewCallsWaitForAClaimThatIsNeverAnswered) {
  Start();
  plugin_.hold = true;
  for (const char* name : {"stuck", "other"}) Put(name);
  std::size_t open = 0;
  std::vector<std::string> errors;
  const auto prepare = [&](const std::string& name) {
    ++open;
    node_->Prepare({Claim(name)}, kTimeout, [&](auto results) {
      --open;
      if (!results.ok()) errors.push_back(results.error().message);
    });
    loop_.RunUntilIdle();
  };
  for (std::size_t i = 0; i < kMaxWaitingPerClaim + 1; ++i) prepare("stuck");
  EXPECT_THAT(errors, ElementsAre());
  prepare("stuck");
  EXPECT_THAT(errors, ElementsAre(HasSubstr("claim with UID uid-stuck: the driver has not answered "
                                            "8 earlier calls")));
  EXPECT_EQ(open, kMaxWaitingPerClaim + 1);
  prepare("other");
  EXPECT_THAT(plugin_.calls, ElementsAre("prepare stuck", "prepare other"));
  std::string error;
  node_->Unprepare({Claim("stuck")}, kTimeout,
                   [&](auto results) { error = results.error().message; });
  loop_.RunUntilIdle();
  EXPECT_THAT(error, HasSubstr("has not answered"));
  error.clear();
  node_->Unprepare({Claim("other"), Claim("stuck")}, kTimeout,
                   [&](auto results) { error = results.ok() ? "" : results.error().message; });
  loop_.RunUntilIdle();
  EXPECT_THAT(error, HasSubstr("claim with UID uid-stuck")) << "whichever claim of the call it is";
}

TEST_F(DriverTest, CallsRunOneAtATimeWithSerialize) {
  for (const bool serialize : {true, false}) {
    DriverOptions options = Options();
    options.serialize = serialize;
    Start(std::move(options));
    plugin_.hold = true;
    Put("a");
    Put("b");
    int answers = 0;
    node_->Prepare({Claim("a")}, kTimeout, [&](auto) { ++answers; });
    node_->Prepare({Claim("b")}, kTimeout, [&](auto) { ++answers; });
    loop_.RunUntilIdle();
    EXPECT_EQ(plugin_.held.size(), serialize ? 1u : 2u);
    plugin_.hold = false;
    std::vector<PrepareDone> held = std::move(plugin_.held);
    plugin_.held.clear();
    for (auto& done : held) done(PrepareResults());
    loop_.RunUntilIdle();
    EXPECT_EQ(answers, 2);
    node_.reset();
    driver_.reset();
    loop_.RunUntilIdle();
  }
}

TEST_F(DriverTest, ACallThatThePluginDropsDoesNotBlockTheNext) {
  Start();
  plugin_.hold = true;
  Put("a");
  std::optional<Result<rpc::PrepareResults>> answer;
  node_->Prepare({Claim("a")}, kTimeout, [&](auto results) { answer = std::move(results); });
  loop_.RunUntilIdle();
  plugin_.held.clear();
  loop_.RunUntilIdle();
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->ok());
  plugin_.hold = false;
  EXPECT_TRUE(Prepare({Claim("a")}).ok());
}

TEST_F(DriverTest, AnAnswerAfterStopIsIgnored) {
  Start();
  plugin_.hold = true;
  Put("a");
  node_->Prepare({Claim("a")}, kTimeout, [](auto) {});
  loop_.RunUntilIdle();
  driver_.reset();
  plugin_.held.front()(PrepareResults());
  loop_.RunUntilIdle();
}

TEST_F(DriverTest, ARejectedRegistrationIsReported) {
  Start();
  auto registration = rpc::MakeRegistrationClient(transport_);
  std::string error;
  registration->NotifyRegistrationStatus(
      driver_->registrar_socket_path(), {.plugin_registered = false, .error = "no thanks"},
      kTimeout, [&](Result<void> answer) { error = answer.error().message; });
  loop_.RunUntilIdle();
  EXPECT_THAT(error, HasSubstr("failed registration process: no thanks"));
  EXPECT_THAT(plugin_.errors, ElementsAre("the node rejected the registration: no thanks"));
  EXPECT_EQ(driver_->registration_status()->error, "no thanks");
  EXPECT_EQ(driver_->CheckReady().error().message, "the node rejected the registration: no thanks");
}

TEST_F(DriverTest, HealthIsSentAtOnceThenOnChangeAndBeforeItExpires) {
  DriverOptions options = Options();
  options.health_service = true;
  Start(std::move(options));
  using State = rpc::DeviceHealthState;
  EXPECT_TRUE(
      driver_
          ->ReportHealth({{.pool_name = "p", .device_name = "a", .health = State::kHealthy},
                          {.pool_name = "p", .device_name = "b", .health = State::kHealthy}})
          .ok());
  for (const rpc::HealthService service :
       {rpc::HealthService::kV1, rpc::HealthService::kV1alpha1, rpc::HealthService::kNodeHealth}) {
    std::vector<rpc::HealthReport> reports;
    auto stream = node_->WatchHealth(
        service, {.on_report = [&](rpc::HealthReport report) { reports.push_back(report); }});
    loop_.RunUntilIdle();
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_EQ(reports[0].size(), 2u);
    EXPECT_TRUE(
        driver_->ReportHealth({{.pool_name = "p", .device_name = "b", .health = State::kUnhealthy}})
            .ok());
    loop_.RunUntilIdle();
    ASSERT_EQ(reports.size(), 2u);
    ASSERT_EQ(reports[1].size(), 1u);
    EXPECT_EQ(reports[1][0].health, State::kUnhealthy);
    loop_.Advance(std::chrono::seconds(29));
    ASSERT_EQ(reports.size(), 3u);
    EXPECT_EQ(reports[2].size(), 2u);
    stream.reset();
    loop_.RunUntilIdle();
  }
}

TEST_F(DriverTest, TheShortestTimeoutOfADeviceDecidesHowOftenHealthIsRepeated) {
  DriverOptions options = Options();
  options.health_service = true;
  Start(std::move(options));
  EXPECT_TRUE(driver_
                  ->ReportHealth(
                      {{.pool_name = "p", .device_name = "a", .health_check_timeout_seconds = 4}})
                  .ok());
  int reports = 0;
  auto stream = node_->WatchHealth(rpc::HealthService::kV1,
                                   {.on_report = [&](rpc::HealthReport) { ++reports; }});
  loop_.RunUntilIdle();
  loop_.Advance(std::chrono::seconds(20));
  EXPECT_GE(reports, 10);
  EXPECT_LE(reports, 12);
  EXPECT_FALSE(driver_->ReportHealth({{.device_name = "a"}}).ok());
}

TEST_F(DriverTest, ADriverMayReportHealthWithoutPreparingClaims) {
  DriverOptions options = Options();
  options.dra_service = false;
  options.health_service = true;
  Start(std::move(options));
  EXPECT_THAT(transport_.ListeningPaths(),
              ElementsAre("/kubelet/plugins/d.example.com/dra.sock",
                          "/kubelet/plugins_registry/d.example.com-reg.sock"));
  EXPECT_TRUE(driver_->ReportHealth({{.pool_name = "p", .device_name = "a"}}).ok());
  EXPECT_EQ(driver_->PreparedRequests().error().message, "the driver is not serving");
}

TEST_F(DriverTest, AStoppedDriverRefusesEverything) {
  DriverOptions options = Options();
  options.device_metadata = true;
  options.health_service = true;
  Start(std::move(options));
  EXPECT_TRUE(driver_->PreparedRequests().ok());
  driver_->Stop();
  EXPECT_EQ(driver_->PreparedRequests().error().message, "the driver is not serving");
  EXPECT_EQ(driver_->UpdateRequestMetadata({}, {}).error().message, "the driver is not serving");
  EXPECT_EQ(driver_->PublishResources({}).error().message, "the driver was stopped");
  EXPECT_FALSE(driver_->ReportHealth({{.pool_name = "p", .device_name = "a"}}).ok());
  EXPECT_EQ(driver_->CheckReady().error().message, "the driver was stopped");
  bool answered = false;
  driver_->ApplyClaimStatus(Claim("a"), {}, [&](Result<void>) { answered = true; });
  driver_->ForgetHealth("p", "a");
  loop_.RunUntilIdle();
  EXPECT_FALSE(answered);
}

TEST_F(DriverTest, WithoutTheHealthServiceThereIsNothingToForget) {
  Start();
  driver_->ForgetHealth("p", "a");
  EXPECT_FALSE(driver_->ReportHealth({{.pool_name = "p", .device_name = "a"}}).ok());
}

TEST_F(DriverTest, TheNumberOfCallsInFlightIsLimited) {
  DriverOptions options = Options();
  options.serialize = true;
  Start(std::move(options));
  plugin_.hold = true;
  std::size_t open = 0;
  std::vector<std::string> errors;
  for (std::size_t i = 0; i <= kMaxOpenCalls; ++i) {
    ++open;
    node_->Prepare({}, std::chrono::hours(1), [&](auto results) {
      --open;
      if (!results.ok()) errors.push_back(results.error().message);
    });
    if (i % 256 == 0) loop_.RunUntilIdle();
  }
  loop_.RunUntilIdle();
  EXPECT_THAT(errors, ElementsAre(HasSubstr("more than 4096 calls are in flight")));
  EXPECT_EQ(open, kMaxOpenCalls);
  plugin_.hold = false;
  std::vector<PrepareDone> held = std::move(plugin_.held);
  for (PrepareDone& done : held) done(PrepareResults());
  loop_.RunUntilIdle();
  EXPECT_EQ(open, 0u);
  EXPECT_TRUE(Prepare({}).ok()) << "there is room again";
}

TEST_F(DriverTest, FailedCallsTakeNoRoom) {
  Start();
  for (std::size_t i = 0; i <= kMaxOpenCalls; ++i) {
    node_->Prepare({Claim("missing")}, kTimeout, [](auto) {});
    if (i % 256 == 0) loop_.RunUntilIdle();
  }
  loop_.RunUntilIdle();
  Put("a");
  const auto results = Prepare({Claim("a")});
  ASSERT_TRUE(results.ok()) << results.error().message;
  EXPECT_EQ(results->at("uid-a").error, "");
}

TEST_F(DriverTest, WithoutTheLockBetweenInstancesCallsFailAndAreReported) {
  DriverOptions options = Options();
  options.rolling_update_uid = "ad4af911";  // the lock file needs a real directory
  Start(std::move(options));
  Put("a");
  plugin_.errors.clear();  // device metadata has a lock, too
  for (std::size_t i = 0; i <= kMaxOpenCalls; ++i) {
    node_->Prepare({Claim("a")}, kTimeout, [](auto) {});
    loop_.RunUntilIdle();
  }
  EXPECT_EQ(plugin_.errors.size(), kMaxOpenCalls + 1) << "each call was admitted";
  const auto results = Prepare({Claim("a")});
  ASSERT_FALSE(results.ok());
  EXPECT_THAT(results.error().message, HasSubstr("acquire the lock between driver instances"));
  EXPECT_THAT(plugin_.errors.back(), HasSubstr("acquire the lock between driver instances"));
  EXPECT_TRUE(plugin_.calls.empty());
}

TEST_F(DriverTest, CallsAreCountedAndTimed) {
  Metrics metrics;
  DriverOptions options = Options();
  options.metrics = &metrics;
  Start(std::move(options));
  Put("a");
  Put("broken");
  EXPECT_TRUE(Prepare({Claim("a"), Claim("broken")}).ok());
  plugin_.prepare_error = Unavailable("hardware busy");
  EXPECT_FALSE(Prepare({Claim("a")}).ok());
  driver_->UpdateMetrics();
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("dra_driver_operation_duration_seconds_count{is_error=\"false\","
                              "method=\"NodePrepareResources\"} 1"));
  EXPECT_THAT(text, HasSubstr("dra_driver_operation_duration_seconds_count{is_error=\"true\","
                              "method=\"NodePrepareResources\"} 1"));
  EXPECT_THAT(text, HasSubstr("dra_driver_claim_errors_total{method=\"NodePrepareResources\"} 1"));
  EXPECT_THAT(text, HasSubstr("dra_driver_registered 0"));
  EXPECT_EQ(text.find("dra_driver_slice_writes"), text.npos) << "it has published nothing";
  ASSERT_FALSE(driver_->CheckReady().ok());
  EXPECT_EQ(driver_->CheckReady().error().message, "no node has registered the driver yet");
}

// Prepares "slow" only when released.
class SlowPlugin final : public BlockingPlugin {
 public:
  using BlockingPlugin::Stop;
  ~SlowPlugin() override { Stop(); }
  Result<std::vector<PreparedDevice>> PrepareResourceClaim(const api::Object& claim) override {
    if (claim.name() == "slow") released.get_future().wait();
    if (claim.name() == "broken") return Unavailable("hardware busy");
    std::vector<PreparedDevice> devices(1);
    devices[0].pool_name = "pool";
    devices[0].device_name = "dev-" + std::string(claim.name());
    return devices;
  }
  Result<void> UnprepareResourceClaim(const rpc::ClaimReference& claim) override {
    if (claim.name == "broken") return Unavailable("hardware busy");
    return Ok();
  }
  std::promise<void> released;
};

// While a claim is prepared on a thread, the node registers the driver, receives health, and
// prepares and unprepares other claims.
TEST(BlockingPluginTest, AfterStopItRefusesClaims) {
  SlowPlugin plugin;
  plugin.Stop();
  std::optional<PrepareResults> results;
  plugin.PrepareResourceClaims(
      {std::make_shared<api::Object>(*api::ParseJson(R"({"metadata":{"name":"a","uid":"u"}})"))},
      [&](Result<PrepareResults> answer) { results = *std::move(answer); });
  ASSERT_TRUE(results.has_value());
  ASSERT_FALSE(results->at("u").ok());
  EXPECT_THAT(results->at("u").error().message, HasSubstr("the driver is stopping"));
}

TEST(DriverOverGrpc, ASlowPrepareDelaysNothingElse) {
  auto harness = rpc::MakeGrpcHarness();
  SlowPlugin plugin;
  std::unique_ptr<NamedClaims> client;
  std::unique_ptr<Driver> driver;
  std::unique_ptr<rpc::RegistrationClient> registration;
  std::unique_ptr<rpc::DraPluginClient> node;
  std::optional<Result<rpc::PrepareResults>> slow;
  std::optional<Result<rpc::PrepareResults>> quick;
  std::optional<Result<rpc::UnprepareResults>> undone;
  std::optional<Result<rpc::PluginInfo>> info;
  harness->Do([&] {
    client = std::make_unique<NamedClaims>(harness->loop());
    for (const char* name : {"slow", "quick", "broken"}) client->Put(name, StrCat("uid-", name));
    auto started = Driver::Start({.loop = harness->loop(),
                                  .random = RealRandom(),
                                  .files = RealFileSystem(),
                                  .client = *client,
                                  .transport = harness->transport(),
                                  .plugin = plugin,
                                  .driver_name = "d.example.com",
                                  .node_name = "n",
                                  .registry_directory = harness->SocketPath("reg"),
                                  .rolling_update_uid = "uid-1",
                                  .health_service = true});
    ASSERT_TRUE(started.ok()) << started.error().message;
    driver = *std::move(started);
    node = rpc::DialDraPlugin(harness->transport(), {.endpoint = driver->plugin_socket_path(),
                                                     .version = rpc::DraVersion::kV1});
  });
  ASSERT_TRUE(harness->WaitUntil([&] { return node->IsConnected(); }));
  harness->Do([&] {
    node->Prepare({{"default", "uid-slow", "slow"}}, kTimeout,
                  [&](auto results) { slow = std::move(results); });
    node->Prepare({{"default", "uid-quick", "quick"}, {"default", "uid-broken", "broken"}},
                  kTimeout, [&](auto results) { quick = std::move(results); });
    node->Unprepare({{"default", "uid-x", "x"}, {"default", "uid-y", "broken"}}, kTimeout,
                    [&](auto results) { undone = std::move(results); });
    registration = rpc::MakeRegistrationClient(harness->transport());
    registration->GetInfo(driver->registrar_socket_path(), std::chrono::seconds(5),
                          [&](Result<rpc::PluginInfo> answer) { info = std::move(answer); });
  });
  ASSERT_TRUE(harness->WaitUntil([&] { return quick && undone && info; }));
  harness->Do([&] {
    EXPECT_FALSE(slow.has_value());
    ASSERT_TRUE(quick->ok()) << quick->error().message;
    EXPECT_EQ((*quick)->at("uid-quick").devices[0].device_name, "dev-quick");
    EXPECT_EQ((*quick)->at("uid-broken").error, "hardware busy");
    ASSERT_TRUE(undone->ok()) << undone->error().message;
    EXPECT_EQ((*undone)->at("uid-x").error, "");
    EXPECT_EQ((*undone)->at("uid-y").error, "hardware busy");
    EXPECT_TRUE(info->ok());
    EXPECT_TRUE(driver->ReportHealth({{.pool_name = "pool", .device_name = "dev-slow"}}).ok());
  });
  plugin.released.set_value();
  ASSERT_TRUE(harness->WaitUntil([&] { return slow.has_value(); }));
  harness->Do([&] {
    ASSERT_TRUE(slow->ok()) << slow->error().message;
    EXPECT_EQ((*slow)->at("uid-slow").devices[0].device_name, "dev-slow");
    node.reset();
    registration.reset();
    driver.reset();
    client.reset();
  });
}

// Answers or drops the call on its own thread.
class ThreadedPlugin final : public Plugin {
 public:
  void PrepareResourceClaims(std::vector<api::ObjectPtr> claims, PrepareDone done) override {
    const bool forgets = claims.front()->name() == "forgotten";
    EXPECT_TRUE(workers.Run([forgets, uid = std::string(claims.front()->uid()),
                             done = std::move(done)]() mutable {
      if (forgets) return;
      PrepareResults results;
      results.emplace(
          uid, std::vector<PreparedDevice>{{.pool_name = "pool", .device_name = "from-a-thread"}});
      done(std::move(results));
    }));
  }
  void UnprepareResourceClaims(std::vector<rpc::ClaimReference>, rpc::UnprepareDone) override {}
  WorkerPool workers{1, 8};
};

TEST(DriverOverGrpc, ThePluginMayAnswerOrDropACallOnAnyThread) {
  auto harness = rpc::MakeGrpcHarness();
  ThreadedPlugin plugin;
  std::unique_ptr<NamedClaims> client;
  std::unique_ptr<Driver> driver;
  std::unique_ptr<rpc::DraPluginClient> node;
  harness->Do([&] {
    client = std::make_unique<NamedClaims>(harness->loop());
    for (const char* name : {"a", "forgotten"}) client->Put(name, StrCat("uid-", name));
    auto started = Driver::Start({.loop = harness->loop(),
                                  .random = RealRandom(),
                                  .files = RealFileSystem(),
                                  .client = *client,
                                  .transport = harness->transport(),
                                  .plugin = plugin,
                                  .driver_name = "d.example.com",
                                  .node_name = "n",
                                  .registry_directory = harness->SocketPath("reg"),
                                  .serialize = true});
    ASSERT_TRUE(started.ok()) << started.error().message;
    driver = *std::move(started);
    node = rpc::DialDraPlugin(harness->transport(), {.endpoint = driver->plugin_socket_path(),
                                                     .version = rpc::DraVersion::kV1});
  });
  ASSERT_TRUE(harness->WaitUntil([&] { return node->IsConnected(); }));
  const auto prepare = [&](const std::string& name) {
    std::optional<Result<rpc::PrepareResults>> answer;
    harness->Do([&] {
      node->Prepare({{"default", "uid-" + name, name}}, kTimeout,
                    [&](auto results) { answer = std::move(results); });
    });
    EXPECT_TRUE(harness->WaitUntil([&] { return answer.has_value(); }));
    return answer.has_value() ? *std::move(answer) : Result<rpc::PrepareResults>(Internal("none"));
  };
  EXPECT_EQ(prepare("a")->at("uid-a").devices[0].device_name, "from-a-thread");
  EXPECT_FALSE(prepare("forgotten").ok());
  EXPECT_EQ(prepare("a")->at("uid-a").devices[0].device_name, "from-a-thread")
      << "a dropped call no longer blocks others";
  harness->Do([&] {
    node.reset();
    driver.reset();
    client.reset();
  });
}

// Over real sockets, with the lock file of a rolling update.
TEST(DriverOverGrpc, PreparesForANode) {
  auto harness = rpc::MakeGrpcHarness();
  ScriptedPlugin plugin;
  std::unique_ptr<NamedClaims> client;
  std::unique_ptr<Driver> driver;
  std::unique_ptr<rpc::RegistrationClient> registration;
  std::unique_ptr<rpc::DraPluginClient> node;
  std::optional<Result<rpc::PluginInfo>> info;
  std::optional<Result<rpc::PrepareResults>> prepared;
  harness->Do([&] {
    client = std::make_unique<NamedClaims>(harness->loop());
    client->Put("a", "uid-a");
    auto started = Driver::Start({.loop = harness->loop(),
                                  .random = RealRandom(),
                                  .files = RealFileSystem(),
                                  .client = *client,
                                  .transport = harness->transport(),
                                  .plugin = plugin,
                                  .driver_name = "d.example.com",
                                  .node_name = "n",
                                  .registry_directory = harness->SocketPath("reg"),
                                  .rolling_update_uid = "uid-1"});
    ASSERT_TRUE(started.ok()) << started.error().message;
    driver = *std::move(started);
    registration = rpc::MakeRegistrationClient(harness->transport());
    registration->GetInfo(driver->registrar_socket_path(), std::chrono::seconds(5),
                          [&](Result<rpc::PluginInfo> answer) { info = std::move(answer); });
  });
  ASSERT_TRUE(harness->WaitUntil([&] { return info.has_value(); }));
  harness->Do([&] {
    ASSERT_TRUE(info->ok()) << info->error().message;
    EXPECT_EQ((*info)->name, "d.example.com");
    node = rpc::DialDraPlugin(harness->transport(), {.endpoint = (*info)->endpoint,
                                                     .version = rpc::DraVersion::kV1beta1});
  });
  ASSERT_TRUE(harness->WaitUntil([&] { return node->IsConnected(); }));
  harness->Do([&] {
    EXPECT_EQ(RealFileSystem().Stat(driver->plugin_socket_path())->mode, 0600u);
    node->Prepare({{"default", "uid-a", "a"}}, kTimeout,
                  [&](auto results) { prepared = std::move(results); });
  });
  ASSERT_TRUE(harness->WaitUntil([&] { return prepared.has_value(); }));
  // While another instance holds the lock, calls wait.
  FileLock other(JoinPath(harness->SocketPath("plugins/d.example.com"), "serialize.lock"));
  harness->Do([&] {
    ASSERT_TRUE(prepared->ok()) << prepared->error().message;
    EXPECT_EQ((*prepared)->at("uid-a").devices[0].device_name, "dev-a");
    EXPECT_TRUE(*other.TryLock());
    plugin.calls.clear();
    prepared.reset();
    node->Prepare({{"default", "uid-a", "a"}}, kTimeout,
                  [&](auto results) { prepared = std::move(results); });
  });
  std::size_t calls_while_locked = 0;
  ASSERT_TRUE(harness->WaitUntil([&, turns = 0]() mutable {
    calls_while_locked = plugin.calls.size();
    return ++turns > 20;
  }));
  EXPECT_EQ(calls_while_locked, 0u);
  harness->Do([&] { other.Unlock(); });
  ASSERT_TRUE(harness->WaitUntil([&] { return prepared.has_value(); }));
  harness->Do([&] {
    EXPECT_TRUE(prepared->ok());
    node.reset();
    registration.reset();
    const std::string path = driver->plugin_socket_path();
    driver.reset();
    EXPECT_FALSE(RealFileSystem().Exists(path));
    client.reset();
  });
}

}  // namespace
}  // namespace drakkar::driver
