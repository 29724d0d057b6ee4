// Salvage reads SQLite's files byte by byte, so SQLite itself writes the files of these tests.
#include "storage/sqlite/salvage.h"

#include <gmock/gmock.h>
#include <sqlite3.h>

#include <array>
#include <cstdlib>
#include <map>
#include <optional>

#include "base/env/file_system.h"
#include "storage/sqlite/row_checksum.h"

namespace drakkar::storage {
namespace {

constexpr char kColumns[] =
    "id INTEGER PRIMARY KEY, created INTEGER NOT NULL, key TEXT NOT NULL, value BLOB, checksum "
    "INTEGER";
// Takes any type, to write what a store never has.
constexpr char kLooseColumns[] = "id INTEGER PRIMARY KEY, created, key, value, checksum";
constexpr std::size_t kLogHeaderBytes = 32;
constexpr std::size_t kFrameHeaderBytes = 24;

struct Wanted {
  Revision created = 0;
  std::string key;
  std::optional<std::string> value;
  bool operator==(const Wanted&) const = default;
};
using Rows = std::map<RowId, Wanted>;

void PutBig(std::string& bytes, std::size_t at, std::uint32_t number) {
  for (int i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(number >> (24 - 8 * i) & 0xff);
}

std::uint32_t GetBig(const std::string& bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (int i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

class SalvageTest : public ::testing::Test {
 protected:
  SalvageTest() {
    char pattern[] = "/tmp/drakkar-salvage-XXXXXX";
    directory_ = ::mkdtemp(pattern);
  }
  ~SalvageTest() override {
    sqlite3_close(connection_);
    EXPECT_TRUE(RealFileSystem().RemoveTree(directory_).ok());
  }

  std::string Path() const { return JoinPath(directory_, "store.db"); }
  void Open(int page_bytes, const std::string& columns = kColumns) {
    sqlite3_close(connection_);
    EXPECT_TRUE(RealFileSystem().RemoveTree(directory_).ok());
    EXPECT_TRUE(RealFileSystem().MakeDirectories(directory_, 0700).ok());
    ASSERT_EQ(sqlite3_open(Path().c_str(), &connection_), SQLITE_OK);
    rows_.clear();
    Sql("PRAGMA page_size=" + std::to_string(page_bytes));
    Sql("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; PRAGMA secure_delete=OFF;"
        "PRAGMA synchronous=OFF; BEGIN;"
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
        "INSERT INTO meta VALUES ('format', 2), ('compacted', 0);"
        "CREATE TABLE revisions (" +
        columns + "); COMMIT;");
  }
  void Sql(const std::string& statement) {
    char* message = nullptr;
    ASSERT_EQ(sqlite3_exec(connection_, statement.c_str(), nullptr, nullptr, &message), SQLITE_OK)
        << message;
  }
  int Number(const std::string& query) {
    int number = -1;
    sqlite3_exec(
        connection_, query.c_str(),
        [](void* out, int, char** values, char**) {
          *static_cast<int*>(out) = std::atoi(values[0]);
          return 0;
        },
        &number, nullptr);
    return number;
  }
  void Insert(RowId id, Revision created, const std::string& key,
              const std::optional<std::string>& value) {
    sqlite3_stmt* insert = nullptr;
    ASSERT_EQ(sqlite3_prepare_v2(connection_, "INSERT INTO revisions VALUES (?, ?, ?, ?, ?)", -1,
                                 &insert, nullptr),
              SQLITE_OK);
    sqlite3_bind_int64(insert, 1, id);
    sqlite3_bind_int64(insert, 2, created);
    sqlite3_bind_text(insert, 3, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
    if (value) {
      sqlite3_bind_blob(insert, 4, value->data(), static_cast<int>(value->size()), SQLITE_STATIC);
    }
    sqlite3_bind_int64(insert, 5,
                       RowChecksum(id, created, key,
                                   value ? std::optional<std::string_view>(*value) : std::nullopt));
    EXPECT_EQ(sqlite3_step(insert), SQLITE_DONE);
    sqlite3_finalize(insert);
    rows_[id] = {created, key, value};
  }
  // One commit with some rows.
  void InsertSome(Revision first, int count, std::size_t bytes) {
    Sql("BEGIN");
    for (Revision revision = first; revision < first + count; ++revision) {
      Insert(MakeRowId(revision, 0), revision, "/key" + std::to_string(revision),
             std::string(bytes, static_cast<char>('a' + revision % 26)));
    }
    Sql("COMMIT");
  }
  void Checkpoint(int mode = SQLITE_CHECKPOINT_TRUNCATE) {
    EXPECT_EQ(sqlite3_wal_checkpoint_v2(connection_, nullptr, mode, nullptr, nullptr), SQLITE_OK);
  }
  std::string File() { return *RealFileSystem().ReadFile(Path()); }
  std::string Log() { return *RealFileSystem().ReadFile(Path() + "-wal"); }

  Rows Salvage(std::string_view file, std::string_view log) {
    Rows rows;
    salvaged_ = SalvageRows(file, log, [&](Row row) {
      std::optional<std::string> value;
      if (row.value != nullptr) value = *row.value;
      EXPECT_FALSE(row.damaged);
      rows[row.id] = {row.create_revision, row.key, value};
    });
    return rows;
  }
  // Whether every row is one that was written.
  bool AreReal(const Rows& rows) {
    for (const auto& [id, row] : rows) {
      const auto found = rows_.find(id);
      if (found == rows_.end() || !(found->second == row)) return false;
    }
    return true;
  }

  std::string directory_;
  sqlite3* connection_ = nullptr;
  Rows rows_;
  Salvaged salvaged_;
};

TEST_F(SalvageTest, RowsOfEverySizeComeBackFromPagesOfEverySize) {
  for (const std::size_t page :
       {std::size_t{512}, std::size_t{1024}, std::size_t{16384}, std::size_t{65536}}) {
    SCOPED_TRACE(page);
    Open(static_cast<int>(page));
    const std::string empty_file = File();
    std::vector<std::size_t> sizes = {0, 1, 2, 63, 64, 127, 128, 300, 3 * page, 3 * page + 1};
    for (std::size_t size = page - 80; size < page + 4; ++size) sizes.push_back(size);
    // Around what fills whole pages of a continuation.
    for (std::size_t size = 3 * (page - 4) - 40; size < 3 * (page - 4) + 4; size += 3) {
      sizes.push_back(size);
    }
    Sql("BEGIN");
    Revision revision = 2;
    for (const std::size_t size : sizes) {
      ++revision;
      Insert(MakeRowId(revision, size % 7), revision - 1, "/k" + std::to_string(size),
             std::string(size, static_cast<char>('a' + size % 26)));
    }
    Insert(MakeRowId(revision, 7), 3, "/k3", std::nullopt);
    Sql("COMMIT");
    const std::string log = Log();
    Checkpoint();
    const std::string file = File();
    EXPECT_TRUE(Salvage(file, "") == rows_);
    EXPECT_EQ(salvaged_.damaged_pages, 0u);
    EXPECT_EQ(salvaged_.pages, file.size() / page);
    EXPECT_TRUE(Salvage(empty_file, log) == rows_) << "from the log";
    EXPECT_EQ(salvaged_.damaged_pages, 0u);
    EXPECT_TRUE(Salvage("", log) == rows_) << "the log knows the size of a page";
  }
}

TEST_F(SalvageTest, NumbersOfEveryWidthComeBack) {
  Open(1024);
  const std::vector<Revision> numbers = {1,
                                         2,
                                         127,
                                         128,
                                         255,
                                         32'767,
                                         32'768,
                                         8'388'607,
                                         8'388'608,
                                         2'147'483'647,
                                         2'147'483'648,
                                         (Revision{1} << 40) + 3,
                                         (Revision{1} << 46) + 1};
  for (const Revision created : numbers) {
    Insert(MakeRowId(created, 0), created, "/a" + std::to_string(created), "value");
    Insert(MakeRowId(created, 65'535), 1, "/b" + std::to_string(created), std::nullopt);
  }
  EXPECT_TRUE(Salvage(File(), Log()) == rows_);
  EXPECT_EQ(salvaged_.damaged_pages, 0u);
}

TEST_F(SalvageTest, WhatIsNoRowOfAStoreIsLeftOut) {
  const std::string id = std::to_string(MakeRowId(5, 0));
  for (const std::string& values : {
           std::string("0, '/k', x'61', 1"),  // created before the first revision
           std::string("6, '/k', x'61', 1"),  // created after its own revision
           std::string("NULL, '/k', x'61', 1"),
           std::string("1.5, '/k', x'61', 1"),
           std::string("'x', '/k', x'61', 1"),
           std::string("5, '', x'61', 1"),
           std::string("5, NULL, x'61', 1"),
           std::string("5, 7, x'61', 1"),
           std::string("5, '/k', 7, 1"),
           std::string("5, '/k', x'61', 1"),  // the wrong checksum
           std::string("5, '/k', x'61', NULL"),
           std::string("5, '/k', x'61', 'text'"),
       }) {
    SCOPED_TRACE(values);
    Open(1024, kLooseColumns);
    Insert(MakeRowId(3, 0), 3, "/good", "value");
    Sql("INSERT INTO revisions VALUES (" + id + ", " + values + ")");
    EXPECT_TRUE(Salvage(File(), Log()) == rows_);
    EXPECT_EQ(salvaged_.damaged_pages, 1u);
  }
  // The same row as it should be.
  Open(1024, kLooseColumns);
  Sql("INSERT INTO revisions VALUES (" + id + ", 5, '/k', x'61', " +
      std::to_string(RowChecksum(MakeRowId(5, 0), 5, "/k", "a")) + ")");
  EXPECT_EQ(Salvage(File(), Log()).size(), 1u);
  EXPECT_EQ(salvaged_.damaged_pages, 0u);
}

TEST_F(SalvageTest, ARowHasFourOrFiveColumns) {
  for (const auto& [more, count] :
       {std::pair("", 0), std::pair(", value", 1), std::pair(", value, checksum, more", 0)}) {
    SCOPED_TRACE(more);
    Open(1024, std::string("id INTEGER PRIMARY KEY, created, key") + more);
    const std::string id = std::to_string(MakeRowId(5, 0));
    const std::string values[] = {"", ", x'61'", ", x'61', 1, 2"};
    for (const std::string& each : values) {
      if (Number("SELECT count(*) FROM pragma_table_info('revisions')") !=
          3 + std::count(each.begin(), each.end(), ',')) {
        continue;
      }
      Sql("INSERT INTO revisions VALUES (" + id + ", 5, '/k'" + each + ")");
    }
    const Rows rows = Salvage(File(), Log());
    EXPECT_EQ(rows.size(), static_cast<std::size_t>(count));
    EXPECT_EQ(salvaged_.damaged_pages, count == 0 ? 1u : 0u);
    if (count == 1) {
      EXPECT_EQ(rows.begin()->second, (Wanted{5, "/k", "a"})) << "a row of format 1";
    }
  }
}

TEST_F(SalvageTest, TheCompactedRevisionIsFound) {
  Open(1024);
  InsertSome(2, 3, 10);
  Salvage(File(), Log());
  EXPECT_EQ(salvaged_.compacted, 0);
  Sql("UPDATE meta SET value = 77777 WHERE name = 'compacted'");
  Salvage(File(), Log());
  EXPECT_EQ(salvaged_.compacted, 77'777);
}

TEST_F(SalvageTest, WhatWasDeletedStaysDeleted) {
  Open(512);
  InsertSome(2, 400, 300);
  Checkpoint();
  Sql("DELETE FROM revisions WHERE id > " + std::to_string(MakeRowId(20, 0)));
  rows_.erase(rows_.upper_bound(MakeRowId(20, 0)), rows_.end());
  const int free = Number("PRAGMA freelist_count");
  ASSERT_GT(free, 200) << "more than one page lists the free ones";
  EXPECT_TRUE(Salvage(File(), Log()) == rows_);
  Checkpoint();
  const std::string file = File();
  EXPECT_TRUE(Salvage(file, "") == rows_);
  EXPECT_EQ(salvaged_.pages + free, file.size() / 512);
  EXPECT_EQ(salvaged_.damaged_pages, 0u);
}

TEST_F(SalvageTest, ALogCountsUpToItsLastWholeCommit) {
  Open(512);
  InsertSome(2, 10, 50);
  Checkpoint();
  std::vector<std::pair<std::size_t, Rows>> commits = {{kLogHeaderBytes, rows_}};
  for (int i = 0; i < 3; ++i) {
    InsertSome(100 + 10 * i, 5, 200);
    commits.emplace_back(Log().size(), rows_);
  }
  const std::string file = File();
  const std::string log = Log();
  const auto expected = [&](std::size_t size) -> const Rows& {
    const Rows* rows = &commits[0].second;
    for (const auto& [end, there] : commits) {
      if (end <= size) rows = &there;
    }
    return *rows;
  };
  constexpr std::size_t kFrame = kFrameHeaderBytes + 512;
  for (std::size_t size = 0; size <= log.size(); size += size % 97 == 0 ? 1 : 7) {
    EXPECT_TRUE(Salvage(file, log.substr(0, size)) == expected(size)) << size;
  }
  EXPECT_TRUE(Salvage(file, log) == rows_);
  // A damaged byte ends the log before the frame that has it.
  for (std::size_t at = 0; at < log.size(); at += 13) {
    std::string damaged = log;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    const std::size_t frame =
        at < kLogHeaderBytes ? 0 : kLogHeaderBytes + (at - kLogHeaderBytes) / kFrame * kFrame;
    // The checksum of the header itself is not needed: that of the frames continues it.
    if (at >= 24 && at < kLogHeaderBytes) continue;
    EXPECT_TRUE(Salvage(file, damaged) == expected(frame)) << at;
  }
}

TEST_F(SalvageTest, FramesThatAnOlderLogLeftDoNotCount) {
  Open(512);
  InsertSome(2, 50, 200);
  Checkpoint(SQLITE_CHECKPOINT_RESTART);
  Sql("DELETE FROM revisions WHERE id >= " + std::to_string(MakeRowId(40, 0)));
  rows_.erase(rows_.lower_bound(MakeRowId(40, 0)), rows_.end());
  ASSERT_GT(Log().size(), 25u * 512) << "the old frames are still there";
  EXPECT_TRUE(Salvage(File(), Log()) == rows_);
}

TEST_F(SalvageTest, ALogFromAMachineOfTheOtherByteOrderIsRead) {
  Open(512);
  Checkpoint();
  InsertSome(2, 20, 100);
  const std::string file = File();
  std::string log = Log();
  log[3] = static_cast<char>(log[3] ^ 1);
  std::array<std::uint32_t, 2> sum{0, 0};
  const bool is_big = (log[3] & 1) != 0;
  const auto add = [&](std::size_t from, std::size_t size) {
    for (std::size_t at = from; at < from + size; at += 8) {
      const std::uint32_t first = GetBig(log, at);
      const std::uint32_t second = GetBig(log, at + 4);
      sum[0] += (is_big ? first : __builtin_bswap32(first)) + sum[1];
      sum[1] += (is_big ? second : __builtin_bswap32(second)) + sum[0];
    }
  };
  add(0, 24);
  for (std::size_t at = kLogHeaderBytes; at < log.size(); at += kFrameHeaderBytes + 512) {
    add(at, 8);
    add(at + kFrameHeaderBytes, 512);
    PutBig(log, at + 16, sum[0]);
    PutBig(log, at + 20, sum[1]);
  }
  EXPECT_TRUE(Salvage(file, log) == rows_);
  log[3] = static_cast<char>(log[3] ^ 1);
  EXPECT_TRUE(Salvage(file, log).empty()) << "the checksums are of the other order";
}

TEST_F(SalvageTest, ALogOfAnotherPageSizeDoesNotCount) {
  Open(1024);
  InsertSome(2, 20, 100);
  const std::string log = Log();
  Open(512);
  InsertSome(2, 5, 100);
  Checkpoint();
  EXPECT_TRUE(Salvage(File(), log) == rows_);
}

TEST_F(SalvageTest, DamageAnywhereCostsOnlyRowsAndMakesNoneUp) {
  Open(512);
  for (Revision revision = 2; revision < 40; ++revision) {
    Insert(MakeRowId(revision, 0), revision, "/key" + std::to_string(revision),
           std::string(static_cast<std::size_t>(revision) * 37 % 700, 'v'));
  }
  Sql("DELETE FROM revisions WHERE id < " + std::to_string(MakeRowId(12, 0)));
  rows_.erase(rows_.begin(), rows_.lower_bound(MakeRowId(12, 0)));
  Checkpoint();
  const std::string intact = File();
  const Rows all = Salvage(intact, "");
  ASSERT_TRUE(all == rows_);
  // Rows that were deleted may come back if what lists them as free is damaged.
  for (Revision revision = 2; revision < 12; ++revision) {
    rows_[MakeRowId(revision, 0)] = {
        revision, "/key" + std::to_string(revision),
        std::string(static_cast<std::size_t>(revision) * 37 % 700, 'v')};
  }
  for (std::size_t at = 0; at < intact.size(); ++at) {
    std::string damaged = intact;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xa5);
    const Rows found = Salvage(damaged, "");
    ASSERT_TRUE(AreReal(found)) << at;
    if (at < 100) continue;  // the size of a page, and what is free
    std::size_t lost = 0;
    for (const auto& [id, row] : all) lost += found.contains(id) ? 0 : 1;
    // Those of one page.
    ASSERT_LE(lost, 10u) << at;
    if (lost > 0 && at % 512 != 0) {
      ASSERT_GE(salvaged_.damaged_pages + (at % 512 < 8 ? 1 : 0), 1u) << at;
    }
  }
  for (std::size_t size = 0; size < intact.size(); size += 61) {
    ASSERT_TRUE(AreReal(Salvage(intact.substr(0, size), ""))) << size;
  }
}

TEST_F(SalvageTest, WithoutAHeaderPagesHaveTheSizeOfNewStores) {
  Open(16384);
  InsertSome(2, 100, 900);
  Checkpoint();
  std::string file = File();
  for (std::size_t i = 0; i < 100; ++i) file[i] = 'Z';
  EXPECT_TRUE(Salvage(file, "") == rows_);
  EXPECT_TRUE(Salvage(file.substr(0, 50), "").empty());
}

TEST_F(SalvageTest, AHeaderWithAnImpossiblePageSizeIsNotBelieved) {
  Open(16384);
  InsertSome(2, 100, 900);
  Checkpoint();
  for (const unsigned size : {0u, 2u, 256u, 511u, 1'000u, 16'383u}) {
    std::string file = File();
    file[16] = static_cast<char>(size >> 8);
    file[17] = static_cast<char>(size & 255);
    EXPECT_TRUE(Salvage(file, "") == rows_) << size;
  }
}

}  // namespace
}  // namespace drakkar::storage
