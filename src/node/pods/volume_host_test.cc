// Real mounts, as root: links and renames in a volume must not lead out of it.
#include "node/pods/volume_host.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "api/json/reader.h"
#include "api/meta/object.h"
#include "base/env/device_node.h"
#include "base/text/text.h"
#include "node/pods/volumes.h"

namespace drakkar::node {
namespace {

using ::testing::HasSubstr;

constexpr long kTmpfs = 0x01021994;
constexpr long kHugetlbfs = 0x958458f6;

class VolumeHostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
    char pattern[] = "/tmp/drakkar-volumes-XXXXXX";
    root_ = mkdtemp(pattern);
    volume_ = root_ + "/pod/volumes/v";
    target_ = root_ + "/pod/volume-subpaths/v/c/0";
    ASSERT_TRUE(files_.MakeDirectories(volume_, 0777).ok());
    ASSERT_TRUE(files_.SetMode(volume_, 0777).ok());
    ASSERT_TRUE(files_.MakeDirectories(root_ + "/host", 0755).ok());
    ASSERT_TRUE(files_.WriteFile(root_ + "/host/secret", "the host's", 0600).ok());
  }
  void TearDown() override {
    if (root_.empty()) return;
    EXPECT_TRUE(host_.UnmountBelow(root_).ok());
    EXPECT_TRUE(files_.RemoveTree(root_).ok());
  }
  void Link(const std::string& to, const std::string& name) {
    ASSERT_EQ(::symlink(to.c_str(), (volume_ + "/" + name).c_str()), 0);
  }
  std::string Bind(const std::string& sub_path) {
    auto bound = host_.BindInside(volume_, sub_path, target_);
    return bound.ok() ? *bound : bound.error().message;
  }
  struct stat StatOf(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info;
  }

  FileSystem& files_ = RealFileSystem();
  VolumeHost& host_ = RealVolumeHost();
  std::string root_, volume_, target_;
};

TEST_F(VolumeHostTest, ALinkThatPointsOutOfTheVolumeResolvesInsideIt) {
  Link("/", "root");
  ASSERT_EQ(Bind("root"), target_);
  EXPECT_EQ(StatOf(target_).st_ino, StatOf(volume_).st_ino);
  Link("../../../host", "up");
  EXPECT_NE(Bind("up"), target_) << "there is no host in the volume, and none is made for a link";
  Link(root_ + "/host/secret", "file");
  EXPECT_NE(Bind("file"), target_);
  ASSERT_TRUE(files_.MakeDirectories(volume_ + "/a", 0755).ok());
  Link("/", "a/b");
  ASSERT_EQ(Bind("a/b/made/here"), target_);
  EXPECT_EQ(StatOf(target_).st_ino, StatOf(volume_ + "/made/here").st_ino);
}

TEST_F(VolumeHostTest, MagicLinksAreNotFollowed) {
  Link("/proc/self/root", "magic");
  EXPECT_NE(Bind("magic"), target_);
  Link(StrCat("/proc/", ::getpid(), "/cwd"), "cwd");
  EXPECT_NE(Bind("cwd"), target_);
  Link("loop", "loop");
  EXPECT_THAT(Bind("loop"), HasSubstr("loop"));
}

TEST_F(VolumeHostTest, AMountStaysTheSameWhenItsNameIsRedirected) {
  ASSERT_TRUE(files_.MakeDirectories(volume_ + "/d", 0755).ok());
  ASSERT_TRUE(files_.WriteFile(volume_ + "/d/mine", "x", 0644).ok());
  ASSERT_EQ(Bind("d"), target_);
  ASSERT_TRUE(files_.Rename(volume_ + "/d", volume_ + "/old").ok());
  Link(root_ + "/host", "d");
  EXPECT_TRUE(files_.Exists(target_ + "/mine"));
  EXPECT_FALSE(files_.Exists(target_ + "/secret"));
  // The next container of the same name resolves it again, and is not led out either.
  EXPECT_NE(Bind("d"), target_);
}

TEST_F(VolumeHostTest, CreatesMissingDirectoriesWithTheVolumesModeAndGroup) {
  ASSERT_TRUE(host_.SetGroup(volume_, 4'321).ok());
  ASSERT_TRUE(files_.SetMode(volume_, 02777).ok());
  ASSERT_EQ(Bind("a/b"), target_);
  for (const std::string& path : {volume_ + "/a", volume_ + "/a/b", target_}) {
    EXPECT_EQ(StatOf(path).st_mode & 07777, 02777u) << path;
    EXPECT_EQ(StatOf(path).st_gid, 4'321u) << path;
  }
  ASSERT_TRUE(files_.WriteFile(volume_ + "/file", "content", 0644).ok());
  ASSERT_EQ(Bind("file"), target_) << "a file where a directory was before";
  EXPECT_EQ(*files_.ReadFile(target_), "content");
  ASSERT_EQ(Bind("a"), target_) << "and back";
}

api::ObjectPtr PodWith(const std::string& volumes, const std::string& context = "{}") {
  auto tree = api::ParseJson(StrCat(R"json({"metadata":{"name":"p","uid":"u"},"spec":{
    "securityContext":)json",
                                    context, R"json(,"volumes":[)json", volumes, "]}}"));
  EXPECT_TRUE(tree.ok());
  return std::make_shared<api::Object>(*tree);
}

TEST_F(VolumeHostTest, AMemoryVolumeIsOneTmpfsOfItsSizeEvenIfMountedAgain) {
  auto pod = PodWith(R"json({"name":"m","emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}})json",
                     R"json({"fsGroup":77})json");
  const PodSources sources;
  auto prepare = [&] {
    return PrepareVolumes(
        {files_, host_, RealDeviceNodeProbe(), root_ + "/pod", {.pod = pod->root()}, sources});
  };
  auto volumes = prepare();
  ASSERT_TRUE(volumes.ok()) << volumes.error().message;
  const std::string path = volumes->at("m").host_path;
  struct statfs about {};
  ASSERT_EQ(::statfs(path.c_str(), &about), 0);
  EXPECT_EQ(about.f_type, kTmpfs);
  EXPECT_EQ(static_cast<std::uint64_t>(about.f_blocks) * about.f_bsize, 1u << 20);
  EXPECT_EQ(StatOf(path).st_mode & 07777, 02777u);
  EXPECT_EQ(StatOf(path).st_gid, 77u);
  ASSERT_TRUE(files_.WriteFile(path + "/kept", "x", 0644).ok());
  ASSERT_TRUE(prepare().ok());
  EXPECT_TRUE(files_.Exists(path + "/kept"));
  ASSERT_TRUE(RemoveVolumes(files_, host_, root_ + "/pod").ok());
  EXPECT_FALSE(files_.Exists(path));
}

TEST_F(VolumeHostTest, AHugePagesVolumeIsMountedOnceWithTheSizeOfItsPages) {
  if (!files_.Exists("/sys/kernel/mm/hugepages/hugepages-2048kB")) {
    GTEST_SKIP() << "no huge pages of 2 MB";
  }
  ASSERT_TRUE(host_.MountHugePages(volume_, "2M", 77).ok());
  ASSERT_TRUE(host_.MountHugePages(volume_, "2M", 77).ok());
  struct statfs about {};
  ASSERT_EQ(::statfs(volume_.c_str(), &about), 0);
  EXPECT_EQ(about.f_type, kHugetlbfs);
  EXPECT_EQ(about.f_bsize, 2 << 20);
  EXPECT_EQ(StatOf(volume_).st_mode & 07777, 02777u);
  EXPECT_EQ(StatOf(volume_).st_gid, 77u);
  const auto other = host_.MountHugePages(root_ + "/host", "3M", std::nullopt);
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message, HasSubstr("huge pages of 3M"));
}

TEST_F(VolumeHostTest, FilesAndDirectoriesHaveThePodsGroup) {
  auto pod = PodWith(R"json({"name":"e","emptyDir":{}},
      {"name":"c","configMap":{"name":"cm","defaultMode":256,"items":[{"key":"k","path":"d/f"}]}})json",
                     R"json({"fsGroup":77,"fsGroupChangePolicy":"OnRootMismatch"})json");
  PodSources sources;
  sources.config_maps["cm"] =
      std::make_shared<api::Object>(*api::ParseJson(R"json({"data":{"k":"v"}})json"));
  auto volumes = PrepareVolumes(
      {files_, host_, RealDeviceNodeProbe(), root_ + "/pod", {.pod = pod->root()}, sources});
  ASSERT_TRUE(volumes.ok()) << volumes.error().message;
  const auto empty = StatOf(volumes->at("e").host_path);
  EXPECT_EQ(empty.st_gid, 77u);
  EXPECT_EQ(empty.st_mode & 07777, 02777u);
  const auto directory = StatOf(volumes->at("c").host_path + "/d");
  EXPECT_EQ(directory.st_gid, 77u);
  EXPECT_EQ(directory.st_mode & 07777, 02755u);
  const auto file = StatOf(volumes->at("c").host_path + "/d/f");
  EXPECT_EQ(file.st_gid, 77u);
  EXPECT_EQ(file.st_mode & 07777, 0440u) << "the group reads what only its owner might";
}

TEST_F(VolumeHostTest, AKeyMountedBySubPathKeepsItsContentWhenTheVolumeSwitches) {
  auto show = [&](const std::string& content) {
    return host_.ShowFiles(volume_, {{"k", {.content = content}}, {"d/f", {.content = content}}},
                           std::nullopt);
  };
  ASSERT_TRUE(show("1").ok());
  ASSERT_EQ(Bind("k"), target_);
  EXPECT_EQ(*files_.ReadFile(target_), "1");
  ASSERT_TRUE(show("2").ok());
  EXPECT_EQ(*files_.ReadFile(volume_ + "/k"), "2");
  EXPECT_EQ(*files_.ReadFile(target_), "1") << "until the container restarts";
  ASSERT_EQ(Bind("k"), target_);
  EXPECT_EQ(*files_.ReadFile(target_), "2");
  ASSERT_EQ(Bind("d/f"), target_);
  EXPECT_EQ(*files_.ReadFile(target_), "2");
}

TEST_F(VolumeHostTest, RemovingVolumesDoesNotTouchWhatIsMountedIntoThem) {
  const std::string bound = root_ + "/pod/volume-subpaths/h/c/0";
  ASSERT_TRUE(host_.BindInside(root_ + "/host", ".", bound).ok());
  ASSERT_TRUE(files_.Exists(bound + "/secret"));
  ASSERT_TRUE(RemoveVolumes(files_, host_, root_ + "/pod").ok());
  EXPECT_FALSE(files_.Exists(root_ + "/pod/volume-subpaths"));
  EXPECT_EQ(*files_.ReadFile(root_ + "/host/secret"), "the host's");
}

}  // namespace
}  // namespace drakkar::node
