// What a store does with damaged rows, and what check and repair make of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>

#include "base/env/file_system.h"
#include "base/exec/uv_loop.h"
#include "storage/sqlite/sqlite_store.h"
#include "storage/sqlite/store_file.h"

namespace drakkar::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DamageTest : public ::testing::Test {
 protected:
  DamageTest() : thread_("store-test") {
    char pattern[] = "/tmp/drakkar-damage-XXXXXX";
    options_.directory = ::mkdtemp(pattern);
  }
  ~DamageTest() override {
    Close();
    EXPECT_TRUE(RealFileSystem().RemoveTree(options_.directory).ok());
  }

  std::optional<Error> Open() {
    std::optional<Error> error;
    thread_.RunSync([&] {
      store_.reset();
      auto opened = OpenSqliteStore(thread_.loop(), options_);
      if (!opened.ok()) error = opened.error();
      if (opened.ok()) store_ = std::move(*opened);
    });
    return error;
  }
  void Close() {
    thread_.RunSync([this] { store_.reset(); });
  }
  std::string File(std::string_view name = "store.db") {
    return JoinPath(options_.directory, name);
  }
  Result<TransactionResult> Commit(Transaction transaction) {
    auto result = std::make_shared<std::optional<Result<TransactionResult>>>();
    auto over = std::make_shared<std::optional<Revision>>();
    thread_.RunSync([&] {
      store_->Commit(
          std::move(transaction),
          [result, over](Result<TransactionResult> applied) {
            if (!applied.ok() || !applied->succeeded) *over = 0;
            *result = std::move(applied);
          },
          [over](const Result<Revision>& durable) { *over = durable.ok() ? *durable : 0; });
    });
    while (true) {
      bool done = false;
      thread_.RunSync([&] { done = over->has_value() && result->has_value(); });
      if (done) return **result;
    }
  }
  Revision Put(const std::string& key, const std::string& value) {
    return Commit({{}, {{key, std::make_shared<const std::string>(value)}}})->revision;
  }
  Revision Delete(const std::string& key) { return Commit({{}, {{key, nullptr}}})->revision; }
  RangeResult Range() {
    RangeResult result;
    thread_.RunSync(
        [&] { store_->Range({}, [&](Result<RangeResult> range) { result = *std::move(range); }); });
    return result;
  }
  std::vector<std::string> Listed() {
    std::vector<std::string> listed;
    for (const Entry& entry : Range().entries) listed.push_back(entry.key + "=" + *entry.value);
    return listed;
  }
  std::vector<std::string> Unreadable() {
    std::vector<std::string> keys;
    for (const UnreadableEntry& entry : Range().unreadable) keys.push_back(entry.key);
    return keys;
  }
  void Sql(const std::string& statement) {
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open(File().c_str(), &connection), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(connection, statement.c_str(), nullptr, nullptr, &message), SQLITE_OK)
        << message;
    sqlite3_close(connection);
  }
  // Overwrites the first place in the file that has these bytes.
  void Overwrite(std::string_view what, std::string_view with) {
    std::string content = *RealFileSystem().ReadFile(File());
    const std::size_t at = content.find(what);
    ASSERT_NE(at, std::string::npos);
    content.replace(at, with.size(), with);
    ASSERT_TRUE(RealFileSystem().WriteFile(File(), content, 0600).ok());
  }

  SqliteStoreOptions options_;
  LoopThread thread_;
  std::unique_ptr<Store> store_;
};

TEST_F(DamageTest, AFlippedByteMakesOneKeyUnreadableAndNoOther) {
  ASSERT_FALSE(Open().has_value());
  Put("/a", "first value");
  Put("/b", "second value");
  const Revision last = Put("/c", "third value");
  Close();
  Overwrite("second value", "sEcond");
  ASSERT_FALSE(Open().has_value()) << "one damaged row prevented the start";
  EXPECT_THAT(Listed(), ElementsAre("/a=first value", "/c=third value"));
  const RangeResult range = Range();
  ASSERT_EQ(range.unreadable.size(), 1u);
  EXPECT_EQ(range.unreadable[0].key, "/b");
  EXPECT_EQ(range.unreadable[0].mod_revision, last - 1);
  EXPECT_THAT(range.unreadable[0].reason, HasSubstr("is damaged"));
  EXPECT_EQ(range.revision, last) << "a revision must not be used again";
  Put("/d", "new");
  Close();
  ASSERT_FALSE(Open().has_value());
  EXPECT_THAT(Unreadable(), ElementsAre("/b")) << "forgotten after a restart";
}

TEST_F(DamageTest, ADamagedKeyIsNotFreeButCanBeDeletedAtItsRevision) {
  ASSERT_FALSE(Open().has_value());
  Put("/a", "first value");
  const Revision damaged = Put("/b", "second value");
  Close();
  Overwrite("second value", "sEcond");
  ASSERT_FALSE(Open().has_value());
  const auto value = std::make_shared<const std::string>("new");
  EXPECT_FALSE(Commit({{{"/b", 0}}, {{"/b", value}}})->succeeded) << "it exists";
  EXPECT_TRUE(Commit({{{"/b", damaged}}, {{"/b", nullptr}}})->succeeded);
  EXPECT_TRUE(Commit({{{"/b", 0}}, {{"/b", value}}})->succeeded);
  EXPECT_THAT(Unreadable(), IsEmpty());
  Close();
  ASSERT_FALSE(Open().has_value());
  EXPECT_THAT(Listed(), ElementsAre("/a=first value", "/b=new"));
  Close();
  const Result<StoreCheck> check = CheckStoreFile(options_.directory);
  ASSERT_TRUE(check.ok());
  EXPECT_EQ(check->damaged.size(), 1u) << "until its history is compacted";
}

// A change whose key is damaged must not make the state before it current again.
TEST_F(DamageTest, ADamagedKeyNameHidesTheOldVersionOfTheObject) {
  ASSERT_FALSE(Open().has_value());
  Put("/claims/one", "free");
  Put("/claims/two", "free");
  Put("/claims/one", "allocated to pod x");
  Close();
  Sql("UPDATE revisions SET key = '/claims/oXe' WHERE value = CAST('allocated to pod x' AS BLOB)");
  ASSERT_FALSE(Open().has_value());
  EXPECT_THAT(Listed(), ElementsAre("/claims/two=free"));
  EXPECT_THAT(Unreadable(), ElementsAre("/claims/oXe", "/claims/one"));
}

TEST_F(DamageTest, WatchersThatMissedADamagedChangeHaveToListAgain) {
  ASSERT_FALSE(Open().has_value());
  const Revision before = Put("/a", "first value");
  Put("/a", "second value");
  const Revision after = Put("/a", "third value");
  Close();
  Overwrite("second value", "sEcond");
  ASSERT_FALSE(Open().has_value());
  EXPECT_THAT(Listed(), ElementsAre("/a=third value"));
  EXPECT_THAT(Unreadable(), IsEmpty()) << "only its history is damaged";
  std::optional<Error> closed;
  std::unique_ptr<Watch> watch;
  thread_.RunSync([&] {
    watch = store_->StartWatch({.prefix = "/", .after = before},
                               {.on_events = [](const auto&, Revision) {},
                                .on_closed = [&](Error why) { closed = std::move(why); }});
  });
  bool is_closed = false;
  while (!is_closed) thread_.RunSync([&] { is_closed = closed.has_value(); });
  EXPECT_EQ(closed->code, ErrorCode::kExpired);
  thread_.RunSync([&] {
    watch.reset();
    EXPECT_EQ(store_->applied_revision(), after);
  });
}

TEST_F(DamageTest, AnOlderFormatIsUpgradedAndProtectedFromThen) {
  ASSERT_FALSE(Open().has_value());
  Put("/a", "first value");
  Put("/gone", "x");
  Delete("/gone");
  Put("/b", "second value");
  Close();
  // As the release before wrote it.
  Sql("ALTER TABLE revisions DROP COLUMN checksum; UPDATE meta SET value = 1 WHERE name='format'");
  const Result<StoreCheck> old = CheckStoreFile(options_.directory);
  ASSERT_TRUE(old.ok()) << old.error().message;
  EXPECT_TRUE(old->ok());
  EXPECT_EQ(old->format, 1) << "a check must not change the file";
  ASSERT_FALSE(Open().has_value());
  EXPECT_THAT(Listed(), ElementsAre("/a=first value", "/b=second value"));
  Close();
  EXPECT_EQ(CheckStoreFile(options_.directory)->format, 2);
  Overwrite("first value", "fIrst");
  ASSERT_FALSE(Open().has_value());
  EXPECT_THAT(Unreadable(), ElementsAre("/a"));
}

TEST_F(DamageTest, ARunningStoreIsCheckedInSlices) {
  ASSERT_FALSE(Open().has_value());
  for (int i = 0; i < 30; ++i) Put("/k" + std::to_string(i), std::string(100'000, 'x'));
  Close();
  Overwrite("/k7xxxx", "/k7xxxy");
  ASSERT_FALSE(Open().has_value());
  VerifyResult total;
  int slices = 0;
  std::string from;
  do {
    std::optional<Result<VerifyResult>> slice;
    thread_.RunSync([&] {
      store_->Verify(from, [&](Result<VerifyResult> result) { slice = std::move(result); });
    });
    bool done = false;
    while (!done) thread_.RunSync([&] { done = slice.has_value(); });
    ASSERT_TRUE((*slice).ok());
    total.rows += (*slice)->rows;
    for (auto& damaged : (*slice)->damaged) total.damaged.push_back(damaged);
    from = (*slice)->next;
    ++slices;
  } while (!from.empty());
  EXPECT_EQ(total.rows, 30u);
  EXPECT_GT(slices, 2);
  ASSERT_EQ(total.damaged.size(), 1u);
  EXPECT_EQ(total.damaged[0].key, "/k7");
}

TEST_F(DamageTest, RepairBringsTheNewestIntactVersionBack) {
  ASSERT_FALSE(Open().has_value());
  Put("/a", "old value");
  Put("/b", "only value");
  Put("/c", "fine");
  const Revision newest = Put("/a", "new value");
  Close();
  Overwrite("new value", "nEw");
  Overwrite("only value", "oNly");
  ASSERT_FALSE(Open().has_value());
  EXPECT_THAT(Unreadable(), ElementsAre("/a", "/b"));
  Close();
  EXPECT_EQ(CheckStoreFile(options_.directory)->damaged.size(), 2u);
  const Result<StoreRepair> repair =
      RepairStoreFile(options_.directory, RealClock(), /*drop_damaged=*/false);
  ASSERT_TRUE(repair.ok()) << repair.error().message;
  EXPECT_THAT(repair->restored, ElementsAre("/a"));
  EXPECT_THAT(repair->lost, ElementsAre("/b"));
  EXPECT_FALSE(repair->may_have_lost_more);
  EXPECT_TRUE(RealFileSystem().Exists(repair->kept_as));
  ASSERT_FALSE(Open().has_value());
  EXPECT_THAT(Listed(), ElementsAre("/a=old value", "/c=fine"));
  EXPECT_THAT(Unreadable(), IsEmpty());
  EXPECT_GT(Range().entries[0].mod_revision, newest) << "old state under a new revision";
  EXPECT_GT(Range().revision, newest);
  Close();
  EXPECT_TRUE(CheckStoreFile(options_.directory)->ok());
}

TEST_F(DamageTest, RepairDropsDamagedKeysIfAsked) {
  ASSERT_FALSE(Open().has_value());
  Put("/a", "old value");
  Put("/a", "new value");
  Put("/c", "fine");
  Close();
  Overwrite("new value", "nEw");
  const Result<StoreRepair> repair =
      RepairStoreFile(options_.directory, RealClock(), /*drop_damaged=*/true);
  ASSERT_TRUE(repair.ok());
  EXPECT_THAT(repair->lost, ElementsAre("/a"));
  ASSERT_FALSE(Open().has_value());
  EXPECT_THAT(Listed(), ElementsAre("/c=fine"));
}

TEST_F(DamageTest, ACheckCountsRowsAndTheirBytes) {
  ASSERT_FALSE(Open().has_value());
  Put("/a", "123");
  Put("/bcd", "4567");
  Close();
  const Result<StoreCheck> check = CheckStoreFile(options_.directory);
  ASSERT_TRUE(check.ok()) << check.error().message;
  EXPECT_EQ(check->rows, 2u);
  EXPECT_EQ(check->bytes, 2u + 3u + 4u + 4u);
}

TEST_F(DamageTest, ALongCheckSaysHowFarItIs) {
  auto writer = StoreFileWriter::Open(options_.directory, RealClock(), false);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  const auto value = std::make_shared<const std::string>("v");
  for (Revision revision = 2; revision < 20'003; ++revision) {
    ASSERT_TRUE((*writer)->Add({std::to_string(revision), value, revision, revision}).ok());
  }
  ASSERT_TRUE((*writer)->Finish(30'000).ok());
  writer->reset();
  std::vector<std::uint64_t> rows;
  const auto check = CheckStoreFile(options_.directory,
                                    [&](const StoreCheck& so_far) { rows.push_back(so_far.rows); });
  ASSERT_TRUE(check.ok()) << check.error().message;
  EXPECT_EQ(check->rows, 20'001u);
  EXPECT_THAT(rows, ElementsAre(10'000u, 20'000u));
}

TEST_F(DamageTest, RepairOfAnIntactStoreDoesNothing) {
  ASSERT_FALSE(Open().has_value());
  Put("/a", "value");
  Close();
  const std::string content = *RealFileSystem().ReadFile(File());
  EXPECT_TRUE(RepairStoreFile(options_.directory, RealClock(), false)->was_intact);
  EXPECT_EQ(*RealFileSystem().ReadFile(File()), content);
}

TEST_F(DamageTest, RepairSavesWhatAnOverwrittenPartOfTheFileLeft) {
  for (const std::size_t damaged_at :
       {std::size_t{0}, std::size_t{16384} * 3, std::size_t{50'000}}) {
    SCOPED_TRACE("at " + std::to_string(damaged_at));
    ASSERT_FALSE(Open().has_value());
    for (int i = 0; i < 400; ++i) {
      // Large values continue on pages of their own.
      Put("/k" + std::to_string(i), std::string(i % 50 == 0 ? 60'000 : 900, 'x'));
    }
    for (int i = 0; i < 400; i += 10) Delete("/k" + std::to_string(i));
    const Revision newest = Put("/last", "value");
    Close();
    std::string content = *RealFileSystem().ReadFile(File());
    for (std::size_t i = damaged_at; i < damaged_at + 20'000; ++i) content[i] = '\x5a';
    ASSERT_TRUE(RealFileSystem().WriteFile(File(), content, 0600).ok());
    ASSERT_TRUE(Open().has_value()) << "the damage was not noticed";
    const Result<StoreRepair> repair = RepairStoreFile(options_.directory, RealClock(), false);
    ASSERT_TRUE(repair.ok()) << repair.error().message;
    EXPECT_TRUE(repair->may_have_lost_more);
    EXPECT_GT(repair->objects, 300u);
    ASSERT_FALSE(Open().has_value());
    EXPECT_GT(Range().entries.size(), 300u);
    EXPECT_GE(Range().revision, newest);
    for (const Entry& entry : Range().entries) {
      if (entry.key == "/last") continue;
      EXPECT_TRUE(entry.value->size() == 900 || entry.value->size() == 60'000) << entry.key;
    }
    Close();
    ASSERT_TRUE(RealFileSystem().RemoveTree(options_.directory).ok());
    ASSERT_TRUE(RealFileSystem().MakeDirectories(options_.directory, 0700).ok());
  }
}

TEST_F(DamageTest, RepairReadsTheLogOfACrashedProcess) {
  ASSERT_FALSE(Open().has_value());
  for (int i = 0; i < 50; ++i) Put("/k" + std::to_string(i), "value");
  // As a crash would leave it.
  const std::string copy = File("crashed");
  ASSERT_TRUE(RealFileSystem().MakeDirectories(copy, 0700).ok());
  std::string file = *RealFileSystem().ReadFile(File());
  ASSERT_TRUE(RealFileSystem()
                  .WriteFile(JoinPath(copy, "store.db-wal"),
                             *RealFileSystem().ReadFile(File("store.db-wal")), 0600)
                  .ok());
  for (std::size_t i = 0; i < 100; ++i) file[i] = 'Z';
  ASSERT_TRUE(RealFileSystem().WriteFile(JoinPath(copy, "store.db"), file, 0600).ok());
  const Result<StoreRepair> repair = RepairStoreFile(copy, RealClock(), false);
  ASSERT_TRUE(repair.ok()) << repair.error().message;
  EXPECT_EQ(repair->objects, 50u);
}

TEST_F(DamageTest, AStoreInUseIsNeitherCheckedNorRepairedAsAFile) {
  ASSERT_FALSE(Open().has_value());
  const Result<StoreCheck> check = CheckStoreFile(options_.directory);
  ASSERT_FALSE(check.ok());
  EXPECT_THAT(check.error().message, HasSubstr("is in use by another drakkar"));
  EXPECT_FALSE(RepairStoreFile(options_.directory, RealClock(), false).ok());
}

TEST_F(DamageTest, AnInterruptedSwapIsNotMistakenForANewStore) {
  ASSERT_FALSE(Open().has_value());
  Put("/a", "value");
  Close();
  ASSERT_TRUE(RealFileSystem().Rename(File(), File("store.db.old-1")).ok());
  const std::optional<Error> error = Open();
  ASSERT_TRUE(error.has_value());
  EXPECT_THAT(error->message, HasSubstr("a repair or restore was interrupted; rename "));
  EXPECT_FALSE(RealFileSystem().Exists(File()));
}

TEST_F(DamageTest, ARestoredStoreKeepsRevisionsAndContinuesBeyondThem) {
  {
    auto writer = StoreFileWriter::Open(options_.directory, RealClock(), /*replace=*/false);
    ASSERT_TRUE(writer.ok());
    const auto value = std::make_shared<const std::string>("v");
    ASSERT_TRUE((*writer)->Add({"/b", value, 3, 9}).ok());
    ASSERT_TRUE((*writer)->Add({"/a", value, 3, 7}).ok());
    ASSERT_TRUE((*writer)->Add({"/c", value, 9, 9}).ok());
    ASSERT_EQ(*(*writer)->Finish(10 + kRevisionLeap), "");
  }
  ASSERT_FALSE(Open().has_value());
  const RangeResult range = Range();
  ASSERT_EQ(range.entries.size(), 3u);
  EXPECT_EQ(range.entries[0].mod_revision, 7);
  EXPECT_EQ(range.entries[1].create_revision, 3);
  EXPECT_EQ(range.entries[2].mod_revision, 9);
  EXPECT_EQ(range.revision, 10 + kRevisionLeap);
  EXPECT_EQ(Put("/d", "new"), 11 + kRevisionLeap);
  Close();
  auto again = StoreFileWriter::Open(options_.directory, RealClock(), /*replace=*/false);
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().message, HasSubstr("use --force to replace it"));
}

}  // namespace
}  // namespace drakkar::storage
