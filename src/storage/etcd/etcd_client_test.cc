#include "storage/etcd/etcd_client.h"

#include <gtest/gtest.h>

#include "rpc/etcd/etcd_codec.h"
#include "storage/etcd/testing/fake_cluster.h"

namespace drakkar::storage {
namespace {

namespace etcd = rpc::etcd;
using std::chrono::seconds;
using Safety = EtcdClient::Safety;

class EtcdClientTest : public ::testing::Test {
 protected:
  void Open(std::size_t members, EtcdClientOptions options = {}) {
    for (std::size_t i = 0; i < members; ++i) {
      options.endpoints.push_back(FakeCluster::Endpoint(i));
    }
    client_ = std::make_unique<EtcdClient>(cluster_.loop(), cluster_.loop().random(),
                                           cluster_.transport(), std::move(options));
  }
  EtcdClient::Outcome Call(const char* method, std::string request, Safety safety) {
    std::optional<EtcdClient::Outcome> outcome;
    client_->Call(method, std::move(request), safety,
                  [&](EtcdClient::Outcome given) { outcome.emplace(std::move(given)); });
    EXPECT_FALSE(outcome.has_value()) << "called back inside the call";
    EXPECT_TRUE(cluster_.WaitUntil([&] { return outcome.has_value(); }));
    return *std::move(outcome);
  }
  EtcdClient::Outcome Read() {
    return Call(etcd::kRangeMethod, Encode(etcd::RangeRequest{.key = "k"}), Safety::kRepeatable);
  }
  EtcdClient::Outcome Write() {
    return Call(etcd::kTxnMethod, Encode(etcd::TxnRequest{{}, {etcd::PutRequest{"k", "v"}}, {}}),
                Safety::kOnce);
  }
  // Fails calls of `method` at these members before they arrive, and counts all that are made.
  void FailBefore(std::string method, std::vector<std::size_t> members, Error error) {
    cluster_.transport().SetCallFault(
        [this, method = std::move(method), members, error](
            const std::string& path, std::string_view called) -> std::optional<Error> {
          if (called != method) return std::nullopt;
          calls_.push_back(path);
          for (const std::size_t member : members) {
            if (path == FakeCluster::Path(member)) return error;
          }
          return std::nullopt;
        });
  }

  FakeCluster cluster_{3};
  std::unique_ptr<EtcdClient> client_;
  std::vector<std::string> calls_;
};

TEST_F(EtcdClientTest, CallsAreSpreadOverTheMembers) {
  Open(3);
  ASSERT_TRUE(Read().response.ok());  // all are connected from here on
  FailBefore(etcd::kRangeMethod, {}, {});
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(Read().response.ok());
  for (std::size_t member = 0; member < 3; ++member) {
    EXPECT_EQ(std::count(calls_.begin(), calls_.end(), FakeCluster::Path(member)), 3);
  }
}

TEST_F(EtcdClientTest, AReadGoesToTheNextMemberWhateverHappenedToIt) {
  Open(3);
  FailBefore(etcd::kRangeMethod, {0, 1}, Unavailable("etcdserver: leader changed"));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Read().response.ok());
  EXPECT_FALSE(client_->outage().has_value());
}

TEST_F(EtcdClientTest, AReadIsTriedAgainUntilItsTimeIsUp) {
  Open(3, {.total_timeout = seconds(7)});
  FailBefore(etcd::kRangeMethod, {0, 1, 2}, Unavailable("etcdserver: leader changed"));
  const MonotonicTime begun = cluster_.loop().clock().Monotonic();
  const EtcdClient::Outcome outcome = Read();
  ASSERT_FALSE(outcome.response.ok());
  EXPECT_GE(cluster_.loop().clock().Monotonic() - begun, seconds(7));
  EXPECT_GT(calls_.size(), 9u);
  EXPECT_LT(calls_.size(), 200u) << "without a pause between the rounds";
  EXPECT_TRUE(client_->outage().has_value());
  FailBefore(etcd::kRangeMethod, {}, {});
  EXPECT_TRUE(Read().response.ok());
  EXPECT_FALSE(client_->outage().has_value());
}

TEST_F(EtcdClientTest, AWriteThatMayHaveHappenedIsNotSentAgain) {
  Open(3);
  FailBefore(etcd::kTxnMethod, {0, 1, 2}, Unavailable("etcdserver: request timed out"));
  const EtcdClient::Outcome outcome = Write();
  ASSERT_FALSE(outcome.response.ok());
  EXPECT_EQ(outcome.fate, Fate::kUnknown);
  EXPECT_EQ(calls_.size(), 1u);
}

TEST_F(EtcdClientTest, AWriteThatEtcdTurnedAwayUnseenIsSentAgain) {
  Open(3);
  FailBefore(etcd::kTxnMethod, {0, 1},
             Error{ErrorCode::kResourceExhausted,
                   "rpc error: code = ResourceExhausted desc = etcdserver: too many requests"});
  EXPECT_TRUE(Write().response.ok());
  EXPECT_TRUE(Write().response.ok());
}

TEST_F(EtcdClientTest, AWriteToAMemberThatIsGoneGoesToAnother) {
  Open(3);
  ASSERT_TRUE(Read().response.ok());
  cluster_.Stop(0);
  cluster_.Stop(1);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Write().response.ok());
}

TEST_F(EtcdClientTest, ARefusalIsFinal) {
  Open(3);
  FailBefore(etcd::kTxnMethod, {0, 1, 2}, InvalidArgument("etcdserver: request is too large"));
  const EtcdClient::Outcome outcome = Write();
  EXPECT_EQ(outcome.response.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(outcome.fate, Fate::kRefused);
  EXPECT_EQ(calls_.size(), 1u);
}

TEST_F(EtcdClientTest, WithoutAnyMemberACallWaitsForOneButNotForLong) {
  for (std::size_t i = 0; i < 3; ++i) cluster_.Stop(i);
  Open(3, {.connect_patience = seconds(2)});
  const MonotonicTime begun = cluster_.loop().clock().Monotonic();
  const EtcdClient::Outcome outcome = Write();
  ASSERT_FALSE(outcome.response.ok());
  EXPECT_EQ(outcome.fate, Fate::kUntouched);
  EXPECT_EQ(outcome.response.error().message,
            "no connection to unix:///etcd/0 (no server is listening), unix:///etcd/1 (no server "
            "is listening), unix:///etcd/2 (no server is listening)");
  EXPECT_EQ(cluster_.loop().clock().Monotonic() - begun, seconds(2));
  EXPECT_TRUE(client_->outage().has_value());

  std::optional<EtcdClient::Outcome> waited;
  client_->Call(etcd::kRangeMethod, Encode(etcd::RangeRequest{.key = "k"}), Safety::kRepeatable,
                [&](EtcdClient::Outcome given) { waited.emplace(std::move(given)); });
  cluster_.loop().RunUntilIdle();
  cluster_.Start(2);
  ASSERT_TRUE(cluster_.WaitUntil([&] { return waited.has_value(); }));
  EXPECT_TRUE(waited->response.ok());
}

TEST_F(EtcdClientTest, CallsInFlightAreBounded) {
  Open(1, {.max_calls = 50});
  std::size_t refused = 0;
  std::size_t answered = 0;
  for (std::size_t i = 0; i < 55; ++i) {
    client_->Call(etcd::kRangeMethod, Encode(etcd::RangeRequest{.key = "k"}), Safety::kRepeatable,
                  [&](const EtcdClient::Outcome& outcome) {
                    ++answered;
                    if (!outcome.response.ok()) {
                      ++refused;
                      EXPECT_EQ(outcome.response.error().code, ErrorCode::kResourceExhausted);
                    }
                  });
  }
  ASSERT_TRUE(cluster_.WaitUntil([&] { return answered == 55; }));
  EXPECT_EQ(refused, 5u);
}

TEST_F(EtcdClientTest, NothingCallsBackOnceItIsGone) {
  Open(3);
  for (int i = 0; i < 5; ++i) {
    client_->Call(etcd::kRangeMethod, Encode(etcd::RangeRequest{.key = "k"}), Safety::kRepeatable,
                  [](const EtcdClient::Outcome&) { FAIL(); });
  }
  auto waiter = client_->WhenConnected([] { FAIL(); });
  client_.reset();
  cluster_.loop().RunUntilIdle();
}

TEST(EtcdFate, TellsRefusedFromUntouchedFromUnknown) {
  const auto fate = [](ErrorCode code, std::string text, bool unprocessed = false) {
    return FateOf(Error{code, "rpc error: code = X desc = " + text}, unprocessed);
  };
  EXPECT_EQ(fate(ErrorCode::kUnavailable, "Socket closed"), Fate::kUnknown);
  EXPECT_EQ(fate(ErrorCode::kUnavailable, "Socket closed", true), Fate::kUntouched);
  EXPECT_EQ(fate(ErrorCode::kDeadlineExceeded, "context deadline exceeded"), Fate::kUnknown);
  EXPECT_EQ(fate(ErrorCode::kInternal, "stream terminated"), Fate::kUnknown);
  EXPECT_EQ(fate(ErrorCode::kResourceExhausted, "etcdserver: too many requests"), Fate::kUntouched);
  EXPECT_EQ(fate(ErrorCode::kResourceExhausted, "etcdserver: mvcc: database space exceeded"),
            Fate::kRefused);
  EXPECT_EQ(fate(ErrorCode::kResourceExhausted, "received message larger than max (9 vs. 8)"),
            Fate::kUnknown);
  EXPECT_EQ(fate(ErrorCode::kInvalidArgument, "etcdserver: duplicate key given in txn request"),
            Fate::kRefused);
}

TEST(EtcdStoreError, HasTheStoresCodes) {
  const auto error = [](ErrorCode code, std::string text) {
    return ToStoreError(Error{code, "rpc error: code = X desc = " + text});
  };
  EXPECT_EQ(error(ErrorCode::kExpired, "etcdserver: mvcc: required revision has been compacted"),
            (Error{ErrorCode::kExpired, "etcdserver: mvcc: required revision has been compacted"}));
  EXPECT_EQ(
      error(ErrorCode::kExpired, "etcdserver: mvcc: required revision is a future revision").code,
      ErrorCode::kInvalidArgument);
  EXPECT_EQ(error(ErrorCode::kDeadlineExceeded, "context deadline exceeded").code,
            ErrorCode::kUnavailable);
  EXPECT_EQ(error(ErrorCode::kForbidden, "etcdserver: permission denied").code,
            ErrorCode::kForbidden);
}

}  // namespace
}  // namespace drakkar::storage
