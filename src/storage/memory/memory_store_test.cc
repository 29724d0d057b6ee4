#include "storage/memory/memory_store.h"

#include <gtest/gtest.h>

#include "base/testing/seeded_loop.h"

namespace drakkar::storage {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class MemoryStoreTest : public ::testing::Test {
 protected:
  MemoryStoreTest() { Open(); }
  void Open(LocalStoreLimits limits = {}) {
    store_.reset();
    store_ = OpenMemoryStore(loop_, disk_, limits);
  }
  void Put(const std::string& key, const std::string& value) {
    store_->Commit({{}, {{key, std::make_shared<const std::string>(value)}}}, nullptr,
                   [this](Result<Revision> result) { results_.push_back(std::move(result)); });
  }

  SeededLoop loop_;
  MemoryDisk disk_;
  std::unique_ptr<Store> store_;
  std::vector<Result<Revision>> results_;
};

TEST_F(MemoryStoreTest, AppliedRunsAheadOfDurable) {
  disk_.set_sync_delay(milliseconds(5));
  std::vector<Revision> applied;
  std::vector<Revision> durable;
  auto a =
      store_->StartWatch({.mark = Mark::kApplied},
                         {.on_events = [&](auto, Revision up_to) { applied.push_back(up_to); }});
  auto d =
      store_->StartWatch({.mark = Mark::kDurable},
                         {.on_events = [&](auto, Revision up_to) { durable.push_back(up_to); }});
  Put("a", "1");
  loop_.RunUntilIdle();
  EXPECT_EQ(applied, std::vector<Revision>{2});
  EXPECT_TRUE(durable.empty());
  EXPECT_EQ(store_->durable_revision(), 1);
  loop_.Advance(milliseconds(5));
  EXPECT_EQ(durable, std::vector<Revision>{2});
  EXPECT_EQ(store_->durable_revision(), 2);
}

TEST_F(MemoryStoreTest, TransactionsDuringASyncShareTheNext) {
  disk_.set_sync_delay(milliseconds(5));
  Put("a", "1");
  loop_.Advance(milliseconds(1));
  for (int i = 0; i < 10; ++i) Put("b", "1");
  loop_.Advance(milliseconds(4));
  EXPECT_EQ(results_.size(), 1u);
  loop_.Advance(milliseconds(5));
  EXPECT_EQ(results_.size(), 11u);
  EXPECT_EQ(store_->statistics().syncs, 2u);
}

TEST_F(MemoryStoreTest, ACrashDropsExactlyWhatWasNotDurable) {
  Put("a", "1");
  loop_.Advance(milliseconds(1));
  disk_.HoldSyncs();
  Put("a", "2");
  Put("b", "1");
  loop_.Advance(seconds(1));
  EXPECT_EQ(store_->applied_revision(), 4);
  Open();
  loop_.Advance(seconds(1));
  EXPECT_EQ(results_.size(), 1u);
  EXPECT_EQ(store_->applied_revision(), 2);
  store_->Range({}, [](Result<RangeResult> result) {
    ASSERT_EQ(result->entries.size(), 1u);
    EXPECT_EQ(*result->entries[0].value, "1");
  });
}

TEST_F(MemoryStoreTest, AFailedSyncFailsEverythingAfterIt) {
  std::optional<Error> closed;
  auto watch = store_->StartWatch(
      {}, {.on_events = [](auto, Revision) {}, .on_closed = [&](Error error) { closed = error; }});
  disk_.FailSync(2, Unavailable("the disk is gone"));
  Put("a", "1");
  loop_.Advance(milliseconds(1));
  Put("a", "2");
  loop_.Advance(milliseconds(1));
  Put("a", "3");
  ASSERT_EQ(results_.size(), 3u);
  EXPECT_TRUE(results_[0].ok());
  EXPECT_FALSE(results_[1].ok());
  EXPECT_FALSE(results_[2].ok());
  EXPECT_NE(results_[2].error().message.find("the disk is gone"), std::string::npos);
  ASSERT_TRUE(closed.has_value());
  EXPECT_EQ(closed->code, ErrorCode::kUnavailable);
  bool stopped = false;
  store_->Stop([&] { stopped = true; });
  loop_.Advance(milliseconds(1));
  EXPECT_TRUE(stopped);
  Open();
  EXPECT_EQ(store_->applied_revision(), 2);
}

TEST_F(MemoryStoreTest, HistoryIsForgottenAfterFiveMinutes) {
  Put("a", "1");
  Put("a", "2");
  loop_.Advance(minutes(4));
  Put("b", "1");
  loop_.Advance(seconds(50));
  EXPECT_EQ(store_->compacted_revision(), 0);
  EXPECT_EQ(disk_.rows(), 3u);
  loop_.Advance(seconds(30));
  EXPECT_EQ(store_->compacted_revision(), 3);
  EXPECT_EQ(disk_.rows(), 2u) << "the replaced row is gone from the disk";
  loop_.Advance(minutes(10));
  EXPECT_EQ(store_->compacted_revision(), 4);
  EXPECT_EQ(loop_.pending_timers(), 0u) << "an idle store does nothing";
}

TEST_F(MemoryStoreTest, HistoryIsBoundedInBytes) {
  LocalStoreLimits limits;
  limits.history_bytes_max = 100'000;
  Open(limits);
  for (int i = 0; i < 1'000; ++i) {
    Put("a", std::string(1'000, 'x'));
    loop_.Advance(milliseconds(1));
  }
  EXPECT_LE(store_->statistics().history_bytes, 100'000u);
  EXPECT_GT(store_->compacted_revision(), 800);
  EXPECT_LE(disk_.rows(), 101u);
}

TEST_F(MemoryStoreTest, NothingIsCompactedBeforeItIsDurable) {
  LocalStoreLimits limits;
  limits.history_bytes_max = 1'000;
  Open(limits);
  disk_.HoldSyncs();
  for (int i = 0; i < 100; ++i) Put("a", std::string(100, 'x'));
  loop_.RunUntilIdle();
  EXPECT_LE(store_->compacted_revision(), store_->durable_revision());
  bool compacted = false;
  store_->Compact(50, [&](Result<void> result) { compacted = result.ok(); });
  loop_.RunUntilIdle();
  EXPECT_FALSE(compacted);
  disk_.ReleaseSyncs();
  loop_.Advance(milliseconds(1));
  EXPECT_TRUE(compacted);
}

TEST_F(MemoryStoreTest, CallbacksMayDestroyTheStore) {
  auto watch = store_->StartWatch({}, {.on_events = [&](auto, Revision) { store_.reset(); }});
  auto other = store_->StartWatch({}, {.on_events = [](auto, Revision) { FAIL(); }});
  Put("a", "1");
  Put("b", "1");
  loop_.Advance(milliseconds(1));
  EXPECT_EQ(store_, nullptr);
}

TEST_F(MemoryStoreTest, LoadedHistoryIsForgottenAsIfItWereWrittenNow) {
  EXPECT_EQ(loop_.pending_timers(), 0u) << "an empty store has nothing to forget";
  Put("a", "1");
  Put("a", "2");
  loop_.Advance(seconds(1));
  Open();
  loop_.Advance(minutes(4));
  EXPECT_EQ(store_->compacted_revision(), 0);
  loop_.Advance(minutes(2));
  EXPECT_EQ(store_->compacted_revision(), 3);
  EXPECT_EQ(disk_.rows(), 1u);
  EXPECT_EQ(loop_.pending_timers(), 0u);
  Open();
  loop_.RunUntilIdle();
  EXPECT_EQ(loop_.pending_timers(), 0u) << "there is no history";
}

TEST_F(MemoryStoreTest, ACompactionRemovesRowsWhileNobodyWrites) {
  for (const char* value : {"1", "2", "3"}) Put("a", value);
  loop_.Advance(milliseconds(1));
  ASSERT_EQ(disk_.rows(), 3u);
  store_->Compact(3, [](Result<void> result) { EXPECT_TRUE(result.ok()); });
  loop_.Advance(milliseconds(1));
  EXPECT_EQ(disk_.rows(), 2u);
}

TEST_F(MemoryStoreTest, WhatIsInTheFutureIsNamedWithTheNewestRevision) {
  Put("a", "1");
  loop_.Advance(milliseconds(1));
  constexpr char kWhy[] = "revision 9 is in the future; the newest is 2";
  int answers = 0;
  store_->Compact(9, [&](Result<void> result) {
    EXPECT_EQ(result.error().message, kWhy);
    ++answers;
  });
  store_->Range({.revision = 9}, [&](Result<RangeResult> result) {
    EXPECT_EQ(result.error().message, kWhy);
    ++answers;
  });
  EXPECT_EQ(answers, 2);
}

TEST_F(MemoryStoreTest, WhatIsCompactedIsNamedWithTheOldestRevision) {
  for (const char* value : {"1", "2", "3"}) Put("a", value);
  loop_.Advance(milliseconds(1));
  store_->Compact(4, [](Result<void> result) { EXPECT_TRUE(result.ok()); });
  loop_.Advance(milliseconds(1));
  store_->Range({.revision = 2}, [&](Result<RangeResult> result) {
    EXPECT_EQ(result.error().message, "revision 2 has been compacted; the oldest available is 4");
  });
  std::optional<Error> closed;
  auto watch = store_->StartWatch({.after = 3}, {.on_events = [](auto, Revision) { FAIL(); },
                                                 .on_closed = [&](Error why) { closed = why; }});
  loop_.Advance(milliseconds(1));
  ASSERT_TRUE(closed.has_value());
  EXPECT_EQ(closed->message, "revision 3 has been compacted; the oldest available is 4");
}

TEST_F(MemoryStoreTest, ARangeCountsTheRestOnlyIfAsked) {
  for (const char* key : {"a", "b", "c"}) Put(key, "1");
  for (const bool count : {false, true}) {
    RangeOptions options{.limit = 1};
    options.count_remaining = count;
    store_->Range(options, [&](Result<RangeResult> result) {
      EXPECT_EQ(result->entries.size(), 1u);
      EXPECT_TRUE(result->more);
      EXPECT_EQ(result->remaining, count ? 2u : 0u);
    });
    options.limit = 3;
    store_->Range(options, [&](Result<RangeResult> result) {
      EXPECT_EQ(result->entries.size(), 3u);
      EXPECT_FALSE(result->more);
    });
  }
}

TEST_F(MemoryStoreTest, AWatchThatAnotherOnesCallbackEndedHearsNothing) {
  for (const Mark mark : {Mark::kApplied, Mark::kDurable}) {
    std::unique_ptr<Watch> second;
    auto first =
        store_->StartWatch({.mark = mark}, {.on_events = [&](auto, Revision) { second.reset(); }});
    second = store_->StartWatch({.mark = mark}, {.on_events = [](auto, Revision) { FAIL(); }});
    Put("a", "1");
    loop_.Advance(milliseconds(1));
    EXPECT_EQ(second, nullptr);
  }
  // The same for the durable mark of watchers of applied revisions.
  std::unique_ptr<Watch> second;
  int events = 0;
  auto first = store_->StartWatch(
      {.mark = Mark::kApplied},
      {.on_events = [](auto, Revision) {}, .on_durable = [&](Revision) { second.reset(); }});
  second = store_->StartWatch(
      {.mark = Mark::kApplied},
      {.on_events = [&](auto, Revision) { ++events; }, .on_durable = [](Revision) { FAIL(); }});
  Put("a", "2");
  loop_.Advance(milliseconds(1));
  EXPECT_EQ(events, 1);
}

TEST_F(MemoryStoreTest, WatchersGetOnlyTheirPartOfATransaction) {
  std::vector<std::string> keys;
  auto watch =
      store_->StartWatch({.prefix = "a/", .mark = Mark::kApplied},
                         {.on_events = [&](const std::vector<WatchEvent>& events, Revision) {
                           for (const WatchEvent& event : events) keys.push_back(event.key);
                         }});
  loop_.RunUntilIdle();
  const auto value = std::make_shared<const std::string>("x");
  store_->Commit({{}, {{"a/1", value}, {"b/1", value}, {"a/2", value}}}, nullptr, nullptr);
  store_->Commit({{}, {{"a/3", value}}}, nullptr, nullptr);
  EXPECT_EQ(keys, (std::vector<std::string>{"a/1", "a/2", "a/3"})) << "inside the commit";
}

TEST_F(MemoryStoreTest, WhatWaitsForTheDiskIsBounded) {
  LocalStoreLimits limits;
  limits.queued_bytes_max = 100;
  Open(limits);
  EXPECT_EQ(store_->statistics().queued_bytes_max, 100u);
  disk_.HoldSyncs();
  Put("a", std::string(100, 'x'));
  EXPECT_EQ(store_->statistics().queued_bytes, 101u);
  Put("b", "refused");
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0].error().code, ErrorCode::kResourceExhausted);
  disk_.ReleaseSyncs();
  loop_.Advance(milliseconds(1));
  EXPECT_EQ(store_->statistics().queued_bytes, 0u);
  Put("b", std::string(99, 'x'));
  Put("c", "at the limit, but not beyond it");
  loop_.Advance(milliseconds(1));
  ASSERT_EQ(results_.size(), 4u);
  EXPECT_TRUE(results_[3].ok());
}

TEST_F(MemoryStoreTest, StoppingWaitsForWhatIsQueuedBehindASync) {
  disk_.set_sync_delay(milliseconds(5));
  Put("a", "1");
  loop_.Advance(milliseconds(1));
  Put("b", "1");
  bool stopped = false;
  store_->Stop([&] { stopped = true; });
  loop_.Advance(milliseconds(5));
  EXPECT_FALSE(stopped) << "the second is not on the disk yet";
  loop_.Advance(milliseconds(5));
  EXPECT_TRUE(stopped);
  ASSERT_EQ(results_.size(), 2u);
  EXPECT_TRUE(results_[1].ok());
}

TEST_F(MemoryStoreTest, AFailureWithMoreQueuedLetsTheStoreStop) {
  disk_.set_sync_delay(milliseconds(5));
  disk_.FailSync(1, Unavailable("the disk is gone"));
  Put("a", "1");
  loop_.Advance(milliseconds(1));
  Put("b", "1");
  loop_.Advance(milliseconds(10));
  ASSERT_EQ(results_.size(), 2u);
  EXPECT_FALSE(results_[1].ok());
  bool stopped = false;
  store_->Stop([&] { stopped = true; });
  loop_.Advance(milliseconds(1));
  EXPECT_TRUE(stopped);
}

TEST_F(MemoryStoreTest, AFullDiskRefusesWritesUntilItHasSpace) {
  Put("a", "1");
  loop_.Advance(milliseconds(1));
  disk_.HoldSyncs();
  Put("a", "2");
  disk_.SetFull(true);
  ASSERT_EQ(results_.size(), 2u) << "whoever waits is told now";
  EXPECT_EQ(results_[1].error().code, ErrorCode::kResourceExhausted);
  EXPECT_NE(results_[1].error().message.find("saved once there is space"), std::string::npos);
  EXPECT_TRUE(store_->outage().has_value());
  Put("a", "refused");
  ASSERT_EQ(results_.size(), 3u);
  EXPECT_EQ(results_[2].error().message, "the disk is full");
  EXPECT_EQ(store_->applied_revision(), 3);
  disk_.SetFull(false);
  loop_.Advance(milliseconds(1));
  EXPECT_EQ(store_->durable_revision(), 3);
  EXPECT_FALSE(store_->outage().has_value());
  Put("a", "3");
  loop_.Advance(milliseconds(1));
  EXPECT_TRUE(results_[3].ok());
}

TEST_F(MemoryStoreTest, ATransactionNeitherRepeatsKeysNorHasTooMany) {
  const auto value = std::make_shared<const std::string>("x");
  Transaction large;
  for (std::size_t i = 0; i <= kMaxOperationsPerTransaction; ++i) {
    large.operations.push_back({"k" + std::to_string(i), value});
  }
  const auto message = [&](Transaction transaction) {
    std::string text = "ok";
    store_->Commit(
        std::move(transaction),
        [&](const Result<TransactionResult>& result) {
          if (!result.ok()) text = result.error().message;
        },
        nullptr);
    return text;
  };
  EXPECT_EQ(message(large), "a transaction has at most 65535 operations, not 65536");
  large.operations.pop_back();
  EXPECT_EQ(message(std::move(large)), "ok");
  EXPECT_EQ(message({{}, {{"a", value}, {"b", value}, {"a", value}}}),
            "the key a appears twice in one transaction");
  EXPECT_EQ(message({{}, {{"", value}}}), "a key must not be empty");
}

TEST_F(MemoryStoreTest, AStoreThatHasStoppedStopsAgainAndAnswersNothingElse) {
  bool stopped = false;
  store_->Stop([&] { stopped = true; });
  loop_.RunUntilIdle();
  EXPECT_TRUE(stopped);
  stopped = false;
  store_->Stop([&] { stopped = true; });
  loop_.RunUntilIdle();
  EXPECT_TRUE(stopped);
  int refusals = 0;
  const auto refused = [&](const auto& result) {
    EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
    ++refusals;
  };
  store_->ReadRevision(refused);
  store_->Range({}, refused);
  store_->Compact(1, refused);
  store_->Verify("", refused);
  EXPECT_EQ(refusals, 4);
  std::optional<Error> closed;
  auto watch = store_->StartWatch(
      {}, {.on_events = [](auto, Revision) {}, .on_closed = [&](Error why) { closed = why; }});
  loop_.RunUntilIdle();
  EXPECT_TRUE(closed.has_value());
}

TEST_F(MemoryStoreTest, ALongHistoryIsRemovedInStepsWhileNobodyWrites) {
  constexpr int kVersions = 3'000;
  for (int i = 0; i < kVersions; ++i) Put("a", std::to_string(i));
  loop_.Advance(milliseconds(1));
  ASSERT_EQ(disk_.rows(), std::size_t{kVersions});
  store_->Compact(store_->applied_revision(),
                  [](Result<void> result) { EXPECT_TRUE(result.ok()); });
  loop_.Advance(milliseconds(1));
  EXPECT_EQ(disk_.rows(), 1u);
}

TEST_F(MemoryStoreTest, StatisticsNameTheLimits) {
  Open({.history_bytes_max = 12'345, .queued_bytes_max = 23'456});
  EXPECT_EQ(store_->statistics().history_bytes_max, 12'345u);
  EXPECT_EQ(store_->statistics().queued_bytes_max, 23'456u);
}

TEST_F(MemoryStoreTest, ADiskMayChangeWhileNoStoreUsesIt) {
  store_.reset();
  disk_.SetFull(true);
  disk_.SetFull(false);
  disk_.HoldSyncs();
  disk_.ReleaseSyncs();
  Open();
  Put("a", "1");
  loop_.Advance(milliseconds(1));
  EXPECT_EQ(disk_.rows(), 1u);
}

}  // namespace
}  // namespace drakkar::storage
