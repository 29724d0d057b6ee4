// The etcd store against faults that only a fake can time; store_contract_test.cc has the rest.
#include "storage/etcd/etcd_store.h"

#include <gmock/gmock.h>

#include "base/testing/seeded_loop.h"
#include "rpc/etcd/etcd_codec.h"
#include "storage/etcd/testing/fake_cluster.h"
#include "storage/etcd/testing/scripted_transport.h"

namespace drakkar::storage {
namespace {

namespace etcd = rpc::etcd;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EtcdStoreTest : public ::testing::Test {
 protected:
  void Open(std::size_t members, FakeEtcd::Options options = {}) {
    cluster_ = std::make_unique<FakeCluster>(members, std::move(options));
    store_ = OpenStore(members);
  }
  std::unique_ptr<Store> OpenStore(std::size_t members) {
    EtcdStoreOptions options;
    for (std::size_t i = 0; i < members; ++i) {
      options.client.endpoints.push_back(FakeCluster::Endpoint(i));
    }
    return OpenEtcdStore(cluster_->loop(), cluster_->loop().random(), cluster_->transport(),
                         std::move(options));
  }
  ~EtcdStoreTest() override {
    watch_.reset();
    store_.reset();
  }

  static Operation Put(std::string key, std::string value) {
    return {std::move(key), std::make_shared<const std::string>(std::move(value))};
  }
  Result<TransactionResult> Commit(Transaction transaction) {
    std::optional<Result<TransactionResult>> result;
    store_->Commit(
        std::move(transaction), [&](auto given) { result = std::move(given); }, nullptr);
    EXPECT_TRUE(cluster_->WaitUntil([&] { return result.has_value(); }));
    return *std::move(result);
  }
  Result<Revision> ReadRevision() {
    std::optional<Result<Revision>> result;
    store_->ReadRevision([&](auto given) { result = std::move(given); });
    EXPECT_TRUE(cluster_->WaitUntil([&] { return result.has_value(); }));
    return *std::move(result);
  }
  void StartWatch(std::string prefix, Revision after = 0) {
    watch_ = store_->StartWatch(
        {.prefix = std::move(prefix), .after = after},
        {.on_events =
             [this](const std::vector<WatchEvent>& events, Revision up_to) {
               EXPECT_GT(up_to, reached_);
               for (const WatchEvent& event : events) {
                 EXPECT_GT(event.revision, reached_);
                 events_.push_back(event.key + "@" + std::to_string(event.revision));
               }
               reached_ = up_to;
             },
         .on_closed = [this](Error why) { closed_ = std::move(why); }});
  }
  // The answers of the next `count` calls of `method` are lost.
  void LoseAnswers(std::string method, int count) {
    cluster_->transport().SetAnswerFault(
        [method = std::move(method), left = std::make_shared<int>(count)](
            const std::string&, std::string_view called) -> std::optional<Error> {
          if (called != method || *left == 0) return std::nullopt;
          --*left;
          return Unavailable("the connection broke");
        });
  }

  std::unique_ptr<FakeCluster> cluster_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Watch> watch_;
  std::vector<std::string> events_;
  Revision reached_ = 0;
  std::optional<Error> closed_;
};

TEST_F(EtcdStoreTest, AWriteWhoseAnswerIsLostHappensOnceAndIsReportedWithItsRevision) {
  Open(3);
  LoseAnswers(etcd::kTxnMethod, 2);
  const Result<TransactionResult> created = Commit({{{"a", 0}}, {Put("a", "1")}});
  ASSERT_TRUE(created.ok()) << created.error().message;
  EXPECT_TRUE(created->succeeded);
  EXPECT_EQ(created->revision, 2);
  EXPECT_EQ(cluster_->etcd().revision(), 2);
  LoseAnswers(etcd::kTxnMethod, 1);
  const Result<TransactionResult> updated = Commit({{{"a", 2}}, {Put("a", "2")}});
  ASSERT_TRUE(updated.ok() && updated->succeeded);
  EXPECT_EQ(updated->revision, 3);
}

TEST_F(EtcdStoreTest, AWriteThatFailedBeforeItArrivedIsSentAgain) {
  Open(3);
  ASSERT_TRUE(ReadRevision().ok());
  int failures = 2;
  cluster_->transport().SetCallFault(
      [&](const std::string&, std::string_view method) -> std::optional<Error> {
        if (method != etcd::kTxnMethod || failures == 0) return std::nullopt;
        --failures;
        return Unavailable("etcdserver: leader changed");
      });
  const Result<TransactionResult> created = Commit({{{"a", 0}}, {Put("a", "1")}});
  ASSERT_TRUE(created.ok() && created->succeeded);
  EXPECT_EQ(failures, 0);
}

TEST_F(EtcdStoreTest, AWriteOfUnknownFateThatSomebodyElseOverwroteStaysUnknown) {
  Open(1);
  ASSERT_TRUE(ReadRevision().ok());
  auto other = OpenStore(1);
  int lost = 0;
  cluster_->transport().SetAnswerFault(
      [&](const std::string&, std::string_view method) -> std::optional<Error> {
        if (method != etcd::kTxnMethod || lost > 0) return std::nullopt;
        ++lost;
        // Before the first writer can look, the second changes the object.
        other->Commit({{{"a", 2}}, {Put("a", "theirs")}}, nullptr, nullptr);
        return Unavailable("the connection broke");
      });
  const Result<TransactionResult> result = Commit({{{"a", 0}}, {Put("a", "mine")}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(result.error().message, HasSubstr("unknown whether the write happened"));
}

TEST_F(EtcdStoreTest, AWriteWithoutAConditionIsNeverSentTwice) {
  Open(3);
  LoseAnswers(etcd::kTxnMethod, 1);
  const Result<TransactionResult> result = Commit({{}, {Put("a", "1")}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
  cluster_->loop().Advance(seconds(30));
  EXPECT_EQ(cluster_->etcd().revision(), 2);
}

TEST_F(EtcdStoreTest, ADeletionWhoseAnswerIsLostStaysUnknown) {
  Open(1);
  const Result<TransactionResult> created = Commit({{{"a", 0}}, {Put("a", "1")}});
  ASSERT_TRUE(created.ok());
  LoseAnswers(etcd::kTxnMethod, 1);
  const Result<TransactionResult> result =
      Commit({{{"a", created->revision}}, {Operation{"a", nullptr}}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
}

TEST_F(EtcdStoreTest, AWatchMovesToAnotherMemberAndMissesNothing) {
  Open(3, {.watch_delay = milliseconds(3), .fragment_events = 2});
  StartWatch("k");
  ASSERT_TRUE(cluster_->WaitUntil([&] { return cluster_->etcd().open_watches() == 1; }));
  std::vector<std::string> expected;
  for (int round = 0; round < 30; ++round) {
    std::vector<Operation> operations;
    for (int i = 0; i <= round % 4; ++i) operations.push_back(Put("k" + std::to_string(i), "x"));
    const std::size_t written = operations.size();
    const Result<TransactionResult> result = Commit({{}, std::move(operations)});
    ASSERT_TRUE(result.ok()) << result.error().message;
    for (std::size_t i = 0; i < written; ++i) {
      expected.push_back("k" + std::to_string(i) + "@" + std::to_string(result->revision));
    }
    const std::size_t member = static_cast<std::size_t>(round) % 3;
    if (round % 5 == 1) cluster_->transport().BreakConnections(FakeCluster::Path(member));
    if (round % 7 == 2) cluster_->Stop(member);
    if (round % 7 == 4) {
      for (std::size_t i = 0; i < 3; ++i) cluster_->Start(i);
    }
  }
  ASSERT_TRUE(cluster_->WaitUntil([&] { return reached_ == 31; }));
  EXPECT_EQ(events_, expected);
  EXPECT_FALSE(closed_.has_value());
}

TEST_F(EtcdStoreTest, AWatchLeavesAMemberWithoutALeader) {
  Open(1);
  StartWatch("k");
  ASSERT_TRUE(Commit({{}, {Put("k1", "x")}}).ok());
  cluster_->etcd().SetLeader(false);
  const Result<TransactionResult> failed = Commit({{}, {Put("k2", "x")}});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(store_->outage().has_value());
  EXPECT_FALSE(store_->failure().has_value());
  cluster_->etcd().SetLeader(true);
  ASSERT_TRUE(Commit({{}, {Put("k3", "x")}}).ok());
  EXPECT_FALSE(store_->outage().has_value());
  ASSERT_TRUE(cluster_->WaitUntil([&] { return reached_ == 3; }));
  EXPECT_THAT(events_, ElementsAre("k1@2", "k3@3"));
}

TEST_F(EtcdStoreTest, AReliableMemberIsAskedForProgress) {
  Open(1, {.version = "3.5.13", .watch_delay = milliseconds(2)});
  StartWatch("k");
  ASSERT_TRUE(Commit({{}, {Put("other", "x")}}).ok());
  ASSERT_EQ(ReadRevision().value(), 2);
  ASSERT_TRUE(cluster_->WaitUntil([&] { return reached_ == 2; }, seconds(1)));
}

// Not only after the interval at which a member that lags behind is asked again.
TEST_F(EtcdStoreTest, ARevisionWantedWhileProgressIsAskedForIsAskedForRightAfterIt) {
  Open(1, {.version = "3.5.13", .watch_delay = milliseconds(2)});
  StartWatch("k");
  ASSERT_TRUE(Commit({{}, {Put("other", "x")}}).ok());
  ASSERT_EQ(ReadRevision().value(), 2);
  ASSERT_TRUE(Commit({{}, {Put("other", "y")}}).ok());
  ASSERT_LT(reached_, 2) << "the first request is still in flight";
  ASSERT_EQ(ReadRevision().value(), 3);
  ASSERT_TRUE(cluster_->WaitUntil([&] { return reached_ == 3; }, milliseconds(20)));
}

// Releases that report progress ahead of events are watched as a whole instead.
TEST_F(EtcdStoreTest, ProgressOfAnOldMemberIsNotTrusted) {
  Open(1, {.version = "3.4.23", .watch_delay = milliseconds(20), .progress_overtakes = true});
  StartWatch("k");
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Commit({{}, {Put("k1", "x")}}).ok());
    ASSERT_TRUE(Commit({{}, {Put("other", "x")}}).ok());
    const Revision newest = ReadRevision().value();
    ASSERT_TRUE(cluster_->WaitUntil([&] { return reached_ >= newest; }, seconds(1)));
    EXPECT_EQ(events_.size(), static_cast<std::size_t>(i) + 1) << "progress before its events";
  }
}

TEST_F(EtcdStoreTest, DataThatWasReplacedEndsTheStore) {
  Open(1);
  StartWatch("k");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Commit({{}, {Put("k", "x")}}).ok());
  cluster_->etcd().Wipe();
  const Result<Revision> revision = ReadRevision();
  ASSERT_FALSE(revision.ok());
  EXPECT_THAT(revision.error().message, HasSubstr("went back from 4 to 1"));
  ASSERT_TRUE(store_->failure().has_value());
  ASSERT_TRUE(closed_.has_value());
  EXPECT_FALSE(Commit({{}, {Put("k", "x")}}).ok());
}

TEST_F(EtcdStoreTest, AnotherClusterEndsTheStore) {
  for (const bool by_writing : {false, true}) {
    watch_.reset();
    store_.reset();
    closed_.reset();
    Open(1);
    StartWatch("k");
    ASSERT_TRUE(Commit({{}, {Put("k", "x")}}).ok());
    cluster_->etcd().ChangeCluster();
    const std::string message =
        by_writing ? Commit({{}, {Put("k", "y")}}).error().message : ReadRevision().error().message;
    EXPECT_THAT(message, HasSubstr("etcd is a different cluster than before"));
    ASSERT_TRUE(store_->failure().has_value());
    EXPECT_EQ(store_->failure()->code, ErrorCode::kDataLoss);
    EXPECT_TRUE(cluster_->WaitUntil([&] { return closed_.has_value(); }));
    EXPECT_FALSE(Commit({{}, {Put("k", "z")}}).ok());
  }
}

TEST_F(EtcdStoreTest, ReadingDoesNotHoldUpStopping) {
  Open(1);
  ASSERT_TRUE(ReadRevision().ok());
  std::optional<Result<RangeResult>> range;
  store_->Range({.prefix = "k"}, [&](Result<RangeResult> given) { range = std::move(given); });
  ASSERT_TRUE(cluster_->WaitUntil([&] { return range.has_value(); }));
  bool stopped = false;
  store_->Stop([&] { stopped = true; });
  EXPECT_TRUE(cluster_->WaitUntil([&] { return stopped; }, seconds(1)));
}

TEST_F(EtcdStoreTest, ALongRangeIsReadInPagesAtOneRevision) {
  Open(1);
  for (int i = 0; i < 20; ++i) {
    std::vector<Operation> operations;
    for (int j = 0; j < 100; ++j) {
      operations.push_back(Put("k/" + std::to_string(1'000 + i * 100 + j), "x"));
    }
    ASSERT_TRUE(Commit({{}, std::move(operations)}).ok());
  }
  int pages = 0;
  cluster_->transport().SetCallFault(
      [&](const std::string&, std::string_view method) -> std::optional<Error> {
        if (method != etcd::kRangeMethod) return std::nullopt;
        ++pages;
        return std::nullopt;
      });
  std::optional<Result<RangeResult>> result;
  store_->Range({.prefix = "k/"}, [&](auto given) { result = std::move(given); });
  ASSERT_TRUE(cluster_->WaitUntil([&] { return pages == 2; }));
  // What is written between two pages is not in any of them.
  store_->Commit({{}, {Put("k/2999x", "late"), Put("k/1000", "late")}}, nullptr, nullptr);
  ASSERT_TRUE(cluster_->WaitUntil([&] { return result.has_value(); }));
  ASSERT_TRUE(result->ok());
  EXPECT_EQ((*result)->entries.size(), 2'000u);
  EXPECT_EQ((*result)->revision, 21);
  EXPECT_GT(pages, 2);
  for (std::size_t i = 0; i < 2'000; ++i) {
    EXPECT_EQ((*result)->entries[i].key, "k/" + std::to_string(1'000 + i));
  }
}

TEST_F(EtcdStoreTest, AStoreThatCannotConnectSaysSo) {
  Open(1);
  store_.reset();
  cluster_->Stop(0);
  store_ = OpenStore(1);
  const Result<Revision> revision = ReadRevision();
  ASSERT_FALSE(revision.ok());
  EXPECT_EQ(revision.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(revision.error().message,
            "etcd: no connection to unix:///etcd/0 (no server is listening)");
  cluster_->Start(0);
  EXPECT_EQ(ReadRevision().value(), 1);
}

TEST_F(EtcdStoreTest, StoppingWithoutAConnectionDoesNotHang) {
  Open(1);
  StartWatch("k");
  ASSERT_TRUE(Commit({{}, {Put("k", "x")}}).ok());
  cluster_->Stop(0);
  bool stopped = false;
  store_->Stop([&] { stopped = true; });
  ASSERT_TRUE(cluster_->WaitUntil([&] { return stopped; }, seconds(30)));
  EXPECT_TRUE(closed_.has_value());
}

TEST_F(EtcdStoreTest, AWriteThatIsRefusedIsNotSentAgain) {
  Open(1);
  ASSERT_TRUE(ReadRevision().ok());
  int sent = 0;
  cluster_->transport().SetCallFault(
      [&](const std::string&, std::string_view method) -> std::optional<Error> {
        if (method != etcd::kTxnMethod) return std::nullopt;
        return ++sent == 1 ? std::optional(InvalidArgument("etcdserver: request is too large"))
                           : std::nullopt;
      });
  const Result<TransactionResult> result = Commit({{{"a", 0}}, {Put("a", "1")}});
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, HasSubstr("request is too large"));
  EXPECT_EQ(sent, 1);
}

TEST_F(EtcdStoreTest, AWatchOfAStoreThatEndedIsClosed) {
  Open(1);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Commit({{}, {Put("k", "x")}}).ok());
  cluster_->etcd().Wipe();
  ASSERT_FALSE(ReadRevision().ok());
  StartWatch("k");
  ASSERT_TRUE(cluster_->WaitUntil([&] { return closed_.has_value(); }));
  EXPECT_THAT(closed_->message, HasSubstr("went back from 4 to 1"));
  bool stopped = false;
  store_->Stop([&] { stopped = true; });
  ASSERT_TRUE(cluster_->WaitUntil([&] { return stopped; }, seconds(1))) << "it waits for nothing";
  closed_.reset();
  StartWatch("k");
  ASSERT_TRUE(cluster_->WaitUntil([&] { return closed_.has_value(); }));
}

TEST_F(EtcdStoreTest, AWatchThatIsGoneDoesNotHoldUpStopping) {
  Open(1);
  StartWatch("k");
  ASSERT_TRUE(Commit({{}, {Put("k", "x")}}).ok());
  ASSERT_TRUE(Commit({{}, {Put("other", "x")}}).ok());
  watch_.reset();
  bool stopped = false;
  store_->Stop([&] { stopped = true; });
  EXPECT_TRUE(cluster_->WaitUntil([&] { return stopped; }, seconds(1)));
}

TEST_F(EtcdStoreTest, StoppingWaitsForWatchesToShowEveryWriteButNoLonger) {
  Open(1);
  StartWatch("k");
  ASSERT_TRUE(Commit({{}, {Put("k", "x")}}).ok());
  store_->Commit({{}, {Put("k", "y")}}, nullptr, nullptr);
  bool stopped = false;
  store_->Stop([&] { stopped = true; });
  EXPECT_TRUE(cluster_->WaitUntil([&] { return stopped; }, seconds(1)));
  EXPECT_THAT(events_, ElementsAre("k@2", "k@3"));
  EXPECT_TRUE(closed_.has_value());
}

TEST_F(EtcdStoreTest, AWatchThatStartsBeforeTheStoreIsConnectedSeesOnlyWhatComes) {
  Open(1);
  ASSERT_TRUE(Commit({{}, {Put("k", "old")}}).ok());
  store_ = OpenStore(1);
  StartWatch("k");
  ASSERT_TRUE(ReadRevision().ok());
  EXPECT_EQ(store_->applied_revision(), 2);
  ASSERT_TRUE(Commit({{}, {Put("k", "new")}}).ok());
  ASSERT_TRUE(cluster_->WaitUntil([&] { return reached_ >= 3; }));
  EXPECT_THAT(events_, ElementsAre("k@3"));
}

TEST_F(EtcdStoreTest, AWatchThatStartsBeforeAnyMemberCanBeReachedSeesWhatComesLater) {
  Open(1);
  ASSERT_TRUE(Commit({{}, {Put("k", "old")}}).ok());
  cluster_->Stop(0);
  store_ = OpenStore(1);
  StartWatch("k");
  cluster_->loop().Advance(seconds(30));
  EXPECT_TRUE(events_.empty());
  cluster_->Start(0);
  ASSERT_TRUE(Commit({{}, {Put("k", "new")}}).ok());
  ASSERT_TRUE(cluster_->WaitUntil([&] { return !events_.empty(); }, seconds(10)));
  EXPECT_THAT(events_, ElementsAre("k@3"));
  EXPECT_FALSE(closed_.has_value());
}

TEST_F(EtcdStoreTest, AWriteWhoseFateStaysUnknownIsGivenUpAtItsDeadline) {
  Open(1);
  ASSERT_TRUE(ReadRevision().ok());
  LoseAnswers(etcd::kTxnMethod, 1'000'000);
  const MonotonicTime begun = cluster_->loop().clock().Monotonic();
  const Result<TransactionResult> result = Commit({{{"a", 0}}, {Put("a", "1")}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(result.error().message, HasSubstr("unknown whether the write happened: "));
  const Duration took = cluster_->loop().clock().Monotonic() - begun;
  EXPECT_GT(took, seconds(9));
  EXPECT_LE(took, seconds(10));
}

TEST_F(EtcdStoreTest, WhatARangeOrACommitShowsIsTheAppliedRevision) {
  Open(1);
  const auto other = OpenStore(1);
  ASSERT_EQ(ReadRevision().value(), 1);
  const auto commit_elsewhere = [&] {
    bool done = false;
    other->Commit(
        {{}, {Put("k", "x")}}, [&](const auto&) { done = true; }, nullptr);
    ASSERT_TRUE(cluster_->WaitUntil([&] { return done; }));
  };
  commit_elsewhere();
  EXPECT_EQ(store_->applied_revision(), 1);
  bool ranged = false;
  store_->Range({.prefix = "k"}, [&](const auto&) { ranged = true; });
  ASSERT_TRUE(cluster_->WaitUntil([&] { return ranged; }));
  EXPECT_EQ(store_->applied_revision(), 2);
  EXPECT_EQ(store_->durable_revision(), 2);
  commit_elsewhere();
  const Result<TransactionResult> failed = Commit({{{"k", 1}}, {Put("k", "y")}});
  ASSERT_TRUE(failed.ok());
  EXPECT_FALSE(failed->succeeded);
  EXPECT_EQ(store_->applied_revision(), 3);
  ranged = false;
  store_->Range({.prefix = "k", .revision = 2}, [&](const auto&) { ranged = true; });
  ASSERT_TRUE(cluster_->WaitUntil([&] { return ranged; }));
  EXPECT_EQ(store_->applied_revision(), 3) << "it does not go back";
}

TEST_F(EtcdStoreTest, CompactingWhatIsCompactedSucceeds) {
  Open(1);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(Commit({{}, {Put("k", "x")}}).ok());
  const auto compact = [&](Revision revision) {
    std::optional<Result<void>> result;
    store_->Compact(revision, [&](Result<void> given) { result = std::move(given); });
    EXPECT_TRUE(cluster_->WaitUntil([&] { return result.has_value(); }));
    return *std::move(result);
  };
  EXPECT_TRUE(compact(5).ok());
  EXPECT_EQ(store_->compacted_revision(), 5);
  EXPECT_EQ(cluster_->etcd().compacted(), 5);
  EXPECT_TRUE(compact(3).ok());
  EXPECT_TRUE(compact(5).ok());
  EXPECT_EQ(store_->compacted_revision(), 5);
  const Result<void> future = compact(100);
  ASSERT_FALSE(future.ok());
  EXPECT_EQ(future.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(store_->compacted_revision(), 5);
}

TEST_F(EtcdStoreTest, EveryoneWhoStopsAStoreIsTold) {
  Open(1);
  ASSERT_TRUE(ReadRevision().ok());
  int stopped = 0;
  for (int i = 0; i < 2; ++i) store_->Stop([&] { ++stopped; });
  store_->Stop(nullptr);
  EXPECT_EQ(stopped, 0) << "not inside the call";
  ASSERT_TRUE(cluster_->WaitUntil([&] { return stopped == 2; }, seconds(1)));
  store_->Stop([&] { ++stopped; });
  EXPECT_EQ(stopped, 2);
  cluster_->loop().RunUntilIdle();
  EXPECT_EQ(stopped, 3);
  EXPECT_FALSE(store_->outage().has_value());
  EXPECT_EQ(Commit({{}, {Put("k", "x")}}).error().message, "the store is stopped");
  EXPECT_EQ(ReadRevision().error().message, "the store is stopped");
}

TEST_F(EtcdStoreTest, ACommitToldAsAppliedIsToldAsDurableAndAFailedOneIsNot) {
  Open(1);
  std::vector<std::string> told;
  const auto commit = [&](Transaction transaction) {
    const std::size_t before = told.size();
    store_->Commit(
        std::move(transaction),
        [&](const Result<TransactionResult>& result) {
          told.push_back(!result.ok()        ? "error"
                         : result->succeeded ? "applied"
                                             : "condition failed");
        },
        [&](const Result<Revision>& revision) {
          told.push_back(revision.ok() ? "durable " + std::to_string(*revision) : "not durable");
        });
    EXPECT_TRUE(cluster_->WaitUntil([&] { return told.size() > before; }));
    cluster_->loop().RunUntilIdle();
  };
  commit({{{"a", 0}}, {Put("a", "1")}});
  commit({{{"a", 0}}, {Put("a", "2")}});
  commit({{}, {Put("", "2")}});
  EXPECT_THAT(told,
              ElementsAre("applied", "durable 2", "condition failed", "error", "not durable"));
  const StoreStatistics statistics = store_->statistics();
  EXPECT_EQ(statistics.transactions, 2u);
  EXPECT_EQ(statistics.commits, 1u);
  EXPECT_EQ(statistics.syncs, 1u);
  EXPECT_EQ(statistics.bytes_written, 1u);
}

TEST_F(EtcdStoreTest, OthersWriteToItAndItExpiresKeys) {
  Open(1);
  EXPECT_TRUE(store_->is_shared());
  EXPECT_TRUE(store_->expires_keys());
}

TEST_F(EtcdStoreTest, StoppingGoesOnWhenAWatchThatLagsBehindIsGone) {
  Open(1, {.watch_delay = seconds(2)});
  StartWatch("k");
  ASSERT_TRUE(Commit({{}, {Put("k", "x")}}).ok());
  bool stopped = false;
  store_->Stop([&] { stopped = true; });
  cluster_->loop().RunUntilIdle();
  EXPECT_FALSE(stopped);
  watch_.reset();
  cluster_->loop().RunUntilIdle();
  EXPECT_TRUE(stopped);
}

TEST_F(EtcdStoreTest, StoppingAsksForProgressThatNoEventShows) {
  Open(1, {.version = "3.5.13", .watch_delay = milliseconds(2)});
  StartWatch("k");
  ASSERT_TRUE(Commit({{}, {Put("k", "x")}}).ok());
  ASSERT_TRUE(cluster_->WaitUntil([&] { return reached_ == 2; }));
  ASSERT_TRUE(Commit({{}, {Put("other", "x")}}).ok());
  bool stopped = false;
  store_->Stop([&] { stopped = true; });
  EXPECT_TRUE(cluster_->WaitUntil([&] { return stopped; }, milliseconds(500)));
  EXPECT_EQ(reached_, 3);
}

TEST_F(EtcdStoreTest, AWriteOfUnknownFateIsNotSentAgainOnceTheStoreHasFailed) {
  Open(1);
  ASSERT_TRUE(ReadRevision().ok());
  LoseAnswers(etcd::kTxnMethod, 2);
  std::optional<Result<TransactionResult>> result;
  store_->Commit(
      {{{"a", 0}}, {Put("a", "1")}}, [&](auto given) { result = std::move(given); }, nullptr);
  cluster_->loop().RunUntilIdle();
  ASSERT_FALSE(result.has_value()) << "it is sent again later";
  cluster_->etcd().ChangeCluster();
  ASSERT_FALSE(ReadRevision().ok());
  ASSERT_TRUE(store_->failure().has_value());
  ASSERT_TRUE(cluster_->WaitUntil([&] { return result.has_value(); }));
  EXPECT_THAT(result->error().message, HasSubstr("unknown whether the write happened"));
}

TEST_F(EtcdStoreTest, CallbacksMayDestroyTheStore) {
  for (const char* which : {"applied", "durable", "events", "watched durable", "closed", "revision",
                            "range", "compact", "stop"}) {
    Open(1);
    ASSERT_TRUE(ReadRevision().ok());
    const std::string_view where = which;
    bool destroyed = false;
    const auto destroy = [&](std::string_view here) {
      if (here != where) return;
      destroyed = true;
      store_.reset();
    };
    const auto watch = store_->StartWatch(
        {.prefix = "k"}, {.on_events = [&](const auto&, Revision) { destroy("events"); },
                          .on_closed = [&](const Error&) { destroy("closed"); },
                          .on_durable = [&](Revision) { destroy("watched durable"); }});
    store_->Commit(
        {{}, {Put("k", "x")}}, [&](const auto&) { destroy("applied"); },
        [&](const auto&) { destroy("durable"); });
    cluster_->loop().Advance(seconds(1));
    if (store_ != nullptr) store_->ReadRevision([&](const auto&) { destroy("revision"); });
    if (store_ != nullptr) store_->Range({}, [&](const auto&) { destroy("range"); });
    if (store_ != nullptr) store_->Compact(2, [&](const auto&) { destroy("compact"); });
    cluster_->loop().Advance(seconds(1));
    if (store_ != nullptr) store_->Stop([&] { destroy("stop"); });
    cluster_->loop().Advance(seconds(10));
    EXPECT_TRUE(destroyed) << which;
  }
}

// Answers that are no messages of etcd's.
TEST(EtcdStoreAnswers, WhatCannotBeDecodedIsAnError) {
  SeededLoop loop;
  ScriptedTransport transport;
  EtcdStoreOptions options;
  options.client.endpoints.push_back(FakeCluster::Endpoint(0));
  const auto store = OpenEtcdStore(loop, loop.random(), transport, std::move(options));
  const auto answer = [&](std::string response) {
    loop.RunUntilIdle();
    ASSERT_FALSE(transport.calls.empty());
    transport.Answer(std::move(response));
    loop.RunUntilIdle();
  };
  std::optional<Error> error;
  store->ReadRevision([&](const Result<Revision>& result) { error = result.error(); });
  transport.channels[0].on_connection_change(true);
  answer("nonsense");
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::kUnavailable);

  etcd::RangeResponse range;
  range.header.revision = 7;
  store->ReadRevision([&](const Result<Revision>& result) { EXPECT_EQ(result.value(), 7); });
  answer(Encode(range));
  answer(Encode(range));

  const auto expect_unavailable = [&](const char* what) {
    answer("nonsense");
    ASSERT_TRUE(error.has_value()) << what;
    EXPECT_EQ(error->code, ErrorCode::kUnavailable) << what;
    error.reset();
  };
  error.reset();
  store->ReadRevision([&](const Result<Revision>& result) { error = result.error(); });
  expect_unavailable("revision");
  store->Range({}, [&](const Result<RangeResult>& result) { error = result.error(); });
  expect_unavailable("range");
  store->Commit(
      {{}, {{"k", std::make_shared<const std::string>("x")}}},
      [&](const Result<TransactionResult>& result) { error = result.error(); }, nullptr);
  expect_unavailable("commit");
}

TEST(EtcdStoreAnswers, AHistoryThatIsCompactedWhileItIsWatchedIsKnownToBe) {
  SeededLoop loop;
  ScriptedTransport transport;
  EtcdStoreOptions options;
  options.client.endpoints.push_back(FakeCluster::Endpoint(0));
  auto store = OpenEtcdStore(loop, loop.random(), transport, std::move(options));
  transport.channels[0].on_connection_change(true);
  etcd::RangeResponse range;
  range.header.revision = 50;
  loop.RunUntilIdle();
  transport.Answer(Encode(range));
  bool closed = false;
  const auto watch = store->StartWatch({.prefix = "k", .after = 5},
                                       {.on_events = [](const auto&, Revision) {},
                                        .on_closed = [&](const Error&) { closed = true; }});
  transport.Answer(Encode(etcd::StatusResponse{.header = {}, .version = "3.5.13"}));
  transport.Answer(Encode(range));
  ASSERT_EQ(transport.streams.size(), 1u);
  etcd::WatchResponse canceled;
  canceled.canceled = true;
  canceled.compact_revision = 9;
  transport.streams[0]->callbacks.on_message(Encode(canceled));
  EXPECT_TRUE(closed);
  EXPECT_EQ(store->compacted_revision(), 9);
  bool stopped = false;
  store->Stop([&] { stopped = true; });
  loop.RunUntilIdle();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(transport.open_channels, 0u) << "a stopped store has no connections";
}

}  // namespace
}  // namespace drakkar::storage
