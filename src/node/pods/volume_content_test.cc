#include "node/pods/volume_content.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env/descriptor.h"
#include "base/env/file_system.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;

class VolumeContentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/drakkar-content-XXXXXX";
    root_ = mkdtemp(pattern);
    volume_ = root_ + "/v";
  }
  void TearDown() override { EXPECT_TRUE(files_.RemoveTree(root_).ok()); }

  void Show(const VolumeFiles& files) {
    const auto shown = ShowVolumeFiles(clock_, volume_, files, std::nullopt);
    EXPECT_TRUE(shown.ok()) << shown.error().message;
  }
  std::string Read(const std::string& path) {
    auto text = files_.ReadFile(volume_ + "/" + path);
    return text.ok() ? *text : "(none)";
  }
  std::vector<std::string> Names() { return *files_.ListDirectory(volume_); }
  std::string Current() { return *files_.ReadLink(volume_ + "/..data"); }

  FileSystem& files_ = RealFileSystem();
  FakeClock clock_;
  std::string root_, volume_;
};

TEST_F(VolumeContentTest, KeysAreLinksIntoADirectoryWithATime) {
  Show({{"k", {.content = "v", .mode = 0400}}, {"d/e/f", {.content = "deep"}}});
  EXPECT_THAT(Current(), MatchesRegex("\\.\\.[0-9]{4}(_[0-9]{2}){5}\\.[a-zA-Z0-9]{6}"));
  EXPECT_THAT(Names(), ElementsAre(Current(), "..data", "d", "k"));
  EXPECT_EQ(*files_.ReadLink(volume_ + "/k"), "..data/k");
  EXPECT_EQ(*files_.ReadLink(volume_ + "/d"), "..data/d");
  EXPECT_EQ(Read("k"), "v");
  EXPECT_EQ(Read("d/e/f"), "deep");
  EXPECT_EQ(files_.Stat(volume_ + "/k")->mode & 07777, 0400u);
  EXPECT_EQ(files_.Stat(volume_ + "/d/e")->mode & 07777, 0755u);
  EXPECT_EQ(files_.Stat(volume_ + "/..data/")->mode & 07777, 0755u);
}

TEST_F(VolumeContentTest, AFileMayBelongToAUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  Show({{"mine", {.content = "1", .mode = 0600, .user = 1000}}, {"other", {.content = "2"}}});
  struct stat info {};
  ASSERT_EQ(::stat((volume_ + "/mine").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 1000u);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  ASSERT_EQ(::stat((volume_ + "/other").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0u);
}

TEST_F(VolumeContentTest, AChangeIsOneSwitchOfOneLink) {
  Show({{"a", {.content = "1"}}, {"b", {.content = "1"}}, {"old/x", {.content = "1"}}});
  const std::string before = Current();
  // A reader that opened the former content keeps it whole until it looks again.
  const Descriptor open(::open((volume_ + "/a").c_str(), O_RDONLY | O_CLOEXEC));
  const Descriptor watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(watch.get(), volume_.c_str(), IN_MOVED_TO), 0);
  Show({{"a", {.content = "2"}}, {"b", {.content = "2"}}});
  EXPECT_NE(Current(), before);
  EXPECT_THAT(Names(), ElementsAre(Current(), "..data", "a", "b"));
  EXPECT_EQ(Read("a") + Read("b"), "22");
  char one = 0;
  EXPECT_EQ(::read(open.get(), &one, 1), 1);
  EXPECT_EQ(one, '1');
  alignas(inotify_event) char events[4096];
  const ssize_t size = ::read(watch.get(), events, sizeof(events));
  ASSERT_GT(size, 0);
  const auto* event = reinterpret_cast<const inotify_event*>(events);
  EXPECT_STREQ(event->name, "..data");
  EXPECT_EQ(static_cast<std::size_t>(size), sizeof(inotify_event) + event->len) << "only one event";
}

TEST_F(VolumeContentTest, TheSameContentIsNotWrittenAgain) {
  const VolumeFiles files = {{"a", {.content = "1"}}, {"d/b", {.content = "2"}}};
  Show(files);
  const std::string before = Current();
  Show(files);
  EXPECT_EQ(Current(), before);
  Show({{"a", {.content = "1", .mode = 0600}}, {"d/b", {.content = "2"}}});
  const std::string with_mode = Current();
  EXPECT_NE(with_mode, before);
  Show({{"a", {.content = "1", .mode = 0600}}});
  EXPECT_NE(Current(), with_mode);
  EXPECT_THAT(Names(), ElementsAre(Current(), "..data", "a"));
}

TEST_F(VolumeContentTest, AKeyMayBecomeADirectoryAndPlainFilesOfAnotherLayoutAreReplaced) {
  ASSERT_TRUE(files_.MakeDirectories(volume_ + "/d", 0755).ok());
  ASSERT_TRUE(files_.WriteFile(volume_ + "/d/f", "plain", 0644).ok());
  ASSERT_TRUE(files_.WriteFile(volume_ + "/k", "plain", 0644).ok());
  Show({{"d/f", {.content = "1"}}, {"k", {.content = "1"}}});
  EXPECT_EQ(Read("d/f") + Read("k"), "11");
  Show({{"d", {.content = "2"}}, {"k/f", {.content = "2"}}});
  EXPECT_EQ(Read("d") + Read("k/f"), "22");
  Show({});
  EXPECT_THAT(Names(), ElementsAre(Current(), "..data"));
}

TEST_F(VolumeContentTest, AnInterruptedCallIsFinishedByTheNext) {
  const VolumeFiles files = {{"a", {.content = "1"}}};
  Show(files);
  // Stopped after the switch, before the key's link, and after half of a later change.
  ASSERT_TRUE(files_.Remove(volume_ + "/a").ok());
  ASSERT_TRUE(files_.MakeDirectories(volume_ + "/..2020_01_01_00_00_00.AAAAAA", 0700).ok());
  ASSERT_EQ(::symlink("/etc", (volume_ + "/..new_link").c_str()), 0);
  Show(files);
  EXPECT_EQ(Read("a"), "1");
  EXPECT_THAT(Names(), ElementsAre(Current(), "..data", "a"));
}

TEST_F(VolumeContentTest, ALinkThatLeadsOutIsReplacedAndNotFollowed) {
  ASSERT_TRUE(files_.MakeDirectories(root_ + "/host/d", 0700).ok());
  ASSERT_TRUE(files_.WriteFile(root_ + "/host/d/f", "host", 0600).ok());
  ASSERT_TRUE(files_.MakeDirectories(volume_, 0755).ok());
  ASSERT_EQ(::symlink("../host", (volume_ + "/..data").c_str()), 0);
  ASSERT_EQ(::symlink("../host/d", (volume_ + "/d").c_str()), 0);
  Show({{"d/f", {.content = "pod"}}});
  EXPECT_EQ(Read("d/f"), "pod");
  EXPECT_EQ(*files_.ReadFile(root_ + "/host/d/f"), "host");
  EXPECT_EQ(*files_.ReadLink(volume_ + "/d"), "..data/d");
}

TEST_F(VolumeContentTest, IfAChangeFailsTheFormerContentStays) {
  Show({{"a", {.content = "1"}}});
  const std::string before = Current();
  const auto failed = ShowVolumeFiles(
      clock_, volume_, {{"a", {.content = "2"}}, {"a/b", {.content = "2"}}}, std::nullopt);
  EXPECT_FALSE(failed.ok()) << "a is a file and a directory";
  EXPECT_EQ(Current(), before);
  EXPECT_EQ(Read("a"), "1");
  EXPECT_THAT(Names(), ElementsAre(before, "..data", "a")) << "half of the change is removed";
}

}  // namespace
}  // namespace drakkar::node
