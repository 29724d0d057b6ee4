#include "storage/sqlite/sqlite_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>

#include "base/env/file_system.h"
#include "base/exec/uv_loop.h"
#include "storage/sqlite/io_observer.h"

namespace drakkar::storage {
namespace {

using ::testing::HasSubstr;

std::string TemporaryDirectory() {
  char pattern[] = "/tmp/drakkar-store-XXXXXX";
  return ::mkdtemp(pattern);
}

// Fails the n-th call of a kind. Also keeps the content of every file at its last sync, which is
// the least that a power cut would leave.
class FaultyDisk final : public IoObserver {
 public:
  int fail_write = 0;  // counts down; the call that reaches 0 fails, and so do all later ones
  int fail_sync = 0;
  bool database_only = false;  // calls on the log always succeed

  bool OnWrite(std::string_view path) override {
    std::lock_guard guard(mutex_);
    return Passes(path, fail_write);
  }
  bool OnSync(std::string_view path) override {
    std::lock_guard guard(mutex_);
    ++syncs_;
    return Passes(path, fail_sync);
  }
  void AfterSync(std::string_view path) override {
    std::lock_guard guard(mutex_);
    synced_[std::string(BaseName(path))] = *RealFileSystem().ReadFile(std::string(path));
  }

  std::map<std::string, std::string> synced() {
    std::lock_guard guard(mutex_);
    return synced_;
  }
  int syncs() {
    std::lock_guard guard(mutex_);
    return syncs_;
  }

 private:
  bool Passes(std::string_view path, int& left) {
    if (database_only && BaseName(path) != "store.db") return true;
    if (broken_) return false;
    if (left > 0 && --left == 0) broken_ = true;
    return !broken_;
  }

  std::mutex mutex_;
  bool broken_ = false;
  int syncs_ = 0;
  std::map<std::string, std::string> synced_;
};

// A disk that has no space for anything while `is_full`.
class FullDisk final : public IoObserver {
 public:
  std::atomic<bool> is_full = false;
  bool database_only = false;

  bool OnWrite(std::string_view) override { return true; }
  bool OnSync(std::string_view) override { return true; }
  void AfterSync(std::string_view) override {}
  bool HasSpace(std::string_view path) override {
    return !is_full || (database_only && BaseName(path) != "store.db");
  }
};

class SqliteStoreTest : public ::testing::Test {
 protected:
  SqliteStoreTest() : thread_("store-test") { options_.directory = TemporaryDirectory(); }
  ~SqliteStoreTest() override {
    Close();
    EXPECT_TRUE(RealFileSystem().RemoveTree(options_.directory).ok());
  }

  std::optional<Error> Open() {
    std::optional<Error> error;
    thread_.RunSync([&] {
      store_.reset();
      auto opened = OpenSqliteStore(thread_.loop(), options_);
      if (opened.ok()) {
        store_ = std::move(*opened);
      } else {
        error = opened.error();
      }
    });
    return error;
  }
  void Close() {
    thread_.RunSync([this] { store_.reset(); });
  }
  std::string File(std::string_view name) { return JoinPath(options_.directory, name); }

  // Writes `count` values of `bytes` under `keys` different keys, waits for all of them, and
  // returns their results in order.
  std::vector<Result<Revision>> Write(int count, std::size_t bytes, int keys = 1'000'000) {
    struct State {
      std::vector<Result<Revision>> results;
    };
    auto state = std::make_shared<State>();
    thread_.RunSync([&] {
      for (int i = 0; i < count; ++i) {
        store_->Commit({{},
                        {{"key/" + std::to_string(written_++ % keys),
                          std::make_shared<const std::string>(bytes, 'x')}}},
                       nullptr,
                       [state](Result<Revision> result) { state->results.push_back(result); });
      }
    });
    Wait([&] { return state->results.size() == static_cast<std::size_t>(count); });
    return std::move(state->results);
  }
  void Wait(const std::function<bool()>& condition) {
    bool holds = false;
    while (!holds) thread_.RunSync([&] { holds = condition(); });
  }
  Revision Applied() {
    Revision revision = 0;
    thread_.RunSync([&] { revision = store_->applied_revision(); });
    return revision;
  }

  SqliteStoreOptions options_;
  LoopThread thread_;
  std::unique_ptr<Store> store_;
  int written_ = 0;
};

TEST_F(SqliteStoreTest, ADamagedFileIsAnErrorAndIsLeftAlone) {
  ASSERT_FALSE(Open().has_value());
  Write(200, 900);
  Close();
  std::string content = *RealFileSystem().ReadFile(File("store.db"));
  ASSERT_GT(content.size(), 100'000u);
  for (std::size_t i = 40'000; i < 60'000; ++i) content[i] = '\x5a';
  ASSERT_TRUE(RealFileSystem().WriteFile(File("store.db"), content, 0600).ok());
  std::optional<Error> error = Open();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::kDataLoss);
  EXPECT_THAT(error->message, HasSubstr(File("store.db") + " is damaged"));
  EXPECT_THAT(error->message, HasSubstr("run `drakkar store repair`, restore it from a backup"));
  EXPECT_EQ(*RealFileSystem().ReadFile(File("store.db")), content);
}

TEST_F(SqliteStoreTest, AFileThatIsNoStoreIsAnError) {
  for (const std::string& content : {std::string("not a database, but long enough to look at"),
                                     std::string(8192, '\0'), std::string()}) {
    ASSERT_TRUE(RealFileSystem().WriteFile(File("store.db"), content, 0600).ok());
    std::optional<Error> error = Open();
    ASSERT_TRUE(error.has_value()) << content.size();
    EXPECT_EQ(error->code, ErrorCode::kDataLoss) << error->message;
  }
}

TEST_F(SqliteStoreTest, ATruncatedFileIsAnError) {
  ASSERT_FALSE(Open().has_value());
  Write(200, 900);
  Close();
  std::string content = *RealFileSystem().ReadFile(File("store.db"));
  content.resize(content.size() / 2 / 4096 * 4096);
  ASSERT_TRUE(RealFileSystem().WriteFile(File("store.db"), content, 0600).ok());
  std::optional<Error> error = Open();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::kDataLoss);
}

TEST_F(SqliteStoreTest, AMissingFileWithItsLogStillThereIsAnError) {
  ASSERT_TRUE(RealFileSystem().WriteFile(File("store.db-wal"), "frames", 0600).ok());
  std::optional<Error> error = Open();
  ASSERT_TRUE(error.has_value());
  EXPECT_THAT(error->message, HasSubstr("is missing but its write-ahead log is there"));
}

TEST_F(SqliteStoreTest, ANewerFormatIsRefused) {
  ASSERT_FALSE(Open().has_value());
  Close();
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(File("store.db").c_str(), &connection), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(connection, "UPDATE meta SET value = 3 WHERE name = 'format'", nullptr,
                         nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(connection);
  std::optional<Error> error = Open();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->message, "the store file " + File("store.db") +
                                " has format 3, this drakkar reads up to 2; use the newer drakkar "
                                "that wrote it");
}

TEST_F(SqliteStoreTest, AnUnfinishedCreationIsStartedOver) {
  ASSERT_TRUE(RealFileSystem().WriteFile(File("store.db.new"), "half", 0600).ok());
  EXPECT_FALSE(Open().has_value());
  EXPECT_FALSE(RealFileSystem().Exists(File("store.db.new")));
}

TEST_F(SqliteStoreTest, AFullStoreKeepsWhatItAcknowledgedAndSaysWhy) {
  options_.file_bytes_max = 1 << 20;
  ASSERT_FALSE(Open().has_value());
  std::vector<Result<Revision>> results;
  while (results.empty() || results.back().ok()) {
    for (Result<Revision>& result : Write(50, 4'000)) results.push_back(std::move(result));
  }
  Revision acknowledged = 1;
  bool failed = false;
  for (const Result<Revision>& result : results) {
    if (result.ok()) {
      EXPECT_FALSE(failed) << "durable after a failure";
      acknowledged = *result;
    }
    failed = failed || !result.ok();
  }
  EXPECT_GT(acknowledged, 100);
  EXPECT_EQ(results.back().error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(results.back().error().message, HasSubstr("is full: free some space on it"));
  thread_.RunSync([&] {
    EXPECT_EQ(store_->durable_revision(), acknowledged);
    EXPECT_FALSE(store_->failure().has_value());
    ASSERT_TRUE(store_->outage().has_value());
    store_->Range({}, [](Result<RangeResult> range) { EXPECT_TRUE(range.ok()); });
  });
  options_.file_bytes_max = 0;
  ASSERT_FALSE(Open().has_value());
  EXPECT_EQ(Applied(), acknowledged);
  EXPECT_TRUE(Write(1, 10)[0].ok());
}

TEST_F(SqliteStoreTest, AFullDiskIsReadableAndTakesWritesAgainOnceItHasSpace) {
  FullDisk disk;
  options_.space_interval = std::chrono::milliseconds(5);
  options_.observer = &disk;
  ASSERT_FALSE(Open().has_value());
  ASSERT_TRUE(Write(20, 900).back().ok());
  disk.is_full = true;
  const std::vector<Result<Revision>> refused = Write(3, 900);
  for (const Result<Revision>& result : refused) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kResourceExhausted);
    EXPECT_THAT(result.error().message, HasSubstr("is full: free some space on it"));
  }
  EXPECT_FALSE(Write(1, 10)[0].ok()) << "accepted while the disk is full";
  thread_.RunSync([&] {
    EXPECT_TRUE(store_->outage().has_value());
    EXPECT_FALSE(store_->failure().has_value());
    store_->Range({}, [](Result<RangeResult> range) {
      ASSERT_TRUE(range.ok());
      EXPECT_GE(range->entries.size(), 20u);
    });
  });
  disk.is_full = false;
  Wait([&] { return !store_->outage().has_value(); });
  EXPECT_TRUE(Write(1, 10)[0].ok());
  // What was applied before the disk was noticed to be full was saved, in order.
  const Revision applied = Applied();
  Close();
  options_.observer = nullptr;
  ASSERT_FALSE(Open().has_value());
  EXPECT_EQ(Applied(), applied);
}

TEST_F(SqliteStoreTest, AFullDiskLosesNothingWhileTheLogIsCopied) {
  FullDisk disk;
  options_.space_interval = std::chrono::milliseconds(5);
  disk.database_only = true;
  options_.observer = &disk;
  options_.log_bytes = 256 << 10;
  ASSERT_FALSE(Open().has_value());
  Revision acknowledged = 0;
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    disk.is_full = true;
    bool full = false;
    for (int i = 0; i < 400 && !full; ++i) {
      for (const Result<Revision>& result : Write(3, 5'000, 60)) {
        if (result.ok()) acknowledged = *result;
        full = full || !result.ok();
      }
    }
    ASSERT_TRUE(full) << "the full disk was not noticed";
    disk.is_full = false;
    Wait([&] { return !store_->outage().has_value(); });
    ASSERT_TRUE(Write(1, 10)[0].ok());
  }
  const Revision applied = Applied();
  EXPECT_GE(applied, acknowledged);
  Close();
  options_.observer = nullptr;
  ASSERT_FALSE(Open().has_value());
  EXPECT_EQ(Applied(), applied);
  thread_.RunSync([&] {
    store_->Range({}, [](Result<RangeResult> range) {
      ASSERT_TRUE(range.ok());
      EXPECT_TRUE(range->unreadable.empty());
    });
  });
}

TEST_F(SqliteStoreTest, ADeletedFileStopsTheStoreInsteadOfLosingWrites) {
  ASSERT_FALSE(Open().has_value());
  ASSERT_TRUE(Write(1, 10)[0].ok());
  ASSERT_TRUE(RealFileSystem().Rename(File("store.db"), File("gone")).ok());
  const Result<Revision> result = Write(1, 10)[0];
  ASSERT_FALSE(result.ok()) << "acknowledged a write that the next start would not find";
  EXPECT_THAT(result.error().message,
              HasSubstr(File("store.db") + " was deleted or replaced while it was in use"));
}

TEST_F(SqliteStoreTest, AnyFailingWriteOrSyncStopsTheStoreAndLosesNothing) {
  int failures = 0;
  for (int kind = 0; kind < 2; ++kind) {
    for (int nth = 1; nth <= 24; ++nth) {
      SCOPED_TRACE((kind == 0 ? "write " : "sync ") + std::to_string(nth));
      FaultyDisk disk;
      (kind == 0 ? disk.fail_write : disk.fail_sync) = nth;
      options_.observer = &disk;
      std::optional<Error> refused = Open();
      Revision acknowledged = 0;
      bool failed = refused.has_value();
      for (int i = 0; i < 12 && !failed; ++i) {
        for (const Result<Revision>& result : Write(3, 900)) {
          EXPECT_FALSE(failed && result.ok()) << "durable after a failure";
          if (result.ok()) acknowledged = *result;
          failed = failed || !result.ok();
        }
      }
      failures += failed;
      options_.observer = nullptr;
      Close();
      ASSERT_FALSE(Open().has_value());
      EXPECT_GE(Applied(), acknowledged) << "an acknowledged write is lost";
      Close();
    }
  }
  EXPECT_GT(failures, 20) << "the faults were not reached";
}

// A power cut is only sure to leave what was synced. That must include every acknowledged revision.
TEST_F(SqliteStoreTest, WhatIsAcknowledgedSurvivesAPowerCut) {
  FaultyDisk disk;
  options_.observer = &disk;
  options_.log_bytes = 256 << 10;  // so that it is copied and reset many times
  ASSERT_FALSE(Open().has_value());
  const std::string created = *RealFileSystem().ReadFile(File("store.db"));
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Revision acknowledged = *Write(10, 5'000, 50).back();
    SqliteStoreOptions after;
    after.directory = TemporaryDirectory();
    std::map<std::string, std::string> files = disk.synced();
    files.try_emplace("store.db", created);
    for (const auto& [name, content] : files) {
      ASSERT_TRUE(RealFileSystem().WriteFile(JoinPath(after.directory, name), content, 0600).ok());
    }
    thread_.RunSync([&] {
      auto opened = OpenSqliteStore(thread_.loop(), after);
      ASSERT_TRUE(opened.ok()) << opened.error().message;
      EXPECT_EQ((*opened)->applied_revision(), acknowledged);
    });
    EXPECT_TRUE(RealFileSystem().RemoveTree(after.directory).ok());
  }
  StoreStatistics statistics;
  thread_.RunSync([&] { statistics = store_->statistics(); });
  // The last checkpoint may not have been counted yet.
  EXPECT_LE(statistics.syncs, static_cast<std::uint64_t>(disk.syncs()));
  EXPECT_GE(statistics.syncs, 40u);
  EXPECT_GT(disk.synced()["store.db"].size(), 500'000u) << "the log was not copied";
  Close();
  options_.observer = nullptr;
}

TEST_F(SqliteStoreTest, TheLogIsCopiedAndBeginsAnewWhileCommitsGoOn) {
  options_.log_bytes = 1 << 20;
  ASSERT_FALSE(Open().has_value());
  for (int i = 0; i < 20; ++i) Write(200, 4'000);
  // 16 MB were written. A group is written to the log as a whole: at most 64 batches of a page
  // each.
  EXPECT_LT(RealFileSystem().Stat(File("store.db-wal"))->size_bytes, (2u << 20) + (4u << 20));
  EXPECT_GT(RealFileSystem().Stat(File("store.db"))->size_bytes, 10u << 20);
  Close();
  EXPECT_FALSE(RealFileSystem().Exists(File("store.db-wal")));
  ASSERT_FALSE(Open().has_value());
  EXPECT_EQ(Applied(), 4'001);
}

TEST_F(SqliteStoreTest, AFailureWhileTheLogIsCopiedStopsTheStoreAndLosesNothing) {
  options_.log_bytes = 256 << 10;
  for (int kind = 0; kind < 2; ++kind) {
    for (int nth = 1; nth <= 6; ++nth) {
      SCOPED_TRACE((kind == 0 ? "write " : "sync ") + std::to_string(nth));
      FaultyDisk disk;
      disk.database_only = true;
      (kind == 0 ? disk.fail_write : disk.fail_sync) = nth;
      options_.observer = &disk;
      ASSERT_FALSE(Open().has_value());
      Revision acknowledged = 0;
      bool failed = false;
      for (int i = 0; i < 200 && !failed; ++i) {
        for (const Result<Revision>& result : Write(3, 5'000)) {
          EXPECT_FALSE(failed && result.ok()) << "durable after a failure";
          if (result.ok()) acknowledged = *result;
          failed = failed || !result.ok();
        }
      }
      EXPECT_TRUE(failed) << "the fault was not noticed";
      Close();
      options_.observer = nullptr;
      ASSERT_FALSE(Open().has_value());
      EXPECT_GE(Applied(), acknowledged) << "an acknowledged write is lost";
      Close();
    }
  }
}

TEST_F(SqliteStoreTest, OtherProgramsFindTheFileLocked) {
  ASSERT_FALSE(Open().has_value());
  Write(10, 900);
  // Use another process: a process's locks do not exclude the process itself.
  const std::string command =
      "sqlite3 " + File("store.db") + " 'SELECT count(*) FROM revisions' >/dev/null 2>&1";
  if (std::system("command -v sqlite3 >/dev/null") != 0) GTEST_SKIP() << "no sqlite3";
  EXPECT_NE(std::system(command.c_str()), 0);
  Close();
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST_F(SqliteStoreTest, AStoreWithPagesOfAnotherSizeKeepsThem) {
  ASSERT_FALSE(Open().has_value());
  Write(100, 900);
  Close();
  const auto query = [&](const char* sql) {
    sqlite3* connection = nullptr;
    EXPECT_EQ(sqlite3_open(File("store.db").c_str(), &connection), SQLITE_OK);
    std::string last;
    const auto keep = [](void* out, int, char** values, char**) {
      *static_cast<std::string*>(out) = values[0];
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(connection, sql, keep, &last, nullptr), SQLITE_OK);
    sqlite3_close(connection);
    return last;
  };
  EXPECT_EQ(query("PRAGMA page_size"), "16384");
  query("PRAGMA journal_mode=DELETE; PRAGMA page_size=4096; VACUUM; PRAGMA journal_mode=WAL;");
  options_.file_bytes_max = 1 << 20;
  options_.log_bytes = 256 << 10;
  ASSERT_FALSE(Open().has_value());
  EXPECT_EQ(Applied(), 101);
  bool full = false;
  for (int i = 0; i < 100 && !full; ++i) full = !Write(10, 3'000).back().ok();
  EXPECT_TRUE(full);
  Close();
  const std::size_t size_bytes = RealFileSystem().Stat(File("store.db"))->size_bytes;
  EXPECT_LE(size_bytes, 1u << 20);
  EXPECT_GT(size_bytes, 900u << 10);
  EXPECT_EQ(query("PRAGMA page_size"), "4096");
}

TEST_F(SqliteStoreTest, TheFileStaysBoundedWhileKeysAreRewritten) {
  options_.limits.history_bytes_max = 1 << 20;
  ASSERT_FALSE(Open().has_value());
  for (int i = 0; i < 20; ++i) Write(1'000, 900, 100);
  thread_.RunSync([&] {
    EXPECT_LE(store_->statistics().history_bytes, (1u << 20) + 300'000u);
    EXPECT_GT(store_->compacted_revision(), 15'000);
  });
  Close();
  // 20 MB were written. 1 MiB is retained, in pages that are at least a third full.
  EXPECT_LT(RealFileSystem().Stat(File("store.db"))->size_bytes, 6u << 20);
  ASSERT_FALSE(Open().has_value());
  EXPECT_EQ(Applied(), 20'001);
}

TEST_F(SqliteStoreTest, WritesAreRefusedWhenTheDiskDoesNotKeepUp) {
  options_.limits.queued_bytes_max = 100'000;
  ASSERT_FALSE(Open().has_value());
  int refused = 0;
  int durable = 0;
  for (const Result<Revision>& result : Write(2'000, 4'000)) {
    if (result.ok()) {
      ++durable;
    } else {
      EXPECT_EQ(result.error().code, ErrorCode::kResourceExhausted);
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(durable, 0);
  EXPECT_EQ(Applied(), durable + 1);
  EXPECT_TRUE(Write(1, 10)[0].ok()) << "accepts again once the queue is written";
}

TEST_F(SqliteStoreTest, TransactionsThatComeTogetherShareCommits) {
  ASSERT_FALSE(Open().has_value());
  Write(500, 900);
  thread_.RunSync([&] {
    EXPECT_LT(store_->statistics().commits, 250u);
    EXPECT_FALSE(store_->statistics().file_system.empty());
  });
}

}  // namespace
}  // namespace drakkar::storage
