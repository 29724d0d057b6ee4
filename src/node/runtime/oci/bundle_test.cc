// The files of sandboxes and containers, without running any.
#include "node/runtime/oci/bundle.h"

#include <stdlib.h>

#include "base/env/file_system.h"
#include "base/result/check.h"
#include "base/testing/faulty_file_system.h"
#include "base/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node/runtime/oci/host.h"
#include "node/runtime/testing/tar_writer.h"

namespace drakkar::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BundleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string tar = directory_ + "/a.tar";
    ASSERT_TRUE(real_.WriteFile(tar, TarWriter().File("x", "1").Finish(), 0600).ok());
    auto image = images_.Import(tar, ImportOptions{.name = "a", .progress = {}});
    ASSERT_TRUE(image.ok()) << image.error().message;
    image_id_ = image->id;
    config_.name = "main";
    config_.image = "a";
    config_.command = {"/x"};
    sandbox_.id = "sandbox1";
    sandbox_.host_ipc = true;  // and no hostname: no namespaces, so root is not needed
    container_.id = "container1";
    container_.sandbox_id = "sandbox1";
    container_.name = "main";
    container_.image = "a";
  }
  void TearDown() override {
    EXPECT_TRUE(UnmountAll(directory_).ok());
    EXPECT_TRUE(real_.RemoveTree(directory_).ok());
  }
  BundleBuilder Builder() {
    return BundleBuilder(files_, images_, paths_, Cgroups::Parse(files_, ""), ProbeHostLimits());
  }
  // What is wrongly left at the end.
  std::vector<std::string> Left() {
    std::vector<std::string> left;
    for (const std::string& directory :
         {paths_.Sandboxes(), paths_.Containers(), paths_.Exits(), paths_.runtime_state,
          StrCat(directory_, "/images/sha256-", image_id_.substr(7), "/uses")}) {
      auto names = real_.ListDirectory(directory);
      if (!names.ok()) continue;
      for (const std::string& name : *names) left.push_back(directory + "/" + name);
    }
    return left;
  }
  // A sandbox and a container on disk, as after their creation.
  void Build() {
    BundleBuilder builder = Builder();
    ASSERT_TRUE(builder.Scan().ok());
    auto sandbox = builder.BuildSandbox(sandbox_, {});
    ASSERT_TRUE(sandbox.ok()) << sandbox.error().message;
    sandbox_ = *std::move(sandbox);
    auto built = builder.BuildContainer(container_, sandbox_, config_);
    ASSERT_TRUE(built.ok()) << built.error().message;
    container_ = std::move(built->record);
  }

  FileSystem& real_ = RealFileSystem();
  FaultyFileSystem files_{real_};
  const std::string directory_ = MakeDirectory();
  const OciPaths paths_{directory_ + "/runtime", directory_ + "/runtime/state"};
  ImageStore images_{files_, RealRandom(), directory_ + "/images"};
  std::string image_id_;
  ContainerConfig config_;
  SandboxRecord sandbox_;
  ContainerRecord container_;

 private:
  static std::string MakeDirectory() {
    char pattern[] = "/tmp/drakkar-bundle-XXXXXX";
    CHECK(::mkdtemp(pattern) != nullptr);
    return pattern;
  }
};

TEST_F(BundleTest, GroupsOfTheImageAreLeftOutIfOnlyGivenOnesAreWanted) {
  const std::string tar = directory_ + "/b.tar";
  const std::string accounts = TarWriter()
                                   .File("etc/passwd", "me:x:1000:1000::/:/x\n")
                                   .File("etc/group", "me:x:1000:\nmore:x:50000:me\n")
                                   .Finish();
  ASSERT_TRUE(real_.WriteFile(tar, accounts, 0600).ok());
  ASSERT_TRUE(images_.Import(tar, ImportOptions{.name = "b", .progress = {}}).ok());
  config_.image = "b";
  config_.security.user = "1000";
  config_.security.supplemental_groups = {60000};
  Build();
  EXPECT_EQ(container_.user, (ContainerIdentity{1000, 1000, {50000, 60000}}));
  config_.security.only_given_groups = true;
  container_.id = "container2";
  auto built = Builder().BuildContainer(container_, sandbox_, config_);
  ASSERT_TRUE(built.ok()) << built.error().message;
  EXPECT_EQ(built->record.user, (ContainerIdentity{1000, 1000, {60000}}));
}

TEST_F(BundleTest, ARecordThatCannotBeReadIsNotAnIncompleteContainer) {
  Build();
  for (const std::string& path : {paths_.Container("container1"), paths_.Sandbox("sandbox1")}) {
    files_.FailNext("read", path + "/state.json");
    auto found = Builder().Scan(/*is_last_try=*/true);
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(found.error().message, HasSubstr("read the record of "));
  }
  auto found = Builder().Scan();
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_THAT(found->containers, ElementsAre(container_));
  EXPECT_THAT(found->sandboxes, ElementsAre(sandbox_));
}

TEST_F(BundleTest, AContainerWhoseRecordIsLostIsRemovedAndReleasesItsImage) {
  Build();
  ASSERT_TRUE(real_.WriteFile(paths_.Container("container1") + "/state.json", "torn", 0600).ok());
  auto found = Builder().Scan();
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_THAT(found->containers, IsEmpty());
  EXPECT_THAT(Left(), ElementsAre(paths_.Sandbox("sandbox1")));
}

TEST_F(BundleTest, AContainerWhoseSandboxIsLostIsRemoved) {
  Build();
  ASSERT_TRUE(real_.WriteFile(paths_.Sandbox("sandbox1") + "/state.json", "torn", 0600).ok());
  auto found = Builder().Scan();
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_THAT(found->containers, IsEmpty());
  EXPECT_THAT(found->sandboxes, IsEmpty());
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(BundleTest, AFailedRemovalIsRetriedAndFinallyLogged) {
  Build();
  container_.phase = Phase::kRemoving;
  ASSERT_TRUE(Builder().Save(container_).ok());
  files_.FailNext("remove tree", paths_.Container("container1"));
  auto found = Builder().Scan();
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::kUnavailable);
  files_.FailNext("remove tree", paths_.Container("container1"));
  found = Builder().Scan(/*is_last_try=*/true);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_THAT(found->notes, ElementsAre(HasSubstr("remove tree")));
  found = Builder().Scan();
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_THAT(Left(), ElementsAre(paths_.Sandbox("sandbox1")));
}

TEST_F(BundleTest, AContainerThatExitedDuringItsStartIsNotRunAgain) {
  Build();
  container_.phase = Phase::kStarting;
  ASSERT_TRUE(Builder().Save(container_).ok());
  ASSERT_TRUE(real_.WriteFile(paths_.ExitFile("container1"), "7", 0600).ok());
  files_.FailNext("stat", paths_.ExitFile("container1"));
  EXPECT_FALSE(Builder().Scan().ok());
  files_.FailNext("link stat", paths_.ExitFile("container1"));
  auto found = Builder().Scan();
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found->containers.size(), 1u);
  EXPECT_EQ(found->containers[0].phase, Phase::kRunning) << "its exit is read next";
}

TEST_F(BundleTest, APodWithoutDnsConfigNeverGetsAnEmptyResolvConf) {
  if (!real_.Exists("/etc/resolv.conf")) GTEST_SKIP() << "this machine has no /etc/resolv.conf";
  ASSERT_TRUE(Builder().Scan().ok());
  files_.FailNext("read", "/etc/resolv.conf");
  EXPECT_FALSE(Builder().BuildSandbox(sandbox_, {}).ok());
  EXPECT_THAT(Left(), IsEmpty());
}

// Covers every file operation in a container's life. The agent is restarted after the start.
TEST_F(BundleTest, RecoversFromEachFailingFileOperation) {
  const SandboxRecord new_sandbox = sandbox_;
  const ContainerRecord new_container = container_;
  std::size_t call = 0;
  for (;; ++call) {
    SCOPED_TRACE(call);
    files_.FailCall(call);
    // Only one call fails, so the second attempt must succeed.
    auto twice = [&](const char* what, auto step) {
      auto done = step();
      if (!done.ok()) {
        EXPECT_NE(files_.failed(), "") << what << ": " << done.error().message;
        done = step();
      }
      EXPECT_TRUE(done.ok()) << what << " after " << files_.failed() << ": "
                             << done.error().message;
      if constexpr (!std::is_same_v<decltype(done), Result<void>>) return done;
    };
    BundleBuilder before = Builder();
    static_cast<void>(twice("scan", [&] { return before.Scan(); }));
    auto sandbox = twice("build sandbox", [&] {
      auto built = before.BuildSandbox(new_sandbox, {});
      EXPECT_TRUE(built.ok() || Left().empty()) << "after " << files_.failed();
      return built;
    });
    ASSERT_TRUE(sandbox.ok());
    auto built = twice("build container", [&] {
      auto container = before.BuildContainer(new_container, *sandbox, config_);
      EXPECT_TRUE(container.ok() || Left().size() == 1)
          << "more than the sandbox is left after " << files_.failed();
      return container;
    });
    ASSERT_TRUE(built.ok());
    ContainerRecord record = std::move(built->record);
    record.phase = Phase::kStarting;
    twice("save", [&] { return before.Save(record); });
    // It exited before the agent could record that it runs.
    ASSERT_TRUE(real_.WriteFile(paths_.ExitFile(record.id), "7", 0600).ok());

    BundleBuilder after = Builder();
    auto found = twice("scan again", [&] { return after.Scan(); });
    ASSERT_TRUE(found.ok());
    ASSERT_EQ(found->sandboxes.size(), 1u) << "after " << files_.failed();
    ASSERT_EQ(found->containers.size(), 1u) << "after " << files_.failed();
    record = found->containers[0];
    EXPECT_EQ(record.phase, Phase::kRunning) << "it would run twice after " << files_.failed();
    twice("read the exit", [&] { return after.ReadExit(record); });
    EXPECT_EQ(record.phase, Phase::kExited);
    EXPECT_EQ(record.exit_code, 7);
    twice("save", [&] { return after.Save(record); });
    twice("release", [&] { return after.ReleaseContainer(record); });
    record.phase = Phase::kRemoving;
    twice("save", [&] { return after.Save(record); });
    // The agent is killed here; the next one continues.
    BundleBuilder last = Builder();
    static_cast<void>(twice("last scan", [&] { return last.Scan(); }));
    EXPECT_THAT(Left(), ElementsAre(paths_.Sandbox("sandbox1"))) << "after " << files_.failed();
    twice("destroy container", [&] { return last.DestroyContainer(record); });
    twice("release sandbox", [&] { return last.ReleaseSandbox(*sandbox); });
    twice("destroy sandbox", [&] { return last.DestroySandbox(*sandbox); });
    EXPECT_THAT(Left(), IsEmpty()) << "after " << files_.failed();
    if (HasFailure() || files_.failed().empty()) break;
    ASSERT_LT(call, 1'000u);
  }
  EXPECT_GT(call, 50u) << "too few calls for what is done";
}

}  // namespace
}  // namespace drakkar::node
