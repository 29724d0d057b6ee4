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

}  // namespace
}  // namespace drakkar::storage
