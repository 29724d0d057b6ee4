#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash/crc32.h"
#include "base/testing/memory_file_system.h"
#include "storage/backup/backup_file.h"

namespace drakkar::storage {
namespace {

using ::testing::HasSubstr;

Entry MakeEntry(const std::string& key, const std::string& value, Revision created = 2,
                Revision modified = 5) {
  return {key, std::make_shared<const std::string>(value), created, modified};
}

class BackupTest : public ::testing::Test {
 protected:
  BackupTest() { EXPECT_TRUE(files_.MakeDirectories("/d", 0700).ok()); }

  void Write(int entries) {
    BackupWriter writer(files_, "/d/backup");
    for (int i = 0; i < entries; ++i) {
      ASSERT_TRUE(writer.Add(MakeEntry("/k" + std::to_string(i), std::string(50, 'v'))).ok());
    }
    ASSERT_TRUE(writer.Finish(77).ok());
  }

  MemoryFileSystem files_;
};

TEST_F(BackupTest, WhatIsWrittenIsRead) {
  {
    BackupWriter writer(files_, "/d/backup");
    ASSERT_TRUE(writer.Add(MakeEntry("/a", "one", 2, 3)).ok());
    ASSERT_TRUE(writer.Add(MakeEntry("/b", std::string(3'000'000, 'x'), 4, 9)).ok());
    ASSERT_TRUE(writer.Add(MakeEntry("/c", "")).ok());
    EXPECT_FALSE(files_.Exists("/d/backup")) << "visible before it is complete";
    ASSERT_TRUE(writer.Finish(12).ok());
  }
  EXPECT_EQ(files_.Stat("/d/backup")->mode, 0600u) << "it holds Secrets";
  BackupReader reader(files_, "/d/backup");
  const Entry first = **reader.Next();
  EXPECT_EQ(first.key, "/a");
  EXPECT_EQ(*first.value, "one");
  EXPECT_EQ(first.create_revision, 2);
  EXPECT_EQ(first.mod_revision, 3);
  EXPECT_EQ((**reader.Next()).value->size(), 3'000'000u);
  EXPECT_EQ(*(**reader.Next()).value, "");
  EXPECT_FALSE((*reader.Next()).has_value());
  EXPECT_EQ(reader.end().revision, 12);
  EXPECT_EQ(reader.end().entries, 3u);
}

TEST_F(BackupTest, AnUnfinishedBackupLeavesNothingBehind) {
  {
    BackupWriter writer(files_, "/d/backup");
    ASSERT_TRUE(writer.Add(MakeEntry("/a", "one")).ok());
  }
  EXPECT_TRUE(files_.ListDirectory("/d")->empty());
}

TEST_F(BackupTest, EveryFlippedByteIsFound) {
  Write(3);
  const std::string intact = *files_.ReadFile("/d/backup");
  for (std::size_t at = 0; at < intact.size(); ++at) {
    std::string damaged = intact;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    ASSERT_TRUE(files_.WriteFile("/d/damaged", damaged, 0600).ok());
    EXPECT_FALSE(CheckBackup(files_, "/d/damaged").ok()) << at;
  }
}

TEST_F(BackupTest, EveryTruncationIsFound) {
  Write(3);
  const std::string intact = *files_.ReadFile("/d/backup");
  for (std::size_t size = 0; size < intact.size(); ++size) {
    ASSERT_TRUE(files_.WriteFile("/d/cut", intact.substr(0, size), 0600).ok());
    EXPECT_FALSE(CheckBackup(files_, "/d/cut").ok()) << size;
  }
}

TEST_F(BackupTest, AFileThatIsNoBackupIsNamed) {
  ASSERT_TRUE(files_.WriteFile("/d/x", "kind: Pod\nmetadata: {}\n", 0600).ok());
  EXPECT_EQ(CheckBackup(files_, "/d/x").error().message, "/d/x is not a backup of drakkar");
}

TEST(BackupPage, RoundTrips) {
  BackupPage page;
  page.entries = {MakeEntry("/a", "one"), MakeEntry("/b", "")};
  page.unreadable = {{"/x", 9, "row 5 is damaged"}};
  page.revision = 12;
  page.remaining = 99;
  page.more = true;
  const std::string bytes = EncodeBackupPage(page);
  const Result<BackupPage> read = DecodeBackupPage(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->entries.size(), 2u);
  EXPECT_EQ(read->unreadable[0].reason, "row 5 is damaged");
  EXPECT_EQ(read->remaining, 99u);
  EXPECT_TRUE(read->more);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Result<BackupPage> cut = DecodeBackupPage(std::string_view(bytes).substr(0, size));
    if (cut.ok()) {
      EXPECT_LT(cut->entries.size(), 2u);
    }
  }
}

TEST(VerifyResultFormat, RoundTripsAndNoticesTruncation) {
  VerifyResult slice;
  slice.rows = 3;
  slice.bytes = 77;
  slice.next = "/n";
  slice.damaged = {{"/x", 9, "damaged"}, {"/y", 10, "cut"}};
  const std::string bytes = EncodeVerifyResult(slice);
  const Result<VerifyResult> read = DecodeVerifyResult(bytes);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->rows, 3u);
  EXPECT_EQ(read->bytes, 77u);
  EXPECT_EQ(read->next, "/n");
  ASSERT_EQ(read->damaged.size(), 2u);
  EXPECT_EQ(read->damaged[0].key, "/x");
  EXPECT_EQ(read->damaged[1].mod_revision, 10);
  EXPECT_EQ(read->damaged[1].reason, "cut");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeVerifyResult(bytes.substr(0, size)).ok()) << size;
  }
  EXPECT_THAT(DecodeVerifyResult(EncodeBackupPage({})).error().message,
              HasSubstr("it is not a slice"));
  EXPECT_THAT(DecodeBackupPage(bytes).error().message, HasSubstr("it is not a page"));
}

// The bytes of an entry with these fields and the right checksum.
std::string Record(std::uint32_t key_bytes, std::uint32_t value_bytes, std::uint64_t created,
                   std::uint64_t modified, const std::string& rest) {
  std::string out = "E";
  const auto put = [&](std::uint64_t number, int bytes) {
    for (int i = 0; i < bytes; ++i) out += static_cast<char>((number >> (8 * i)) & 0xff);
  };
  put(key_bytes, 4);
  put(value_bytes, 4);
  put(created, 8);
  put(modified, 8);
  out += rest;
  put(Crc32(out), 4);
  return out;
}

TEST(BackupRecordFormat, AnEntryHasAKeyAndPossibleRevisions) {
  BackupRecord record;
  const auto decode = [&](const std::string& bytes) {
    const Result<std::size_t> size = DecodeBackupRecord(bytes, record);
    return size.ok() ? std::to_string(*size) : size.error().message;
  };
  const std::string good = Record(2, 3, 4, 5, "/kval");
  EXPECT_EQ(good, EncodeBackupEntry(MakeEntry("/k", "val", 4, 5)));
  EXPECT_EQ(decode(good), std::to_string(good.size()));
  ASSERT_TRUE(record.entry);
  EXPECT_EQ(record.entry->key, "/k");
  EXPECT_EQ(*record.entry->value, "val");
  EXPECT_EQ(record.entry->create_revision, 4);
  EXPECT_EQ(record.entry->mod_revision, 5);
  EXPECT_EQ(decode(good + "more"), std::to_string(good.size())) << "what follows is left";
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(decode(good.substr(0, size)), "0") << "more is needed";
    EXPECT_FALSE(record.entry) << size;
  }
  EXPECT_EQ(decode(Record(1, 0, 1, 1, "k")), "30");
  EXPECT_THAT(decode(Record(0, 0, 1, 1, "")), HasSubstr("impossible size"));
  EXPECT_THAT(decode(Record(1, 0, 0, 1, "k")), HasSubstr("impossible revision"));
  EXPECT_THAT(decode(Record(1, 0, 2, 1, "k")), HasSubstr("impossible revision"));
  EXPECT_THAT(decode("X"), HasSubstr("unknown type"));
  const std::string longest(kMaxBackupKeyBytes, 'k');
  EXPECT_EQ(decode(Record(kMaxBackupKeyBytes, 0, 1, 1, longest)),
            std::to_string(29 + kMaxBackupKeyBytes));
  EXPECT_THAT(decode(Record(kMaxBackupKeyBytes + 1, 0, 1, 1, longest + "k")),
              HasSubstr("impossible size"));
  EXPECT_EQ(decode(Record(1, kMaxBackupValueBytes, 1, 1, "k")), "0") << "the value follows";
  const std::string too_long = Record(1, kMaxBackupValueBytes + 1, 1, 1, "k");
  EXPECT_THAT(decode(too_long), HasSubstr("impossible size"));
  EXPECT_THAT(decode(too_long.substr(0, 25)), HasSubstr("impossible size")) << "the head says so";
}

TEST(BackupRecordFormat, TheEndHasTheCountTheRevisionAndADigest) {
  BackupRecord record;
  const std::string digest(32, 'd');
  const std::string bytes = EncodeBackupEnd({.entries = 3, .revision = 12}) + digest;
  const Result<std::size_t> size = DecodeBackupRecord(bytes + "rest", record);
  ASSERT_TRUE(size.ok());
  EXPECT_EQ(*size, bytes.size());
  EXPECT_FALSE(record.entry);
  ASSERT_TRUE(record.end);
  EXPECT_EQ(record.end->entries, 3u);
  EXPECT_EQ(record.end->revision, 12);
  EXPECT_EQ(record.sha256, digest);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_EQ(*DecodeBackupRecord(bytes.substr(0, cut), record), 0u) << cut;
  }
  BackupPage page;
  EXPECT_FALSE(DecodeBackupPage(EncodeBackupPage(page) + bytes).ok()) << "a page has no end";
}

TEST(BackupPage, ACountThatCannotBeTrueIsNotBelieved) {
  std::string bytes = EncodeBackupPage({});
  // The number of unreadable entries, which are missing.
  bytes.replace(bytes.size() - 4, 4, "\xff\xff\xff\xff");
  EXPECT_THAT(DecodeBackupPage(bytes).error().message, HasSubstr("a page is cut off"));
}

TEST_F(BackupTest, AnEmptyBackupIsOne) {
  Write(0);
  const Result<BackupEnd> end = CheckBackup(files_, "/d/backup");
  ASSERT_TRUE(end.ok()) << end.error().message;
  EXPECT_EQ(end->entries, 0u);
  EXPECT_EQ(end->revision, 77);
  EXPECT_EQ(files_.ListDirectory("/d")->size(), 1u);
}

TEST_F(BackupTest, ReadingStopsAtTheEnd) {
  Write(2);
  BackupReader reader(files_, "/d/backup");
  for (int i = 0; i < 2; ++i) EXPECT_TRUE((*reader.Next()).has_value());
  for (int i = 0; i < 3; ++i) {
    const Result<std::optional<Entry>> next = reader.Next();
    ASSERT_TRUE(next.ok()) << next.error().message;
    EXPECT_FALSE(next->has_value());
  }
}

TEST_F(BackupTest, TheWriterCountsWhatItWrote) {
  BackupWriter writer(files_, "/d/backup");
  EXPECT_EQ(writer.bytes(), 0u);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(writer.Add(MakeEntry("/k", "value")).ok());
  EXPECT_EQ(writer.entries(), 3u);
  const std::uint64_t bytes = writer.bytes();
  EXPECT_EQ(bytes, 17 + 3 * EncodeBackupEntry(MakeEntry("/k", "value")).size());
  ASSERT_TRUE(writer.Finish(7).ok());
  EXPECT_EQ(files_.Stat("/d/backup")->size_bytes, bytes + EncodeBackupEnd({3, 7}).size() + 32);
}

}  // namespace
}  // namespace drakkar::storage
