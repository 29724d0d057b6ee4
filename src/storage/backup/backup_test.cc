#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace drakkar::storage
