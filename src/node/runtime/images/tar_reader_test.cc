#include "node/runtime/images/tar_reader.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node/runtime/testing/tar_writer.h"

namespace drakkar::node {
namespace {

using ::testing::HasSubstr;

struct Read {
  std::vector<TarEntry> entries;
  std::vector<std::string> contents;
  std::optional<Error> error;
};

Read ReadAll(std::string_view archive) {
  auto source = MakeStringSource(archive);
  auto plain = MakeDecompressor(*source);
  TarReader reader(*plain);
  Read read;
  while (true) {
    auto entry = reader.Next();
    if (!entry.ok()) {
      read.error = entry.error();
      return read;
    }
    if (!*entry) return read;
    read.entries.push_back(**entry);
    std::string content;
    char buffer[7];  // small, so that pieces do not line up with blocks
    while (true) {
      auto got = reader.Read(buffer, sizeof(buffer));
      if (!got.ok()) {
        read.error = got.error();
        return read;
      }
      if (*got == 0) break;
      content.append(buffer, *got);
    }
    read.contents.push_back(content);
  }
}

TEST(TarReader, ReadsFilesDirectoriesAndLinks) {
  TarWriter tar;
  tar.Directory("etc/", 0700)
      .File("etc/a", "hello", 0640)
      .Symlink("etc/b", "a")
      .HardLink("etc/c", "etc/a");
  tar.File("empty", "").File("block", std::string(512, 'x'));
  const Read read = ReadAll(tar.Finish());
  ASSERT_FALSE(read.error) << read.error->message;
  ASSERT_EQ(read.entries.size(), 6u);
  EXPECT_EQ(read.entries[0].type, TarEntryType::kDirectory);
  EXPECT_EQ(read.entries[0].mode, 0700u);
  EXPECT_EQ(read.contents[1], "hello");
  EXPECT_EQ(read.entries[1].modified_seconds, 1700000000);
  EXPECT_EQ(read.entries[2].type, TarEntryType::kSymlink);
  EXPECT_EQ(read.entries[2].link_target, "a");
  EXPECT_EQ(read.entries[3].type, TarEntryType::kHardLink);
  EXPECT_EQ(read.contents[4], "");
  EXPECT_EQ(read.contents[5], std::string(512, 'x'));
}

TEST(TarReader, SkipsContentThatIsNotRead) {
  const std::string archive = TarWriter().File("a", std::string(5000, 'a')).File("b", "b").Finish();
  auto source = MakeStringSource(archive);
  TarReader reader(*source);
  ASSERT_TRUE(reader.Next().ok());
  auto second = reader.Next();
  ASSERT_TRUE(second.ok() && *second);
  EXPECT_EQ((*second)->path, "b");
}

TEST(TarReader, ReadsGnuLongNamesAndPaxRecords) {
  const std::string path(300, 'p'), target(200, 't');
  TarWriter tar;
  tar.File(path, "1").Symlink("link", target);
  tar.Raw('x', "pax", "", 0644,
          PaxRecord("path", "by/pax") + PaxRecord("uid", "70000") + PaxRecord("mtime", "5.75") +
              PaxRecord("SCHILY.xattr.user.x", "v=\n1"));
  tar.File("ignored", "2").File("after", "3");
  const Read read = ReadAll(tar.Finish());
  ASSERT_FALSE(read.error) << read.error->message;
  ASSERT_EQ(read.entries.size(), 4u);
  EXPECT_EQ(read.entries[0].path, path);
  EXPECT_EQ(read.entries[1].link_target, target);
  EXPECT_EQ(read.entries[2].path, "by/pax");
  EXPECT_EQ(read.entries[2].uid, 70000u);
  EXPECT_EQ(read.entries[2].modified_seconds, 5);
  EXPECT_EQ(read.entries[2].extended_attributes.at("user.x"), "v=\n1");
  EXPECT_EQ(read.entries[3].path, "after") << "pax records are for one entry only";
}

TEST(TarReader, ReadsThroughGzipOfSeveralMembers) {
  const std::string archive = TarWriter().File("a", std::string(100'000, 'z')).Finish();
  const std::string packed = Gzip(archive.substr(0, 700)) + Gzip(archive.substr(700));
  const Read read = ReadAll(packed);
  ASSERT_FALSE(read.error) << read.error->message;
  EXPECT_EQ(read.contents.at(0), std::string(100'000, 'z'));
}

TEST(TarReader, RefusesEveryTruncatedArchive) {
  TarWriter tar;
  tar.File("file", std::string(600, 'f'));
  const std::string archive = tar.Finish();
  const std::string packed = Gzip(archive);
  for (std::size_t cut = 1; cut < 1024; cut += 37) {
    EXPECT_TRUE(ReadAll(std::string_view(archive).substr(0, cut)).error) << cut;
  }
  for (std::size_t cut = 2; cut < packed.size(); ++cut) {
    EXPECT_TRUE(ReadAll(std::string_view(packed).substr(0, cut)).error) << cut;
  }
}

TEST(TarReader, RefusesADamagedHeader) {
  std::string archive = TarWriter().File("a", "1").Finish();
  archive[0] = 'b';
  EXPECT_THAT(ReadAll(archive).error->message, HasSubstr("checksum"));
  EXPECT_THAT(ReadAll(std::string(512, 'g')).error->message, HasSubstr("is this a tar archive?"));
}

TEST(TarReader, RefusesUnsupportedEntriesWithAnExplanation) {
  EXPECT_THAT(ReadAll(TarWriter().Raw('S', "s", "", 0, "").Finish()).error->message,
              HasSubstr("sparse"));
  EXPECT_THAT(ReadAll(TarWriter().Raw('V', "s", "", 0, "").Finish()).error->message,
              HasSubstr("not supported"));
  EXPECT_TRUE(ReadAll(TarWriter().Raw('x', "p", "", 0, "9 broken").Finish()).error);
  EXPECT_THAT(ReadAll("\x28\xb5\x2f\xfd....").error->message, HasSubstr("zstd"));
  EXPECT_TRUE(ReadAll(TarWriter().File(std::string(5000, 'n'), "").Finish()).error)
      << "path too long";
}

TEST(CleanTarPath, NormalizesPathsAndRefusesThoseThatEscape) {
  EXPECT_EQ(*CleanTarPath("./a//b/"), "a/b");
  EXPECT_EQ(*CleanTarPath("/etc/x"), "etc/x");
  EXPECT_EQ(*CleanTarPath("./"), "");
  EXPECT_FALSE(CleanTarPath("../x").ok());
  EXPECT_FALSE(CleanTarPath("a/../../x").ok());
  EXPECT_FALSE(CleanTarPath(std::string_view("a\0b", 3)).ok());
}

}  // namespace
}  // namespace drakkar::node
