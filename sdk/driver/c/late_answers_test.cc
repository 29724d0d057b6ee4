// A driver in C that answers later, from threads of its own, called by a node over gRPC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/text/text.h"
#include "rpc/dra/dra_client.h"
#include "rpc/registration/registration.h"
#include "rpc/testing/transport_harness.h"
#include "sdk/driver/c/testing/late_driver.h"

namespace drakkar {
namespace {

using ::testing::HasSubstr;
using Prepared = std::optional<Result<rpc::PrepareResults>>;
using Unprepared = std::optional<Result<rpc::UnprepareResults>>;

constexpr Duration kTimeout = std::chrono::seconds(60);

rpc::ClaimReference Claim(const std::string& name) {
  return {"default", "uid-" + name, name};
}

class LateAnswers : public ::testing::Test {
 protected:
  LateAnswers() : harness_(rpc::MakeGrpcHarness()) {
    const std::string directory = harness_->SocketPath("");
    drakkar_error error = {};
    driver_ = late_driver_start(directory.c_str(), &error);
    EXPECT_NE(driver_, nullptr) << error.message;
    harness_->Do([&] {
      node_ = rpc::DialDraPlugin(
          harness_->transport(),
          {.endpoint = directory + "/plugins/dra.sock", .version = rpc::DraVersion::kV1});
    });
    EXPECT_TRUE(harness_->WaitUntil([&] { return node_->IsConnected(); }));
  }
  ~LateAnswers() override {
    harness_->Do([&] {
      stream_.reset();
      node_.reset();
    });
    late_driver_free(driver_);
  }

  // The node sends the claims along, so that no API server is needed.
  void Prepare(const std::vector<std::string>& names, Prepared& answer) {
    harness_->Do([&] {
      std::vector<rpc::AnnouncedClaim> announced;
      std::vector<rpc::ClaimReference> claims;
      for (const std::string& name : names) {
        claims.push_back(Claim(name));
        announced.push_back(
            {Claim(name),
             StrCat(R"({"metadata":{"name":")", name, R"(","namespace":"default","uid":"uid-)",
                    name, R"("},"status":{"allocation":{"devices":{"results":[{"request":"r",)",
                    R"("driver":"late.example.com","pool":"p","device":"dev-)", name,
                    R"("}]}}}})")});
      }
      node_->AnnouncePrepare(announced, kTimeout);
      node_->Prepare(claims, kTimeout, [&answer](auto results) { answer = std::move(results); });
    });
    for (const std::string& name : names) {
      late_driver_wait_for(driver_, StrCat("uid-", name).c_str());
    }
  }
  int Answer(const std::string& name, late_answer answer, drakkar_error* error = nullptr) {
    return late_driver_answer(driver_, StrCat("uid-", name).c_str(), answer, error);
  }
  template <typename T>
  T Await(std::optional<Result<T>>& answer) {
    EXPECT_TRUE(harness_->WaitUntil([&] { return answer.has_value(); }));
    T results;
    harness_->Do([&] {
      EXPECT_TRUE(answer->ok()) << answer->error().message;
      if (answer->ok()) results = **answer;
    });
    return results;
  }
  bool IsOpen(const Prepared& answer) {
    bool open = false;
    harness_->Do([&] { open = !answer.has_value(); });
    return open;
  }
  std::string DeviceOf(Prepared& answer, const std::string& name) {
    const rpc::PrepareResult result = Await(answer).at("uid-" + name);
    return result.devices.empty() ? result.error : result.devices[0].device_name;
  }

  std::unique_ptr<rpc::TransportHarness> harness_;
  late_driver* driver_ = nullptr;
  std::unique_ptr<rpc::DraPluginClient> node_;
  std::unique_ptr<rpc::HealthStream> stream_;
};

TEST_F(LateAnswers, ComeFromAnyThreadInAnyOrder) {
  Prepared a, b;
  Prepare({"a"}, a);
  Prepare({"b"}, b);
  EXPECT_EQ(Answer("b", LATE_SUCCEED), 0);
  EXPECT_EQ(DeviceOf(b, "b"), "dev-b");
  EXPECT_TRUE(IsOpen(a)) << "nobody answered it";
  EXPECT_EQ(Answer("a", LATE_SUCCEED), 0);
  EXPECT_EQ(DeviceOf(a, "a"), "dev-a");
}

TEST_F(LateAnswers, EachClaimOfACallHasItsOwn) {
  Prepared both;
  Prepare({"a", "b"}, both);
  EXPECT_EQ(Answer("b", LATE_FAIL), 0);
  EXPECT_TRUE(IsOpen(both));
  EXPECT_EQ(Answer("a", LATE_SUCCEED), 0);
  EXPECT_EQ(DeviceOf(both, "a"), "dev-a");
  EXPECT_EQ(DeviceOf(both, "b"), "no link");
}

TEST_F(LateAnswers, ASecondAnswerFailsLoudlyAndChangesNothing) {
  Prepared a;
  Prepare({"a"}, a);
  EXPECT_EQ(Answer("a", LATE_SUCCEED), 0);
  drakkar_error error = {};
  EXPECT_NE(Answer("a", LATE_FAIL, &error), 0);
  EXPECT_STREQ(error.message, "claim default/a was answered twice");
  EXPECT_NE(Answer("a", LATE_SUCCEED, &error), 0);
  EXPECT_EQ(DeviceOf(a, "a"), "dev-a");
  EXPECT_TRUE(harness_->WaitUntil([&] {
    drakkar_error last = {};
    late_driver_last_error(driver_, &last);
    return std::string(last.message) == "claim default/a was answered twice";
  })) << "handle_error is called too";
}

TEST_F(LateAnswers, AClaimThatIsNeverAnsweredBlocksNothingElse) {
  Prepared never, again, other;
  Unprepared undone;
  Prepare({"never"}, never);
  Prepare({"never"}, again);  // the node's next call for the claim waits
  Prepare({"other"}, other);
  EXPECT_EQ(Answer("other", LATE_SUCCEED), 0);
  EXPECT_EQ(DeviceOf(other, "other"), "dev-other");
  harness_->Do([&] {
    node_->Unprepare({Claim("gone")}, kTimeout, [&](auto results) { undone = std::move(results); });
  });
  late_driver_wait_for(driver_, "uid-gone");
  EXPECT_EQ(Answer("gone", LATE_FAIL), 0);
  EXPECT_EQ(Await(undone).at("uid-gone").error, "stuck");

  std::vector<std::string> healthy;
  harness_->Do([&] {
    stream_ =
        node_->WatchHealth(rpc::HealthService::kV1, {.on_report =
                                                         [&](const rpc::HealthReport& report) {
                                                           for (const auto& each : report) {
                                                             healthy.push_back(each.device_name);
                                                           }
                                                         },
                                                     .on_end = [](Result<void>) {},
                                                     .on_malformed = {}});
  });
  drakkar_error error = {};
  EXPECT_EQ(drakkar_driver_report_health(late_driver_handle(driver_), "p", "dev-0",
                                         DRAKKAR_HEALTH_HEALTHY, nullptr, &error),
            0)
      << error.message;
  EXPECT_TRUE(harness_->WaitUntil([&] { return !healthy.empty(); }));

  auto registration = rpc::MakeRegistrationClient(harness_->transport());
  std::optional<Result<rpc::PluginInfo>> info;
  harness_->Do([&] {
    registration->GetInfo(harness_->SocketPath("registry/late.example.com-reg.sock"), kTimeout,
                          [&](Result<rpc::PluginInfo> answer) { info = std::move(answer); });
  });
  EXPECT_EQ(Await(info).name, "late.example.com");
  EXPECT_TRUE(IsOpen(never));
  EXPECT_TRUE(IsOpen(again));
  harness_->Do([&] { registration.reset(); });
}

TEST_F(LateAnswers, ACallThatIsFreedUnansweredFailsItsClaim) {
  Prepared a;
  Prepare({"a"}, a);
  EXPECT_EQ(Answer("a", LATE_DROP), 0);
  EXPECT_EQ(DeviceOf(a, "a"), "the driver freed the call without answering it");
}

TEST_F(LateAnswers, SoDoesACallToUnprepare) {
  Unprepared undone;
  harness_->Do([&] {
    node_->Unprepare({Claim("a")}, kTimeout, [&](auto results) { undone = std::move(results); });
  });
  late_driver_wait_for(driver_, "uid-a");
  EXPECT_EQ(Answer("a", LATE_DROP), 0);
  EXPECT_EQ(Await(undone).at("uid-a").error, "the driver freed the call without answering it");
}

TEST_F(LateAnswers, StoppingTheDriverWaitsForNobodyAndLaterAnswersFail) {
  Prepared a, b;
  Prepare({"a"}, a);
  Prepare({"b"}, b);
  late_driver_stop(driver_);
  EXPECT_TRUE(harness_->WaitUntil([&] { return a.has_value() && b.has_value(); }));
  harness_->Do([&] { EXPECT_FALSE(a->ok()); });
  drakkar_error error = {};
  EXPECT_NE(Answer("a", LATE_SUCCEED, &error), 0);
  EXPECT_STREQ(error.message, "claim default/a: the driver has stopped");
}

TEST_F(LateAnswers, CallsWithNullArgumentsFail) {
  drakkar_driver* driver = late_driver_handle(driver_);
  drakkar_resources* resources = drakkar_resources_new();
  drakkar_prepare_result* devices = drakkar_prepare_result_new();
  drakkar_claim_status* status = drakkar_claim_status_new();
  const auto ignore = [](void*, const drakkar_prepared_request*) {};
  drakkar_error error = {};
  EXPECT_NE(drakkar_driver_publish(nullptr, resources, &error), 0);
  EXPECT_NE(drakkar_driver_publish(driver, nullptr, &error), 0);
  EXPECT_STREQ(error.message, "driver and resources must not be null");
  EXPECT_NE(drakkar_driver_report(nullptr, nullptr, 0, &error), 0);
  EXPECT_NE(drakkar_driver_report(driver, nullptr, 1, &error), 0);
  EXPECT_STREQ(error.message, "driver and devices must not be null");
  EXPECT_EQ(drakkar_driver_report(driver, nullptr, 0, &error), 0) << error.message;
  EXPECT_NE(drakkar_driver_forget_health(nullptr, "p", "d"), 0);
  EXPECT_NE(drakkar_driver_forget_health(driver, nullptr, "d"), 0);
  EXPECT_NE(drakkar_driver_forget_health(driver, "p", nullptr), 0);
  EXPECT_EQ(drakkar_driver_forget_health(driver, "p", "d"), 0);
  EXPECT_NE(drakkar_driver_update_metadata(nullptr, "n", "c", "u", "r", devices, &error), 0);
  EXPECT_NE(drakkar_driver_update_metadata(driver, "n", "c", "u", "r", nullptr, &error), 0);
  EXPECT_NE(drakkar_driver_prepared_requests(nullptr, ignore, nullptr, &error), 0);
  EXPECT_NE(drakkar_driver_prepared_requests(driver, nullptr, nullptr, &error), 0);
  EXPECT_EQ(drakkar_driver_prepared_requests(driver, ignore, nullptr, &error), 0);
  EXPECT_NE(
      drakkar_driver_apply_claim_status(nullptr, "n", "c", "u", status, nullptr, nullptr, &error),
      0);
  EXPECT_NE(
      drakkar_driver_apply_claim_status(driver, "n", "c", "u", nullptr, nullptr, nullptr, &error),
      0);
  EXPECT_STREQ(error.message, "driver and status must not be null");
  EXPECT_NE(drakkar_driver_set_condition(driver, "n", "c", "u", nullptr, "d", "t", "True", "r", "m",
                                         &error),
            0);
  EXPECT_NE(drakkar_driver_set_condition(driver, "n", "c", "u", "p", "d", nullptr, "True", "r", "m",
                                         &error),
            0);
  EXPECT_STREQ(error.message, "pool, device, type, status and reason must not be null");
  EXPECT_EQ(drakkar_driver_is_registered(driver), 0) << "no node has";
  EXPECT_EQ(drakkar_driver_is_nri_registered(driver), 0);
  drakkar_claim_status_free(status);
  drakkar_prepare_result_free(devices);
  drakkar_resources_free(resources);
}

TEST_F(LateAnswers, ACallHasNoResultToFillOnceItIsAnswered) {
  drakkar_error error = {};
  EXPECT_NE(drakkar_prepare_call_succeed(nullptr, &error), 0);
  EXPECT_STREQ(error.message, "call must not be null");
  EXPECT_NE(drakkar_unprepare_call_fail(nullptr, "x", &error), 0);
  EXPECT_EQ(drakkar_prepare_call_result(nullptr), nullptr);
  drakkar_prepare_call_free(nullptr);
  drakkar_unprepare_call_free(nullptr);
}

}  // namespace
}  // namespace drakkar
