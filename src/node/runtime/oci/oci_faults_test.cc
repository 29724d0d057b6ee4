// Real containers while a file operation of their runtime fails.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "base/env/file_system.h"
#include "base/testing/faulty_file_system.h"
#include "base/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node/runtime/images/image_store.h"
#include "node/runtime/testing/runtime_harness.h"

namespace drakkar::node {
namespace {

using ::testing::IsEmpty;
using Program = RuntimeHarness::Program;
using Done = RuntimeCallback<void>;

class OciFaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Do not count one call per directory of a long search path.
    ::setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
    std::string why;
    harness_ = MakeOciHarness(why, files_);
    if (!harness_) GTEST_SKIP() << "no real containers here: " << why;
    mark_ = StrCat("faults-", ::getpid());
  }

  template <typename T>
  Result<T> Call(std::function<void(Runtime&, RuntimeCallback<T>)> call) {
    return Await<T>(*harness_, std::move(call));
  }
  // Only one call fails, so the second attempt must succeed. `step` answers with a Result.
  template <typename Step>
  auto Twice(const char* what, Step step) {
    auto done = step();
    if (!done.ok()) {
      EXPECT_NE(files_.failed(), "") << what << ": " << done.error().message;
      done = step();
    }
    EXPECT_TRUE(done.ok()) << what << " after " << files_.failed() << ": " << done.error().message;
    if constexpr (!std::is_same_v<decltype(done), Result<void>>) return done;
  }
  Result<std::string> RunSandbox() {
    PodSandboxConfig config = harness_->SandboxConfig(StrCat("faults-", ++pods_));
    config.resources.memory_limit_bytes = 64 << 20;
    group_ = StrCat("/drakkar/pod", config.uid);
    root_ = DirectoryName(DirectoryName(config.log_directory));
    return Twice("run sandbox", [&] {
      return Call<std::string>([&](Runtime& runtime, RuntimeCallback<std::string> done) {
        runtime.RunPodSandbox(config, std::move(done));
      });
    });
  }
  Result<std::string> Create(const std::string& sandbox, const std::string& script) {
    ContainerConfig config = harness_->ConfigFor(Program::kEndsWhenTold);
    if (!script.empty()) config.command = {"/bin/sh", "-c", script};
    config.command.push_back(mark_);
    config.resources.memory_limit_bytes = 32 << 20;
    return Twice("create", [&] {
      return Call<std::string>([&](Runtime& runtime, RuntimeCallback<std::string> done) {
        runtime.CreateContainer(sandbox, config, std::move(done));
      });
    });
  }
  void Start(const std::string& id) {
    Twice("start", [&] {
      return Call<void>(
          [&](Runtime& runtime, Done done) { runtime.StartContainer(id, std::move(done)); });
    });
  }
  Result<ExecResult> Exec(const std::string& id, const std::vector<std::string>& command,
                          Duration timeout) {
    return Call<ExecResult>([&](Runtime& runtime, RuntimeCallback<ExecResult> done) {
      runtime.ExecSync(id, command, timeout, std::move(done));
    });
  }
  void Restart() {
    harness_->KillAgent();
    Twice("open", [&] { return harness_->TryToStartAgent(); });
  }
  void RemoveAll(const std::string& sandbox, const std::string& id) {
    Twice("remove container", [&] {
      return Call<void>(
          [&](Runtime& runtime, Done done) { runtime.RemoveContainer(id, std::move(done)); });
    });
    Twice("stop sandbox", [&] {
      return Call<void>(
          [&](Runtime& runtime, Done done) { runtime.StopPodSandbox(sandbox, std::move(done)); });
    });
    Twice("remove sandbox", [&] {
      return Call<void>(
          [&](Runtime& runtime, Done done) { runtime.RemovePodSandbox(sandbox, std::move(done)); });
    });
    EXPECT_THAT(harness_->Leftovers(), IsEmpty()) << "after " << files_.failed();
    EXPECT_THAT(Running(mark_), IsEmpty()) << "after " << files_.failed();
  }
  ContainerStatus Status(const std::string& id) {
    ContainerStatus status;
    harness_->OnLoop([&](Runtime& runtime) {
      auto found = runtime.GetContainerStatus(id);
      if (found.ok()) status = *std::move(found);
    });
    return status;
  }
  std::size_t Exits(const std::string& id) {
    std::size_t count = 0;
    harness_->OnLoop([&](Runtime&) {
      count = static_cast<std::size_t>(
          std::count_if(harness_->exits().begin(), harness_->exits().end(),
                        [&](const ContainerStatus& status) { return status.id == id; }));
    });
    return count;
  }
  ContainerStatus WaitForExit(const std::string& id) {
    EXPECT_TRUE(harness_->WaitUntil([&] {
      return std::any_of(harness_->exits().begin(), harness_->exits().end(),
                         [&](const ContainerStatus& status) { return status.id == id; });
    })) << "no exit after "
        << files_.failed();
    return Status(id);
  }
  // Processes with this argument, excluding children they have just forked.
  static std::vector<int> Running(const std::string& mark) {
    FileSystem& files = RealFileSystem();
    std::map<int, int> parents;
    const auto entries = files.ListDirectory("/proc");
    for (const std::string& entry : *entries) {
      const auto pid = ParseInt64(entry);
      auto line = pid ? files.ReadFile(StrCat("/proc/", entry, "/cmdline")) : NotFound("");
      auto stat = pid ? files.ReadFile(StrCat("/proc/", entry, "/stat")) : NotFound("");
      if (!line.ok() || !stat.ok() || line->find(mark) == std::string::npos) continue;
      if (line->find("runc") != std::string::npos) continue;
      const auto fields = Split(std::string_view(*stat).substr(stat->rfind(')') + 2), ' ');
      parents[static_cast<int>(*pid)] = static_cast<int>(ParseInt64(fields[1]).value_or(0));
    }
    std::vector<int> pids;
    for (const auto& [pid, parent] : parents) {
      if (!parents.contains(parent)) pids.push_back(pid);
    }
    return pids;
  }
  std::string MemoryLimit(const std::string& id) {
    for (std::string_view root : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}) {
      for (std::string_view file : {"memory.limit_in_bytes", "memory.max"}) {
        auto text = RealFileSystem().ReadFile(StrCat(root, group_, "/", id, "/", file));
        if (text.ok()) return std::string(Trim(*text));
      }
    }
    return "no file";
  }

  // A pod from sandbox to removal, with an agent restart in between. Failed calls are repeated, as
  // the pod worker does.
  void LiveThrough() {
    const auto sandbox = RunSandbox();
    ASSERT_TRUE(sandbox.ok());
    const auto id = Create(*sandbox, "");
    ASSERT_TRUE(id.ok());
    Start(*id);
    const int pid = Status(*id).pid;
    auto executed = Twice("exec", [&] {
      return Exec(*id, {"/bin/sh", "-c", "echo out; exit 5"}, std::chrono::seconds(20));
    });
    ASSERT_TRUE(executed.ok());
    EXPECT_EQ(executed->exit_code, 5);
    EXPECT_EQ(executed->output, "out\n");
    Twice("update", [&] {
      return Call<void>([&](Runtime& runtime, Done done) {
        ResourceUpdate update;
        update.container.memory_limit_bytes = 48 << 20;
        update.pod.memory_limit_bytes = 96 << 20;
        runtime.UpdateContainer(*id, std::move(update), std::move(done));
      });
    });
    EXPECT_EQ(MemoryLimit(*id), std::to_string(48 << 20)) << "after " << files_.failed();
    Restart();
    EXPECT_EQ(Status(*id).state, ContainerState::kRunning) << "after " << files_.failed();
    EXPECT_EQ(Status(*id).pid, pid) << "after " << files_.failed();
    EXPECT_THAT(Running(mark_), ::testing::ElementsAre(pid)) << "after " << files_.failed();
    EXPECT_EQ(Exits(*id), 0u);
    if (HasFailure()) return;
    harness_->LetItEnd(*id);
    EXPECT_EQ(WaitForExit(*id).exit_code, 7) << "after " << files_.failed();
    RemoveAll(*sandbox, *id);
    EXPECT_EQ(Exits(*id), 1u) << "after " << files_.failed();
  }

  FaultyFileSystem files_{RealFileSystem()};
  std::unique_ptr<RuntimeHarness> harness_;
  std::string mark_;
  std::string root_;
  std::string group_;
  int pods_ = 0;
};

TEST_F(OciFaultsTest, RecoversFromEachFailingFileOperation) {
  const std::size_t before = files_.calls();
  ASSERT_NO_FATAL_FAILURE(LiveThrough());
  const std::size_t calls = files_.calls() - before;
  EXPECT_GT(calls, 50u);
  for (std::size_t call = 0; call < calls && !HasFailure(); ++call) {
    SCOPED_TRACE(call);
    files_.FailCall(call);
    LiveThrough();
    // So that the log shows what was tried.
    std::fprintf(stderr, "%zu of %zu: %s\n", call, calls, files_.failed().c_str());
    files_.Stop();
  }
  ImageStore images(RealFileSystem(), RealRandom(), root_ + "/images");
  EXPECT_TRUE(images.Remove("busybox").ok());
}

TEST_F(OciFaultsTest, AContainerSurvivesAFailedLookupOfItsConmon) {
  const auto sandbox = RunSandbox();
  for (const std::string path : {"/conmon.pid", "/cmdline"}) {
    SCOPED_TRACE(path);
    files_.FailNext("read", path);
    const auto id = Create(*sandbox, "");
    ASSERT_TRUE(id.ok());
    Start(*id);
    ASSERT_NE(files_.failed(), "");
    files_.FailNext("read", path);
    Restart();
    ASSERT_NE(files_.failed(), "");
    files_.FailNext("read", "/exits/");
    harness_->LetItEnd(*id);
    EXPECT_EQ(WaitForExit(*id).exit_code, 7);
    ASSERT_NE(files_.failed(), "");
    Twice("remove container", [&] {
      return Call<void>(
          [&](Runtime& runtime, Done done) { runtime.RemoveContainer(*id, std::move(done)); });
    });
  }
  RemoveAll(*sandbox, "");
}

TEST_F(OciFaultsTest, AnExitThatCouldNotBeReadIsReadAgain) {
  const auto sandbox = RunSandbox();
  const auto id = Create(*sandbox, "");
  ASSERT_TRUE(id.ok());
  Start(*id);
  harness_->KillAgent();
  harness_->LetItEnd(*id);
  ASSERT_TRUE(harness_->WaitForUnseenExit(*id));
  ASSERT_TRUE(harness_->WaitUntil([&] { return Running(*id).empty(); }));
  // Not by Open, and not once its conmon is found gone.
  files_.FailNext("read", "/exits/", 3);
  ASSERT_TRUE(harness_->TryToStartAgent().ok());
  EXPECT_EQ(WaitForExit(*id).exit_code, 7);
  RemoveAll(*sandbox, *id);
}

TEST_F(OciFaultsTest, ACommandThatTimesOutIsKilledEvenIfItsPidCannotBeRead) {
  const auto sandbox = RunSandbox();
  const auto id = Create(*sandbox, "");
  ASSERT_TRUE(id.ok());
  Start(*id);
  const std::string mark = StrCat("1000", ::getpid());
  files_.FailNext("read", "/exec-");
  auto result = Exec(*id, {"/bin/sleep", mark}, std::chrono::milliseconds(500));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_NE(files_.failed(), "");
  EXPECT_THAT(Running(mark), IsEmpty()) << "the command lives on";
  RemoveAll(*sandbox, *id);
}

TEST_F(OciFaultsTest, ACommandOfAKilledAgentIsKilledEvenIfReadingItsPidFailsOnce) {
  const auto sandbox = RunSandbox();
  const auto id = Create(*sandbox, "");
  ASSERT_TRUE(id.ok());
  Start(*id);
  const std::string mark = StrCat("2000", ::getpid());
  const std::pair<const char*, std::string> faults[] = {
      {"list", "/containers/" + *id}, {"read", "/exec-"}, {"read", "/cgroup"}};
  for (const auto& [what, path] : faults) {
    SCOPED_TRACE(path);
    harness_->OnLoop([&](Runtime& runtime) {
      runtime.ExecSync(*id, {"/bin/sleep", mark}, std::chrono::seconds(100),
                       [](Result<ExecResult>) {});
    });
    ASSERT_TRUE(harness_->WaitUntil([&] { return !Running(mark).empty(); }));
    files_.FailNext(what, path);
    Restart();
    EXPECT_NE(files_.failed(), "");
    ASSERT_TRUE(harness_->WaitUntil([&] { return Running(mark).empty(); }))
        << "the command lives on";
  }
  RemoveAll(*sandbox, *id);
}

// A damaged record does not name the cgroup; the bundle does.
TEST_F(OciFaultsTest, AContainerWithADamagedRecordIsKilled) {
  const auto sandbox = RunSandbox();
  const auto id = Create(*sandbox, "");
  ASSERT_TRUE(id.ok());
  Start(*id);
  ASSERT_TRUE(harness_->WaitUntil([&] { return Running(mark_).size() == 1; }));
  harness_->KillAgent();
  ASSERT_TRUE(RealFileSystem()
                  .WriteFile(root_ + "/runtime/containers/" + *id + "/state.json", "torn", 0600)
                  .ok());
  ASSERT_TRUE(harness_->TryToStartAgent().ok());
  EXPECT_THAT(Running(mark_), IsEmpty()) << "an orphan";
  RemoveAll(*sandbox, *id);
}

}  // namespace
}  // namespace drakkar::node
