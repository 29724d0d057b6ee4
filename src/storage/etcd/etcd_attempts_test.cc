// Which member a call to etcd goes to, for how long, and what its caller is told; every answer is
// timed by the test.
#include <gmock/gmock.h>

#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "net/tls/tls.h"
#include "storage/etcd/etcd_client.h"
#include "storage/etcd/testing/scripted_transport.h"

namespace drakkar::storage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Safety = EtcdClient::Safety;

class EtcdAttemptsTest : public ::testing::Test {
 protected:
  void Open(std::size_t members, EtcdClientOptions options = {}) {
    for (std::size_t i = 0; i < members; ++i) {
      options.endpoints.push_back(
          {.url = StrCat("unix:///", i), .host = "", .port = 0, .socket_path = StrCat("/", i)});
    }
    client_ = std::make_unique<EtcdClient>(loop_, loop_.random(), transport_, std::move(options));
  }
  void Connect(std::size_t member, bool connected = true) {
    transport_.channels[member].on_connection_change(connected);
    loop_.RunUntilIdle();
  }
  // The outcome appears once there is one.
  std::shared_ptr<std::optional<EtcdClient::Outcome>> Call(Safety safety = Safety::kRepeatable) {
    auto outcome = std::make_shared<std::optional<EtcdClient::Outcome>>();
    client_->Call("/m", "request", safety,
                  [outcome](EtcdClient::Outcome given) { outcome->emplace(std::move(given)); });
    loop_.RunUntilIdle();
    return outcome;
  }
  std::string Outage() {
    const std::optional<Error> outage = client_->outage();
    return outage ? outage->message : "none";
  }

  SeededLoop loop_;
  ScriptedTransport transport_;
  std::unique_ptr<EtcdClient> client_;
};

TEST_F(EtcdAttemptsTest, EachMemberIsReachedAsItsEndpointSays) {
  EtcdClientOptions options;
  net::TlsClientOptions tls_options;
  tls_options.insecure = true;
  options.tls = net::TlsContext::Client(tls_options).value();
  options.endpoints = {
      {.url = "https://etcd-0:2379",
       .host = "etcd-0",
       .port = 2379,
       .socket_path = "",
       .is_tls = true},
      {.url = "http://[fd00::1]:2380", .host = "fd00::1", .port = 2380, .socket_path = ""},
      {.url = "unixs:///run/etcd",
       .host = "",
       .port = 0,
       .socket_path = "/run/etcd",
       .is_tls = true}};
  const std::shared_ptr<const net::TlsContext> tls = options.tls;
  Open(0, std::move(options));
  ASSERT_EQ(transport_.channels.size(), 3u);
  const auto& channels = transport_.channels;
  EXPECT_EQ(channels[0].host, "etcd-0");
  EXPECT_EQ(channels[0].port, 2379);
  EXPECT_EQ(channels[0].authority, "etcd-0:2379");
  EXPECT_EQ(channels[0].tls, tls);
  EXPECT_EQ(channels[0].socket_path, "");
  EXPECT_EQ(channels[1].host, "fd00::1");
  EXPECT_EQ(channels[1].port, 2380);
  EXPECT_EQ(channels[1].authority, "[fd00::1]:2380");
  EXPECT_EQ(channels[1].tls, nullptr);
  EXPECT_EQ(channels[2].host, "");
  EXPECT_EQ(channels[2].socket_path, "/run/etcd");
  EXPECT_EQ(channels[2].authority, "localhost");
  EXPECT_EQ(channels[2].tls, tls);
  for (const rpc::ChannelOptions& channel : channels) {
    EXPECT_EQ(channel.max_message_bytes, 256u << 20);
    EXPECT_EQ(channel.initial_backoff, milliseconds(100)) << "a member that restarts is back soon";
    EXPECT_EQ(channel.max_backoff, seconds(2));
    EXPECT_EQ(channel.connect_timeout, seconds(5));
    // etcd closes connections that ping more often than every five seconds.
    EXPECT_EQ(channel.keepalive_interval, seconds(10));
    EXPECT_EQ(channel.keepalive_timeout, seconds(5));
    EXPECT_EQ(channel.unacknowledged_timeout, seconds(3));
  }
}

TEST_F(EtcdAttemptsTest, AnAttemptHasItsOwnTimeWithinThatOfTheCall) {
  Open(1, {.attempt_timeout = seconds(5), .total_timeout = seconds(7)});
  Connect(0);
  const auto outcome = Call();
  ASSERT_EQ(transport_.calls.size(), 1u);
  EXPECT_EQ(transport_.calls[0].request.method, "/m");
  EXPECT_EQ(transport_.calls[0].request.message, "request");
  EXPECT_EQ(transport_.calls[0].request.timeout, seconds(5));
  loop_.Advance(seconds(5));
  transport_.Fail({ErrorCode::kDeadlineExceeded, "too late"});
  EXPECT_TRUE(transport_.calls.empty()) << "the same member after a pause";
  loop_.Advance(milliseconds(100));
  ASSERT_EQ(transport_.calls.size(), 1u);
  EXPECT_GT(transport_.calls[0].request.timeout, seconds(1));
  EXPECT_LT(transport_.calls[0].request.timeout, seconds(2)) << "what is left of the call's";
  loop_.Advance(transport_.calls[0].request.timeout);
  transport_.Fail({ErrorCode::kDeadlineExceeded, "too late again"});
  loop_.RunUntilIdle();
  loop_.Advance(milliseconds(1));
  ASSERT_TRUE(outcome->has_value());
  EXPECT_EQ((*outcome)->response.error().message, "too late again");
  EXPECT_EQ((*outcome)->fate, Fate::kUnknown);
  EXPECT_EQ(client_->calls_in_flight(), 0u);
}

TEST_F(EtcdAttemptsTest, AnAnswerEndsAnOutageWhateverItSays) {
  Open(1, {.total_timeout = seconds(1)});
  EXPECT_EQ(Outage(), "etcd: not connected");
  Connect(0);
  EXPECT_EQ(Outage(), "none");
  const auto fail_once = [&] {
    const auto failed = Call(Safety::kOnce);
    transport_.Fail(Unavailable("no leader"));
    ASSERT_TRUE(failed->has_value());
    EXPECT_EQ((*failed)->fate, Fate::kUnknown);
    EXPECT_EQ(Outage(), "etcd: no leader");
  };
  fail_once();
  const auto refused = Call();
  transport_.Fail(InvalidArgument("etcdserver: no"));
  EXPECT_EQ((*refused)->fate, Fate::kRefused);
  EXPECT_EQ(Outage(), "none");
  fail_once();
  const auto too_large = Call();
  transport_.Fail({ErrorCode::kResourceExhausted, "received message larger than max"});
  ASSERT_TRUE(too_large->has_value()) << "trying again would not help";
  EXPECT_EQ((*too_large)->fate, Fate::kUnknown);
  EXPECT_EQ(Outage(), "none");
  fail_once();
  Call();
  transport_.Answer("yes");
  EXPECT_EQ(Outage(), "none");
  Connect(0, false);
  EXPECT_EQ(Outage(), "etcd: not connected");
}

TEST_F(EtcdAttemptsTest, AMemberThatAnsweredIsNotAvoided) {
  for (const char* answer : {"yes", "refused", "too large"}) {
    Open(2);
    Connect(0);
    Connect(1);
    // Both fail once, so both are avoided.
    const auto outcome = Call();
    transport_.Fail(Unavailable("no leader"));
    transport_.Fail(Unavailable("no leader"));
    loop_.Advance(milliseconds(50));
    ASSERT_EQ(transport_.calls.size(), 1u);
    const std::size_t good = transport_.calls[0].member;
    const std::string_view given = answer;
    if (given == "yes") transport_.Answer("yes");
    if (given == "refused") transport_.Fail(InvalidArgument("etcdserver: no"));
    if (given == "too large") {
      transport_.Fail({ErrorCode::kResourceExhausted, "received message larger than max"});
    }
    for (int i = 0; i < 3; ++i) {
      Call();
      EXPECT_EQ(transport_.calls[0].member, good) << answer;
      transport_.Answer("yes");
    }
    client_.reset();
    transport_.channels.clear();
  }
}

TEST_F(EtcdAttemptsTest, ARefusalAfterALostAnswerDoesNotSayThatNothingHappened) {
  Open(1);
  Connect(0);
  const auto outcome = Call();
  transport_.Fail(Unavailable("the connection broke"));
  loop_.Advance(milliseconds(50));
  transport_.Fail(InvalidArgument("etcdserver: no"));
  ASSERT_TRUE(outcome->has_value());
  EXPECT_EQ((*outcome)->response.error().message, "etcdserver: no");
  EXPECT_EQ((*outcome)->fate, Fate::kUnknown);
}

TEST_F(EtcdAttemptsTest, ACallThatNoMemberTookIsUntouchedAtItsDeadline) {
  Open(1, {.total_timeout = seconds(2)});
  Connect(0);
  const auto outcome = Call(Safety::kOnce);
  while (!outcome->has_value()) {
    ASSERT_LE(loop_.clock().Monotonic().time_since_epoch(), seconds(2));
    if (!transport_.calls.empty()) transport_.Fail(Unavailable("closed"), /*unprocessed=*/true);
    loop_.AdvanceToNextTimer(seconds(1));
  }
  EXPECT_EQ(loop_.clock().Monotonic().time_since_epoch(), seconds(2)) << "neither early nor late";
  EXPECT_EQ((*outcome)->fate, Fate::kUntouched);
  EXPECT_EQ((*outcome)->response.error().message, "closed");
  EXPECT_EQ(Outage(), "etcd: closed");
}

TEST_F(EtcdAttemptsTest, AfterARoundOfFailuresEveryMemberIsTriedAgain) {
  Open(3);
  for (std::size_t i = 0; i < 3; ++i) Connect(i);
  const auto outcome = Call();
  std::vector<int> tried(3);
  for (int round = 1; round <= 3; ++round) {
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(transport_.calls.size(), 1u) << "one at a time, without a pause within a round";
      ++tried[transport_.calls[0].member];
      transport_.Fail(Unavailable("no leader"));
    }
    EXPECT_THAT(tried, ElementsAre(round, round, round));
    EXPECT_TRUE(transport_.calls.empty());
    loop_.AdvanceToNextTimer(seconds(1));
  }
  transport_.Answer("yes");
  EXPECT_TRUE((*outcome)->response.ok());
}

TEST_F(EtcdAttemptsTest, PausesBetweenRoundsGrowButNotWithoutLimit) {
  Open(1, {.total_timeout = seconds(10)});
  Connect(0);
  const auto outcome = Call();
  std::vector<Duration> pauses;
  while (!outcome->has_value()) {
    if (!transport_.calls.empty()) transport_.Fail(Unavailable("no leader"));
    const MonotonicTime before = loop_.clock().Monotonic();
    if (loop_.AdvanceToNextTimer(seconds(1))) pauses.push_back(loop_.clock().Monotonic() - before);
  }
  ASSERT_GT(pauses.size(), 8u);
  EXPECT_GE(pauses[0], milliseconds(25));
  EXPECT_LE(pauses[0], milliseconds(38));
  for (const Duration pause : pauses) EXPECT_LE(pause, milliseconds(750));
  EXPECT_GE(pauses[6], milliseconds(500));
}

TEST_F(EtcdAttemptsTest, WithoutAConnectionACallWaitsNoLongerThanItMayTake) {
  Open(2, {.total_timeout = seconds(1), .connect_patience = seconds(5)});
  const auto outcome = Call();
  loop_.Advance(milliseconds(999));
  EXPECT_FALSE(outcome->has_value());
  loop_.Advance(milliseconds(1));
  ASSERT_TRUE(outcome->has_value());
  EXPECT_EQ((*outcome)->fate, Fate::kUntouched);
  EXPECT_THAT((*outcome)->response.error().message,
              HasSubstr("no connection to unix:///0 (no answer), unix:///1 (no answer)"));
  // A connection that comes now finds nothing to do.
  Connect(0);
  EXPECT_TRUE(transport_.calls.empty());
}

TEST_F(EtcdAttemptsTest, TheWaitForAConnectionEndsWithIt) {
  Open(1, {.connect_patience = seconds(2)});
  const auto outcome = Call();
  loop_.Advance(seconds(1));
  Connect(0);
  ASSERT_EQ(transport_.calls.size(), 1u);
  loop_.Advance(seconds(4));
  EXPECT_FALSE(outcome->has_value()) << "the answer may take its time";
  transport_.Answer("yes");
  EXPECT_TRUE((*outcome)->response.ok());
}

TEST_F(EtcdAttemptsTest, ACallThatLosesItsOnlyMemberWaitsForTheNextConnection) {
  Open(2);
  Connect(0);
  const auto outcome = Call();
  Connect(0, false);
  transport_.Fail(Unavailable("the connection broke"));
  EXPECT_TRUE(transport_.calls.empty());
  Connect(0);
  ASSERT_EQ(transport_.calls.size(), 1u) << "although it was tried before";
  transport_.Answer("yes");
  EXPECT_TRUE((*outcome)->response.ok());
}

TEST_F(EtcdAttemptsTest, MembersThatCannotBeReachedAreNamedWithTheReason) {
  Open(7, {.connect_patience = seconds(1)});
  for (std::size_t i = 0; i < 7; ++i) transport_.channels[i].on_connect_failed(StrCat("why", i));
  Connect(1);
  Connect(1, false);
  auto outcome = Call();
  loop_.Advance(seconds(1));
  ASSERT_TRUE(outcome->has_value());
  EXPECT_EQ((*outcome)->response.error().message,
            "no connection to unix:///0 (why0), unix:///1 (no answer), unix:///2 (why2), "
            "unix:///3 (why3), unix:///4 (why4) and 2 others");
  client_.reset();
  transport_.channels.clear();
  Open(5, {.connect_patience = seconds(1)});
  outcome = Call();
  loop_.Advance(seconds(1));
  EXPECT_THAT((*outcome)->response.error().message, HasSubstr("unix:///4 (no answer)"));
  EXPECT_EQ((*outcome)->response.error().message.find("others"), std::string::npos);
}

TEST_F(EtcdAttemptsTest, WhoWaitsForAConnectionRunsOnceAndInOrder) {
  Open(2);
  std::vector<std::string> ran;
  std::unique_ptr<EtcdClient::Waiter> added;
  const auto first = client_->WhenConnected([&] {
    ran.push_back("first");
    Connect(0, false);
    added = client_->WhenConnected([&] { ran.push_back("added"); });
  });
  auto forgotten = client_->WhenConnected([&] { ran.push_back("forgotten"); });
  const auto second = client_->WhenConnected([&] { ran.push_back("second"); });
  forgotten.reset();
  Connect(0);
  EXPECT_THAT(ran, ElementsAre("first", "second")) << "what a task adds waits for the next one";
  Connect(1);
  EXPECT_THAT(ran, ElementsAre("first", "second", "added"));

  auto at_once = client_->WhenConnected([&] { ran.push_back("at once"); });
  EXPECT_EQ(ran.size(), 3u) << "not inside the call";
  loop_.RunUntilIdle();
  EXPECT_EQ(ran.back(), "at once");
  auto dropped = client_->WhenConnected([&] { ran.push_back("dropped"); });
  dropped.reset();
  loop_.RunUntilIdle();
  EXPECT_EQ(ran.back(), "at once");
}

TEST_F(EtcdAttemptsTest, ATaskThatWaitedMayDestroyTheClient) {
  Open(1);
  std::vector<std::unique_ptr<EtcdClient::Waiter>> waiters;
  int ran = 0;
  for (int i = 0; i < 2; ++i) {
    waiters.push_back(client_->WhenConnected([&] {
      ++ran;
      client_.reset();
    }));
  }
  const auto changed = transport_.channels[0].on_connection_change;
  changed(true);
  EXPECT_EQ(ran, 1);
}

TEST_F(EtcdAttemptsTest, AStreamGoesToAnotherMemberIfThereIsOne) {
  Open(2);
  EXPECT_EQ(client_->PickForStream(std::nullopt), std::nullopt);
  Connect(1);
  EXPECT_EQ(client_->PickForStream(1), 1u) << "better than none";
  Connect(0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client_->PickForStream(1), 0u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client_->PickForStream(0), 1u);
  client_->ReportFailure(0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client_->PickForStream(std::nullopt), 1u);
  EXPECT_EQ(client_->url(1), "unix:///1");
}

TEST(EtcdTooLarge, IsAResponseThatIsLargerThanTheLimit) {
  EXPECT_TRUE(IsTooLarge({ErrorCode::kResourceExhausted, "message larger than max (9 vs. 8)"}));
  EXPECT_FALSE(IsTooLarge({ErrorCode::kResourceExhausted, "etcdserver: no space"}));
  EXPECT_FALSE(IsTooLarge({ErrorCode::kInternal, "message larger than max (9 vs. 8)"}));
}

TEST(EtcdStoreError, AnErrorWithoutADescriptionKeepsItsText) {
  EXPECT_EQ(ToStoreError(Error{ErrorCode::kNotFound, "gone"}),
            (Error{ErrorCode::kNotFound, "gone"}));
  EXPECT_EQ(ToStoreError(Error{ErrorCode::kInternal, "broken"}),
            (Error{ErrorCode::kUnavailable, "etcd: broken"}));
}

}  // namespace
}  // namespace drakkar::storage
