// System calls for images and bundles fail, including those that bypass FileSystem.
#include <stdlib.h>
#include <unistd.h>

#include "base/env/file_system.h"
#include "base/result/check.h"
#include "base/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node/runtime/images/byte_source.h"
#include "node/runtime/images/image_store.h"
#include "node/runtime/images/tar_reader.h"
#include "node/runtime/images/unpack.h"
#include "node/runtime/oci/bundle.h"
#include "node/runtime/oci/host.h"
#include "node/runtime/testing/failing_syscalls.h"
#include "node/runtime/testing/tar_writer.h"

namespace drakkar::node {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kMaxCalls = 2'000;

class SyscallFaults : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(UnmountAll(directory_).ok());
    EXPECT_TRUE(files_.RemoveTree(directory_).ok());
  }
  std::string Put(const std::string& name, std::string_view content) {
    EXPECT_TRUE(files_.WriteFile(directory_ + "/" + name, content, 0600).ok());
    return directory_ + "/" + name;
  }
  std::string Empty(const std::string& name) {
    EXPECT_TRUE(files_.RemoveTree(directory_ + "/" + name).ok());
    EXPECT_TRUE(files_.MakeDirectories(directory_ + "/" + name, 0755).ok());
    return directory_ + "/" + name;
  }
  // Every file below with its kind, mode and content.
  std::string Tree(const std::string& path) {
    const auto info = files_.LinkStat(path);
    if (!info.ok()) return info.error().message;
    std::string text = StrCat(static_cast<int>(info->type), " ", info->mode);
    if (info->type == FileType::kSymlink) return text + " " + *files_.ReadLink(path) + "\n";
    if (info->type == FileType::kRegular) return text + " " + *files_.ReadFile(path) + "\n";
    text += "\n";
    if (info->type != FileType::kDirectory) return text;
    const auto names = files_.ListDirectory(path);
    for (const std::string& name : *names) text += name + " " + Tree(path + "/" + name);
    return text + "end\n";
  }
  static Result<void> Unpack(const std::string& archive, const std::string& root) {
    ASSIGN_OR_RETURN(auto file, OpenFileSource(archive));
    auto plain = MakeDecompressor(*file);
    TarReader reader(*plain);
    UnpackOptions options;
    options.whiteouts = true;
    RETURN_IF_ERROR(UnpackTar(reader, root, options));
    return Ok();
  }
  std::string Base() {
    return Put("base.tar", TarWriter()
                               .Directory("./", 0755)
                               .Directory("d/", 0750)
                               .File("d/old", "old")
                               .Directory("d/sub")
                               .File("d/sub/old", "old")
                               .File("gone", "x")
                               .Directory("tree/")
                               .Directory("tree/deep")
                               .File("tree/deep/er", "x")
                               .File("kept", "1", 04755)
                               .Symlink("link", "kept")
                               .HardLink("hard", "kept")
                               .Raw('6', "fifo", "", 0644, "")
                               .File("no/parent", "x")
                               .Finish());
  }
  std::string Top() {
    return Put("top.tar.gz", Gzip(TarWriter()
                                      .File("d/new", "new")
                                      .File("d/sub/new", "new")
                                      .File("d/.wh..wh..opq", "")
                                      .File(".wh.gone", "")
                                      .File(".wh.tree", "")
                                      .File("kept", "2")
                                      .File("link", "file")
                                      .File("absent/.wh.x", "")
                                      .Finish()));
  }

  FileSystem& files_ = RealFileSystem();
  const std::string directory_ = MakeDirectory();

 private:
  static std::string MakeDirectory() {
    char pattern[] = "/tmp/drakkar-syscalls-XXXXXX";
    CHECK(::mkdtemp(pattern) != nullptr);
    return pattern;
  }
};

TEST_F(SyscallFaults, LayersAreUnpackedCompletelyOrNotAtAll) {
  const std::string base = Base(), top = Top();
  const std::string whole = Empty("whole");
  ASSERT_TRUE(Unpack(base, whole).ok());
  ASSERT_TRUE(Unpack(top, whole).ok());
  const std::string expected = Tree(whole);
  int call = 0;
  for (; call < kMaxCalls && !HasFailure(); ++call) {
    const std::string root = Empty("part");
    Result<void> unpacked;
    {
      FailingSyscalls failing(call);
      unpacked = Unpack(base, root);
      if (unpacked.ok()) unpacked = Unpack(top, root);
    }
    if (FailingSyscalls::failed().empty()) break;
    if (!unpacked.ok()) continue;
    EXPECT_EQ(Tree(root), expected) << call << ": " << FailingSyscalls::failed();
  }
  EXPECT_GT(call, 60);
  EXPECT_LT(call, kMaxCalls);
}

TEST_F(SyscallFaults, ATreeIsCopiedCompletelyOrNotAtAll) {
  const std::string from = Empty("tree");
  // A fifo is not copied.
  ASSERT_TRUE(Unpack(Put("a.tar", TarWriter()
                                      .Directory("d/", 0750)
                                      .File("d/x", "1", 04755)
                                      .Directory("d/e")
                                      .File("d/e/y", "2")
                                      .Symlink("l", "d/x")
                                      .Finish()),
                     from)
                  .ok());
  const std::string expected = Tree(from);
  int call = 0;
  for (; call < kMaxCalls && !HasFailure(); ++call) {
    const std::string to = Empty("copy");
    Result<void> copied;
    {
      FailingSyscalls failing(call);
      copied = CopyTree(from, to);
    }
    if (FailingSyscalls::failed().empty()) break;
    if (!copied.ok()) continue;
    EXPECT_EQ(Tree(to), expected) << call << ": " << FailingSyscalls::failed();
  }
  EXPECT_GT(call, 20);
  EXPECT_LT(call, kMaxCalls);
}

TEST_F(SyscallFaults, AnImportAndARemovalCanBeRepeated) {
  const std::string tar =
      Put("a.tar", TarWriter().Directory("d/").File("d/x", "1").File("y", "2").Finish());
  int call = 0;
  for (; call < kMaxCalls && !HasFailure(); ++call) {
    SCOPED_TRACE(call);
    ImageStore store(files_, RealRandom(), directory_ + "/images");
    FailingSyscalls failing(call);
    auto twice = [&](const char* what, auto step) {
      auto done = step();
      if (!done.ok()) done = step();
      EXPECT_TRUE(done.ok()) << what << " after " << FailingSyscalls::failed() << ": "
                             << done.error().message;
    };
    twice("open", [&] { return store.Open(); });
    twice("import", [&]() -> Result<void> {
      RETURN_IF_ERROR(store.Import(tar, ImportOptions{.name = "a", .progress = {}}));
      return Ok();
    });
    twice("find", [&]() -> Result<void> {
      ASSIGN_OR_RETURN(const StoredImage found, store.Find("a"));
      ASSIGN_OR_RETURN(const std::string content, files_.ReadFile(found.rootfs + "/d/x"));
      return content == "1" ? Ok() : Result<void>(Internal("wrong content"));
    });
    twice("remove", [&]() -> Result<void> {
      const bool is_repeated = !FailingSyscalls::failed().empty();
      auto removed = store.Remove("a");
      if (is_repeated && !removed.ok() && removed.error().code == ErrorCode::kNotFound) return Ok();
      return removed;
    });
    if (FailingSyscalls::failed().empty()) break;
    EXPECT_THAT(*files_.ListDirectory(directory_ + "/images"), ElementsAre("lock", "names.json"))
        << "after " << FailingSyscalls::failed();
    EXPECT_TRUE(files_.RemoveTree(directory_ + "/images").ok());
  }
  EXPECT_GT(call, 80);
  EXPECT_LT(call, kMaxCalls);
}

// Its user and groups come from the image, its root is complete, and a failed build leaves nothing.
TEST_F(SyscallFaults, ABundleIsCompleteOrAbsent) {
  const bool is_root = ::geteuid() == 0;  // else without namespaces
  const OciPaths paths{directory_ + "/runtime", directory_ + "/runtime/state"};
  ImageStore images(files_, RealRandom(), directory_ + "/images");
  const std::string tar = Put("a.tar", TarWriter()
                                           .Directory("etc/")
                                           .File("etc/passwd", "u:x:1000:1001::/:/x\n")
                                           .File("etc/group", "g:x:1001:\nv:x:44:u\n")
                                           .File("x", "1", 0755)
                                           .Finish());
  ASSERT_TRUE(images.Import(tar, ImportOptions{.name = "a", .progress = {}}).ok());
  BundleBuilder builder(files_, images, paths, Cgroups::Parse(files_, ""), ProbeHostLimits());
  ASSERT_TRUE(builder.Scan().ok());
  SandboxRecord sandbox;
  sandbox.id = "sandbox1";
  sandbox.hostname = is_root ? "pod-host" : "";
  sandbox.host_ipc = !is_root;
  ContainerRecord container;
  container.id = "container1";
  container.sandbox_id = sandbox.id;
  ContainerConfig config;
  config.name = "main";
  config.image = "a";
  config.command = {"/x"};
  config.security.user = "1000";
  std::string expected;
  for (int call = -1; call < kMaxCalls && !HasFailure(); ++call) {
    SCOPED_TRACE(call);
    auto failing = std::make_unique<FailingSyscalls>(call < 0 ? kMaxCalls : call);
    auto made = builder.BuildSandbox(sandbox, {});
    if (!made.ok()) {
      EXPECT_THAT(*files_.ListDirectory(paths.Sandboxes()), IsEmpty())
          << "after " << FailingSyscalls::failed();
      made = builder.BuildSandbox(sandbox, {});
    }
    ASSERT_TRUE(made.ok()) << made.error().message;
    auto built = builder.BuildContainer(container, *made, config);
    if (!built.ok()) {
      EXPECT_THAT(*files_.ListDirectory(paths.Containers()), IsEmpty())
          << "after " << FailingSyscalls::failed();
      built = builder.BuildContainer(container, *made, config);
    }
    ASSERT_TRUE(built.ok()) << built.error().message;
    failing.reset();
    const bool failed = !FailingSyscalls::failed().empty();
    const std::string bundle = paths.Container(container.id);
    const std::string found = *files_.ReadFile(bundle + "/config.json") + Tree(bundle + "/rootfs");
    if (call < 0) expected = found;
    EXPECT_TRUE(found == expected) << found << "\nafter " << FailingSyscalls::failed();
    EXPECT_TRUE(builder.DestroyContainer(built->record).ok());
    EXPECT_TRUE(builder.DestroySandbox(*made).ok());
    if (call >= 0 && !failed) {
      EXPECT_GT(call, 40);
      return;
    }
  }
  ADD_FAILURE() << "more calls than the test tries";
}

TEST_F(SyscallFaults, ASandboxThatCannotBeInspectedIsKept) {
  if (::geteuid() != 0) GTEST_SKIP() << "namespaces need root";
  ASSERT_TRUE(
      PinNamespaces({.uts_path = directory_ + "/uts", .hostname = "pod-host", .ipc_path = ""})
          .ok());
  EXPECT_TRUE(*IsPinnedNamespace(directory_ + "/uts"));
  EXPECT_FALSE(*IsPinnedNamespace(directory_ + "/none"));
  FailingSyscalls failing(0);
  EXPECT_FALSE(IsPinnedNamespace(directory_ + "/uts").ok());
}

TEST_F(SyscallFaults, AProcessThatCannotBeInspectedCountsAsRunning) {
  const auto ticks = ProcessStartTicks(::getpid());
  ASSERT_TRUE(ticks.ok());
  ASSERT_TRUE(ProcessHandle::Open(::getpid(), *ticks).ok());
  EXPECT_EQ(ProcessHandle::Open(::getpid(), *ticks + 1).error().code, ErrorCode::kNotFound);
  {
    FailingSyscalls failing(0);
    EXPECT_NE(ProcessHandle::Open(::getpid(), *ticks).error().code, ErrorCode::kNotFound);
  }
  FailingSyscalls failing(0);
  EXPECT_FALSE(FindSupervisors("container1").ok());
}

}  // namespace
}  // namespace drakkar::node
