// The file itself; the store's tests have what a server makes of it.
#include "storage/sqlite/database.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/env/file_system.h"

namespace drakkar::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kLogBytes = std::size_t{1} << 20;

Row MakeRow(Revision revision, const char* key, const char* value) {
  return {MakeRowId(revision, 0), revision, key,
          value == nullptr ? nullptr : std::make_shared<const std::string>(value)};
}

class DatabaseTest : public ::testing::Test {
 protected:
  DatabaseTest() {
    char pattern[] = "/tmp/drakkar-database-XXXXXX";
    directory_ = ::mkdtemp(pattern);
  }
  ~DatabaseTest() override {
    database_.reset();
    EXPECT_TRUE(RealFileSystem().RemoveTree(directory_).ok());
  }
  std::string Path(std::string_view name = "store.db") { return JoinPath(directory_, name); }
  std::string Open(bool read_only = false) {
    database_.reset();
    Result<std::unique_ptr<Database>> opened =
        Database::Open({.directory = directory_, .log_bytes = kLogBytes, .read_only = read_only});
    if (!opened.ok()) return opened.error().message;
    database_ = std::move(*opened);
    return "ok";
  }
  void Write(std::vector<Row> rows) {
    RowBatch batch;
    batch.rows = std::move(rows);
    ASSERT_TRUE(database_->WriteGroup({std::move(batch)}).ok());
  }
  void Sql(const std::string& statement) {
    database_.reset();
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open(Path().c_str(), &connection), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(connection, statement.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(connection);
    sqlite3_close(connection);
  }
  std::vector<std::string> Loaded(RowId after = 0, std::size_t limit = 100) {
    std::vector<std::string> rows;
    const Result<void> loaded = database_->Load(
        [&](Row row) {
          rows.push_back(row.key +
                         (row.damaged            ? "!"
                          : row.value == nullptr ? "-"
                                                 : "=" + *row.value) +
                         "@" + std::to_string(RowRevision(row.id)));
          return rows.size() < limit;
        },
        after);
    if (!loaded.ok()) rows.push_back(loaded.error().message);
    return rows;
  }

  std::string directory_;
  std::unique_ptr<Database> database_;
};

TEST_F(DatabaseTest, RowsAreReadInOrderFromWhereAndAsLongAsWanted) {
  ASSERT_EQ(Open(), "ok");
  EXPECT_EQ(database_->format(), 2);
  EXPECT_EQ(database_->compacted(), 0);
  Write({MakeRow(3, "b", "2"), MakeRow(2, "a", "1"), MakeRow(4, "a", nullptr)});
  EXPECT_THAT(Loaded(), ElementsAre("a=1@2", "b=2@3", "a-@4"));
  EXPECT_THAT(Loaded(MakeRowId(2, 0)), ElementsAre("b=2@3", "a-@4"));
  EXPECT_THAT(Loaded(0, 2), ElementsAre("a=1@2", "b=2@3"));
  EXPECT_TRUE(database_->CheckStructure().ok());
}

TEST_F(DatabaseTest, ValuesAreReadByRow) {
  ASSERT_EQ(Open(), "ok");
  Write({MakeRow(2, "a", "1"), MakeRow(3, "a", nullptr), MakeRow(4, "b", "")});
  const Result<std::vector<Bytes>> values =
      database_->Read({MakeRowId(4, 0), MakeRowId(3, 0), MakeRowId(2, 0)});
  ASSERT_TRUE(values.ok()) << values.error().message;
  ASSERT_EQ(values->size(), 3u);
  EXPECT_EQ(*(*values)[0], "");
  EXPECT_EQ((*values)[1], nullptr) << "a deletion";
  EXPECT_EQ(*(*values)[2], "1");
  const Result<std::vector<Bytes>> missing = database_->Read({MakeRowId(2, 0), MakeRowId(9, 0)});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kDataLoss);
  EXPECT_THAT(missing.error().message,
              HasSubstr("row " + std::to_string(MakeRowId(9, 0)) + " is missing"));
  EXPECT_TRUE(database_->Read({MakeRowId(2, 0)}).ok()) << "an error leaves nothing behind";
}

TEST_F(DatabaseTest, AValueThatDoesNotMatchItsChecksumIsNotReturned) {
  ASSERT_EQ(Open(), "ok");
  Write({MakeRow(2, "a", "1"), MakeRow(3, "b", "2")});
  Sql("UPDATE revisions SET value = x'39' WHERE key = 'b'");
  ASSERT_EQ(Open(), "ok");
  const Result<std::vector<Bytes>> values = database_->Read({MakeRowId(3, 0)});
  ASSERT_FALSE(values.ok());
  EXPECT_EQ(values.error().code, ErrorCode::kDataLoss);
  EXPECT_THAT(values.error().message, HasSubstr("does not match its checksum"));
  EXPECT_THAT(Loaded(), ElementsAre("a=1@2", "b!@3"));
}

TEST_F(DatabaseTest, ImpossibleRowsAreDamaged) {
  for (const char* change : {"created = 0", "created = 4", "key = ''", "checksum = 'text'",
                             "checksum = NULL", "checksum = checksum + 1"}) {
    SCOPED_TRACE(change);
    ASSERT_EQ(Open(), "ok");
    Write({MakeRow(3, "b", "2")});
    Sql(std::string("UPDATE revisions SET ") + change);
    ASSERT_EQ(Open(), "ok");
    const std::vector<std::string> rows = Loaded();
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_THAT(rows[0], HasSubstr("!@3"));
    Sql("DELETE FROM revisions");
  }
  ASSERT_EQ(Open(), "ok");
  Sql("INSERT INTO revisions VALUES (" + std::to_string(MakeRowId(kMaxRevision + 1, 0)) +
      ", 1, 'k', NULL, 0)");
  ASSERT_EQ(Open(), "ok");
  EXPECT_THAT(Loaded(), ElementsAre(HasSubstr("makes no sense")));
}

TEST_F(DatabaseTest, RowsAreRemovedAndTheCompactedRevisionKeptTogether) {
  ASSERT_EQ(Open(), "ok");
  RowBatch first;
  first.rows = {MakeRow(2, "a", "1"), MakeRow(3, "a", "2"), MakeRow(4, "a", "3")};
  RowBatch second;
  second.removed = {MakeRowId(2, 0), MakeRowId(3, 0)};
  second.compacted = 4;
  RowBatch third;  // leaves the compacted revision alone
  third.rows = {MakeRow(5, "b", "1")};
  ASSERT_TRUE(database_->WriteGroup({std::move(first), std::move(second), std::move(third)}).ok());
  EXPECT_EQ(database_->syncs() > 0, true);
  ASSERT_EQ(Open(), "ok");
  EXPECT_THAT(Loaded(), ElementsAre("a=3@4", "b=1@5"));
  EXPECT_EQ(database_->compacted(), 4);
}

TEST_F(DatabaseTest, AGroupThatFailsLeavesNothing) {
  ASSERT_EQ(Open(), "ok");
  Write({MakeRow(2, "a", "1")});
  RowBatch good;
  good.rows = {MakeRow(3, "b", "1")};
  RowBatch twice;
  twice.rows = {MakeRow(2, "a", "again")};
  EXPECT_FALSE(database_->WriteGroup({std::move(good), std::move(twice)}).ok());
  EXPECT_THAT(Loaded(), ElementsAre("a=1@2"));
}

TEST_F(DatabaseTest, AMetaTableThatIsIncompleteIsDamage) {
  for (const char* change :
       {"DELETE FROM meta WHERE name = 'format'", "UPDATE meta SET value = 0 WHERE name = 'format'",
        "UPDATE meta SET value = -1 WHERE name = 'compacted'"}) {
    ASSERT_EQ(Open(), "ok");
    Sql(change);
    EXPECT_THAT(Open(), HasSubstr("its meta table is incomplete")) << change;
    ASSERT_TRUE(RealFileSystem().Remove(Path()).ok());
  }
  ASSERT_EQ(Open(), "ok");
  Sql("UPDATE meta SET value = 3 WHERE name = 'format'");
  EXPECT_THAT(Open(), HasSubstr("has format 3, this drakkar reads up to 2"));
}

TEST_F(DatabaseTest, ReadingCreatesAndChangesNothing) {
  EXPECT_THAT(Open(/*read_only=*/true), HasSubstr("there is no store at"));
  EXPECT_FALSE(RealFileSystem().Exists(Path()));
  ASSERT_EQ(Open(), "ok");
  Write({MakeRow(2, "a", "1")});
  database_.reset();
  ASSERT_EQ(Open(/*read_only=*/true), "ok");
  EXPECT_THAT(Loaded(), ElementsAre("a=1@2"));
}

TEST_F(DatabaseTest, OnlyTheOwnerReadsTheFile) {
  ASSERT_EQ(Open(), "ok");
  EXPECT_EQ(RealFileSystem().Stat(Path())->mode & 0777u, 0600u) << "it holds Secrets";
}

TEST_F(DatabaseTest, AFileThatWasReplacedIsNoticedAfterAWrite) {
  ASSERT_EQ(Open(), "ok");
  ASSERT_TRUE(RealFileSystem().Rename(Path(), Path("moved")).ok());
  RowBatch batch;
  batch.rows = {MakeRow(2, "a", "1")};
  Result<void> written = database_->WriteGroup({std::move(batch)});
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().message, HasSubstr("was deleted or replaced while it was in use"));
  ASSERT_TRUE(RealFileSystem().WriteFile(Path(), "another", 0600).ok());
  RowBatch more;
  more.rows = {MakeRow(3, "a", "1")};
  written = database_->WriteGroup({std::move(more)});
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().message, HasSubstr("was deleted or replaced"));
}

TEST_F(DatabaseTest, TheLogHasItsSpaceBeforeItIsWritten) {
  const int probe = ::open(Path("probe").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const int reserved = ::fallocate(probe, FALLOC_FL_KEEP_SIZE, 0, kLogBytes);
  ::close(probe);
  if (reserved != 0) GTEST_SKIP() << "this file system cannot reserve space";
  ASSERT_EQ(Open(), "ok");
  struct stat log {};
  ASSERT_EQ(::stat(Path("store.db-wal").c_str(), &log), 0);
  EXPECT_LT(log.st_size, static_cast<off_t>(kLogBytes));
  EXPECT_GE(log.st_blocks * 512, static_cast<off_t>(kLogBytes));
}

TEST_F(DatabaseTest, LeftoversOfAnUnfinishedCreationAreRemoved) {
  for (const char* name :
       {"store.db.new", "store.db.new-wal", "store.db.new-shm", "store.db.new-journal"}) {
    ASSERT_TRUE(RealFileSystem().WriteFile(Path(name), "half", 0600).ok());
  }
  ASSERT_EQ(Open(), "ok");
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    EXPECT_FALSE(RealFileSystem().Exists(Path("store.db.new") + suffix)) << suffix;
  }
}

TEST_F(DatabaseTest, TheLogIsCopiedBeforeItExceedsTwiceItsLimit) {
  ASSERT_EQ(Open(), "ok");
  const std::string value(100'000, 'v');
  for (Revision revision = 2; revision < 60; ++revision) {
    Write({MakeRow(revision, "k", value.c_str())});
    ASSERT_TRUE(database_->TendLog().ok());
    struct stat log {};
    ASSERT_EQ(::stat(Path("store.db-wal").c_str(), &log), 0);
    ASSERT_LE(log.st_size, static_cast<off_t>(2 * kLogBytes + 300'000)) << revision;
  }
  struct stat file {};
  ASSERT_EQ(::stat(Path().c_str(), &file), 0);
  EXPECT_GT(file.st_size, 3'000'000) << "what was in the log";
}

}  // namespace
}  // namespace drakkar::storage
