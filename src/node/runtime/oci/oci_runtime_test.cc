// What only real containers can show; the rest is in the contract test.
#include "node/runtime/oci/oci_runtime.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/env/file_system.h"
#include "base/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node/runtime/oci/pid_namespace.h"
#include "node/runtime/oci/record.h"
#include "node/runtime/testing/runtime_harness.h"

namespace drakkar::node {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Program = RuntimeHarness::Program;

class OciRuntimeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    harness_ = MakeOciHarness(why);
    if (!harness_) GTEST_SKIP() << "no real containers here: " << why;
    sandbox_config_ = harness_->SandboxConfig("oci");
    root_ = DirectoryName(DirectoryName(sandbox_config_.log_directory)) + "/runtime";
  }
  void RunSandbox() {
    auto id =
        Await<std::string>(*harness_, [&](Runtime& runtime, RuntimeCallback<std::string> done) {
          runtime.RunPodSandbox(sandbox_config_, std::move(done));
        });
    ASSERT_TRUE(id.ok()) << id.error().message;
    sandbox_ = *id;
  }
  ContainerConfig Script(const std::string& script) {
    ContainerConfig config = harness_->ConfigFor(Program::kPrintsAndExits3);
    config.command = {"/bin/sh", "-c", script};
    return config;
  }
  Result<std::string> Create(const ContainerConfig& config) {
    return Await<std::string>(*harness_, [&](Runtime& runtime, RuntimeCallback<std::string> done) {
      runtime.CreateContainer(sandbox_, config, std::move(done));
    });
  }
  Result<void> Start(const std::string& id) {
    return Await<void>(*harness_, [&](Runtime& runtime, RuntimeCallback<void> done) {
      runtime.StartContainer(id, std::move(done));
    });
  }
  ContainerStatus Status(const std::string& id) {
    ContainerStatus status;
    harness_->OnLoop([&](Runtime& runtime) { status = *runtime.GetContainerStatus(id); });
    return status;
  }
  ContainerStatus WaitForExit(const std::string& id) {
    EXPECT_TRUE(harness_->WaitUntil([&] {
      return std::any_of(harness_->exits().begin(), harness_->exits().end(),
                         [&](const ContainerStatus& status) { return status.id == id; });
    }));
    return Status(id);
  }
  // Runs a container to its end and returns its log.
  std::string LogOf(const ContainerConfig& config) {
    auto id = Create(config);
    EXPECT_TRUE(id.ok()) << (id.ok() ? "" : id.error().message);
    if (!id.ok()) return "";
    auto started = Start(*id);
    EXPECT_TRUE(started.ok()) << (started.ok() ? "" : started.error().message);
    if (!started.ok()) return "";
    auto log = RealFileSystem().ReadFile(WaitForExit(*id).log_path);
    return log.ok() ? *log : "";
  }
  void CleanUp() {
    auto removed = Await<void>(*harness_, [&](Runtime& runtime, RuntimeCallback<void> done) {
      runtime.RemovePodSandbox(sandbox_, std::move(done));
    });
    ASSERT_TRUE(removed.ok()) << removed.error().message;
    EXPECT_THAT(harness_->Leftovers(), IsEmpty());
  }

  std::unique_ptr<RuntimeHarness> harness_;
  PodSandboxConfig sandbox_config_;
  std::string root_;
  std::string sandbox_;
};

TEST_F(OciRuntimeTest, AppliesMountsDevicesHooksUserAndHostname) {
  RunSandbox();
  const std::string shared = DirectoryName(root_) + "/shared";
  ASSERT_TRUE(RealFileSystem().MakeDirectories(shared, 0755).ok());
  ASSERT_TRUE(RealFileSystem().WriteFile(shared + "/data", "from-host\n", 0644).ok());
  ContainerConfig config = Script(
      "cat /mnt/data; echo x > /mnt/data || echo readonly; id; hostname; ls -l /dev/my-null; pwd;"
      "cat /etc/hostname; touch /tmp/ok && echo writable");
  Mount mount;
  mount.host_path = shared;
  mount.container_path = "/mnt";
  mount.readonly = true;
  config.mounts.push_back(mount);
  DeviceNode device;
  device.host_path = "/dev/null";
  device.container_path = "/dev/my-null";
  config.devices.push_back(device);
  config.security.user = "guest";
  config.security.supplemental_groups = {4242};
  config.working_directory = "/tmp";
  config.hooks.push_back(
      {"createRuntime", "/bin/sh", {"sh", "-c", "echo ran > " + shared + "/hook"}, {}, {}});
  config.hooks.push_back(
      {"poststop", "/bin/sh", {"sh", "-c", "echo ran > " + shared + "/poststop"}, {}, {}});
  const std::string log = LogOf(config);
  EXPECT_THAT(log, HasSubstr(" F from-host\n"));
  EXPECT_THAT(log, HasSubstr(" F readonly\n"));
  EXPECT_THAT(log, HasSubstr("uid=1000(guest) gid=1000(guest)"));
  EXPECT_THAT(log, HasSubstr("44(video)"));
  EXPECT_THAT(log, HasSubstr("4242"));
  EXPECT_THAT(log, HasSubstr(" F pod-host\n"));
  EXPECT_THAT(log, HasSubstr("1,   3"));
  EXPECT_THAT(log, HasSubstr(" F /tmp\n"));
  EXPECT_TRUE(RealFileSystem().Exists(shared + "/hook"));
  EXPECT_TRUE(RealFileSystem().Exists(shared + "/poststop")) << "before the exit is reported";
  CleanUp();
}

TEST_F(OciRuntimeTest, ContainersOfAPodShareIpcAndHostnameButNotProcesses) {
  RunSandbox();
  auto writer = Create(Script("echo shared > /dev/shm/x; sleep 100"));
  ASSERT_TRUE(writer.ok() && Start(*writer).ok());
  ContainerConfig reader =
      Script("until [ -e /dev/shm/x ]; do sleep 0.01; done; cat /dev/shm/x; hostname; echo pid $$");
  reader.name = "reader";
  reader.log_path = "reader/0.log";
  const std::string log = LogOf(reader);
  EXPECT_THAT(log, HasSubstr(" F shared\n"));
  EXPECT_THAT(log, HasSubstr(" F pid 1\n"));
  CleanUp();
}

TEST_F(OciRuntimeTest, ContainersOfAPodMayShareTheirProcesses) {
  sandbox_config_.share_process_namespace = true;
  RunSandbox();
  // The second process becomes an orphan and ends.
  ContainerConfig impostor = Script("(sleep 0.1 &); exec sleep 1234");
  impostor.environment.push_back({"DRAKKAR_POD_SANDBOX", sandbox_});
  auto first = Create(impostor);
  ASSERT_TRUE(first.ok() && Start(*first).ok());
  EXPECT_THAT(*FindHolders(sandbox_), SizeIs(1)) << "a container is not taken for the holder";
  harness_->KillAgent();
  harness_->StartAgent();
  ContainerConfig second = Script(
      "sleep 0.5; cat /proc/1/comm; grep -l Z.*zombie /proc/[0-9]*/status || echo no zombies;"
      "for p in $(busybox pidof sleep); do echo sleeps $p; kill $p; done");
  second.name = "second";
  second.log_path = "second/0.log";
  const std::string log = LogOf(second);
  EXPECT_THAT(log, HasSubstr(" F sleep\n"));
  EXPECT_THAT(log, HasSubstr(" F no zombies\n"));
  EXPECT_THAT(log, HasSubstr(" F sleeps 1\n"));
  EXPECT_EQ(WaitForExit(*first).exit_code, 143) << "one container can end the other: " << log;
  EXPECT_THAT(*FindHolders(sandbox_), SizeIs(1));
  const std::string name = sandbox_;
  CleanUp();
  EXPECT_TRUE(harness_->WaitUntil([&] { return FindHolders(name)->empty(); }));
}

TEST_F(OciRuntimeTest, ReportsWhyAContainerDidNotStart) {
  RunSandbox();
  ContainerConfig config = Script("");
  config.command = {"/no/such/program"};
  auto id = Create(config);
  ASSERT_TRUE(id.ok());
  auto started = Start(*id);
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().message, HasSubstr("start container main: "));
  EXPECT_THAT(started.error().message, HasSubstr("/no/such/program"));
  EXPECT_THAT(started.error().message, HasSubstr("no such file or directory"));
  EXPECT_THAT(started.error().message, Not(HasSubstr("level=")));
  const ContainerStatus status = Status(*id);
  EXPECT_EQ(status.state, ContainerState::kExited);
  EXPECT_EQ(status.exit_code, 128);
  EXPECT_EQ(status.reason, kReasonStartError);
  CleanUp();
}

TEST_F(OciRuntimeTest, ReportsAnOomKill) {
  RunSandbox();
  // head buffers nothing, so tail has to keep it all: one line of endless zero bytes.
  ContainerConfig config = Script("exec tail -n 1 /dev/zero");
  config.resources.memory_limit_bytes = 16 << 20;
  auto id = Create(config);
  ASSERT_TRUE(id.ok());
  auto started = Start(*id);
  ASSERT_TRUE(started.ok()) << started.error().message;
  const ContainerStatus status = WaitForExit(*id);
  EXPECT_EQ(status.exit_code, 137);
  EXPECT_EQ(status.reason, kReasonOomKilled);
  CleanUp();
}

TEST_F(OciRuntimeTest, KillsAContainerWhoseConmonIsGone) {
  RunSandbox();
  auto id = Create(harness_->ConfigFor(Program::kRunsUntilStopped));
  ASSERT_TRUE(id.ok() && Start(*id).ok());
  auto text = RealFileSystem().ReadFile(root_ + "/containers/" + *id + "/conmon.pid");
  ASSERT_TRUE(text.ok());
  ASSERT_EQ(::kill(std::stoi(*text), SIGKILL), 0);
  const ContainerStatus status = WaitForExit(*id);
  EXPECT_EQ(status.exit_code, 137);
  EXPECT_THAT(status.message, HasSubstr("conmon"));
  CleanUp();
}

TEST_F(OciRuntimeTest, RemovesIncompleteContainersAndSandboxesWhenOpened) {
  RunSandbox();
  harness_->KillAgent();
  FileSystem& files = RealFileSystem();
  ContainerRecord half;
  half.id = "half";
  half.phase = Phase::kCreating;
  ASSERT_TRUE(files.MakeDirectories(root_ + "/containers/half/rootfs", 0755).ok());
  ASSERT_TRUE(files.WriteFile(root_ + "/containers/half/state.json", WriteRecord(half), 0600).ok());
  ASSERT_TRUE(files.MakeDirectories(root_ + "/containers/torn", 0755).ok());
  ASSERT_TRUE(files.WriteFile(root_ + "/containers/torn/state.json", "", 0600).ok());
  ASSERT_TRUE(files.MakeDirectories(root_ + "/sandboxes/empty", 0755).ok());
  harness_->StartAgent();
  harness_->OnLoop([&](Runtime& runtime) {
    EXPECT_THAT(runtime.ListContainers(), IsEmpty());
    EXPECT_EQ(runtime.ListPodSandboxes().size(), 1u);
  });
  CleanUp();
}

TEST_F(OciRuntimeTest, CompletesOrUndoesAStartThatTheAgentDidNotSurvive) {
  RunSandbox();
  auto id = Create(harness_->ConfigFor(Program::kEndsWhenTold));
  ASSERT_TRUE(id.ok());
  // The agent is killed at some point of the start: the answer never arrives.
  harness_->OnLoop([&](Runtime& runtime) { runtime.StartContainer(*id, [](Result<void>) {}); });
  harness_->KillAgent();
  harness_->StartAgent();
  const ContainerStatus status = Status(*id);
  if (status.state == ContainerState::kCreated) {
    auto started = Start(*id);
    ASSERT_TRUE(started.ok()) << started.error().message;
  }
  EXPECT_EQ(Status(*id).state, ContainerState::kRunning);
  harness_->LetItEnd(*id);
  EXPECT_EQ(WaitForExit(*id).exit_code, 7);
  CleanUp();
}

TEST_F(OciRuntimeTest, ContinuesTheLogInANewFileAfterARotation) {
  RunSandbox();
  auto id = Create(Script("echo first; until [ -e /told ]; do sleep 0.01; done; echo second"));
  ASSERT_TRUE(id.ok() && Start(*id).ok());
  FileSystem& files = RealFileSystem();
  const std::string log = Status(*id).log_path;
  ASSERT_TRUE(harness_->WaitUntil([&] {
    auto text = files.ReadFile(log);
    return text.ok() && text->find("first") != std::string::npos;
  }));
  ASSERT_TRUE(files.Rename(log, log + ".1").ok());
  auto reopened = Await<void>(*harness_, [&](Runtime& runtime, RuntimeCallback<void> done) {
    runtime.ReopenLog(*id, std::move(done));
  });
  ASSERT_TRUE(reopened.ok()) << reopened.error().message;
  ASSERT_TRUE(harness_->WaitUntil([&] { return files.Exists(log); }));
  harness_->LetItEnd(*id);
  EXPECT_EQ(WaitForExit(*id).exit_code, 0);
  EXPECT_THAT(*files.ReadFile(log), HasSubstr("second"));
  EXPECT_THAT(*files.ReadFile(log + ".1"), Not(HasSubstr("second")));
  CleanUp();
}

TEST_F(OciRuntimeTest, KillsACommandThatTimesOut) {
  RunSandbox();
  auto id = Create(harness_->ConfigFor(Program::kRunsUntilStopped));
  ASSERT_TRUE(id.ok() && Start(*id).ok());
  auto result = Await<ExecResult>(*harness_, [&](Runtime& runtime,
                                                 RuntimeCallback<ExecResult> done) {
    runtime.ExecSync(*id, {"/bin/sleep", "1000"}, std::chrono::milliseconds(300), std::move(done));
  });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kDeadlineExceeded);
  auto missing =
      Await<ExecResult>(*harness_, [&](Runtime& runtime, RuntimeCallback<ExecResult> done) {
        runtime.ExecSync(*id, {"/no/such"}, std::chrono::seconds(20), std::move(done));
      });
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message, HasSubstr("/no/such"));
  CleanUp();
}

// Collects a process's output; lives on the runtime's loop.
class Listener final : public ProcessStreams::Events {
 public:
  void OnOutput(OutputStream stream, std::string_view bytes) override {
    (stream == OutputStream::kStandard ? output : error_output).append(bytes);
  }
  void OnInputDrained() override { ++drained; }
  void OnEnd(Result<int> code) override { end = std::move(code); }
  std::string output, error_output;
  int drained = 0;
  std::optional<Result<int>> end;
};

TEST_F(OciRuntimeTest, GivesACommandATerminalOfTheRequestedSize) {
  RunSandbox();
  auto id = Create(harness_->ConfigFor(Program::kRunsUntilStopped));
  ASSERT_TRUE(id.ok() && Start(*id).ok());
  Listener listener;
  std::unique_ptr<ProcessStreams> streams;
  harness_->OnLoop([&](Runtime& runtime) {
    auto started = runtime.Exec(
        *id,
        {"/bin/sh", "-c",
         "test -t 0 && echo terminal; until stty size | grep '42 100'; do sleep 0.01; done;"
         "read line; echo $line; exit 3"},
        {.standard_input = true, .standard_output = true, .terminal = true}, listener);
    ASSERT_TRUE(started.ok()) << started.error().message;
    streams = std::move(*started);
  });
  ASSERT_TRUE(
      harness_->WaitUntil([&] { return listener.output.find("terminal") != std::string::npos; }));
  harness_->OnLoop([&](Runtime&) { streams->Resize(100, 42); });
  ASSERT_TRUE(
      harness_->WaitUntil([&] { return listener.output.find("42 100") != std::string::npos; }));
  harness_->OnLoop([&](Runtime&) { streams->WriteInput("go\n"); });
  ASSERT_TRUE(harness_->WaitUntil([&] { return listener.end.has_value(); }));
  ASSERT_TRUE(listener.end->ok()) << listener.end->error().message;
  EXPECT_EQ(**listener.end, 3);
  EXPECT_THAT(listener.output, HasSubstr("go\r\ngo\r\n"))
      << "echoed by the terminal, then by the command";
  harness_->OnLoop([&](Runtime&) { streams.reset(); });
  CleanUp();
}

TEST_F(OciRuntimeTest, SaysWhyACommandCannotBeStarted) {
  RunSandbox();
  auto id = Create(harness_->ConfigFor(Program::kRunsUntilStopped));
  ASSERT_TRUE(id.ok() && Start(*id).ok());
  for (const bool terminal : {false, true}) {
    Listener listener;
    std::unique_ptr<ProcessStreams> streams;
    harness_->OnLoop([&](Runtime& runtime) {
      streams = *runtime.Exec(*id, {"/no/such"},
                              {.standard_output = true, .error_output = true, .terminal = terminal},
                              listener);
    });
    ASSERT_TRUE(harness_->WaitUntil([&] { return listener.end.has_value(); }));
    ASSERT_FALSE(listener.end->ok());
    EXPECT_THAT(listener.end->error().message, HasSubstr("/no/such"));
    EXPECT_EQ(listener.output + listener.error_output, "")
        << "the runtime's words are not the command's";
    harness_->OnLoop([&](Runtime&) { streams.reset(); });
  }
  CleanUp();
}

TEST_F(OciRuntimeTest, MakesACommandWaitForASlowListener) {
  RunSandbox();
  auto id = Create(harness_->ConfigFor(Program::kRunsUntilStopped));
  ASSERT_TRUE(id.ok() && Start(*id).ok());
  Listener listener;
  std::unique_ptr<ProcessStreams> streams;
  harness_->OnLoop([&](Runtime& runtime) {
    streams = *runtime.Exec(
        *id, {"/bin/sh", "-c", "dd if=/dev/zero bs=1024 count=4096 2>/dev/null; cat >/dev/null"},
        {.standard_input = true, .standard_output = true}, listener);
    streams->SetReading(false);
    // More than a pipe's capacity: the command reads it only after its output was read.
    streams->WriteInput(std::string(1 << 20, 'x'));
    EXPECT_GT(streams->pending_input(), 0u);
    streams->CloseInput();
  });
  harness_->OnLoop([&](Runtime&) { EXPECT_EQ(listener.output.size(), 0u); });
  harness_->OnLoop([&](Runtime&) { streams->SetReading(true); });
  ASSERT_TRUE(harness_->WaitUntil([&] { return listener.end.has_value(); }));
  EXPECT_EQ(listener.output.size(), 4u << 20);
  EXPECT_EQ(listener.drained, 1);
  harness_->OnLoop([&](Runtime&) { streams.reset(); });
  CleanUp();
}

TEST_F(OciRuntimeTest, KillsACommandWhoseListenerLeft) {
  RunSandbox();
  auto id = Create(harness_->ConfigFor(Program::kRunsUntilStopped));
  ASSERT_TRUE(id.ok() && Start(*id).ok());
  auto runs = [&](const std::string& mark) {
    FileSystem& files = RealFileSystem();
    const auto entries = files.ListDirectory("/proc");
    for (const std::string& entry : *entries) {
      auto line = files.ReadFile(StrCat("/proc/", entry, "/cmdline"));
      if (line.ok() && line->find(mark) != std::string::npos &&
          line->find("runc") == std::string::npos)
        return true;
    }
    return false;
  };
  for (const bool agent_dies : {false, true}) {
    const std::string mark = StrCat("1000", ::getpid() % 1000, agent_dies ? "1" : "0");
    Listener listener;
    std::unique_ptr<ProcessStreams> streams;
    harness_->OnLoop([&](Runtime& runtime) {
      streams = *runtime.Exec(*id, {"/bin/sleep", mark}, {.standard_output = true}, listener);
    });
    ASSERT_TRUE(harness_->WaitUntil([&] { return runs(mark); }));
    if (agent_dies) {
      harness_->KillAgent();
      harness_->StartAgent();
    }
    harness_->OnLoop([&](Runtime&) { streams.reset(); });
    ASSERT_TRUE(harness_->WaitUntil([&] { return !runs(mark); }));
  }
  CleanUp();
}

TEST_F(OciRuntimeTest, ChangesTheLimitsOfARunningContainer) {
  sandbox_config_.resources.memory_limit_bytes = 64 << 20;
  RunSandbox();
  ContainerConfig config = harness_->ConfigFor(Program::kRunsUntilStopped);
  config.resources.memory_limit_bytes = 64 << 20;
  auto id = Create(config);
  ASSERT_TRUE(id.ok() && Start(*id).ok());
  auto limit = [&] {
    for (std::string_view root : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}) {
      for (std::string_view file : {"memory.limit_in_bytes", "memory.max"}) {
        auto text = RealFileSystem().ReadFile(
            StrCat(root, "/drakkar/pod", sandbox_config_.uid, "/", *id, "/", file));
        if (text.ok()) return std::string(Trim(*text));
      }
    }
    return std::string("no file");
  };
  EXPECT_EQ(limit(), std::to_string(64 << 20));
  for (const std::int64_t bytes : {128 << 20, 32 << 20}) {
    auto updated = Await<void>(*harness_, [&](Runtime& runtime, RuntimeCallback<void> done) {
      ResourceUpdate update;
      update.container.memory_limit_bytes = bytes;
      update.pod.memory_limit_bytes = bytes;
      update.annotations["x"] = std::to_string(bytes);
      runtime.UpdateContainer(*id, std::move(update), std::move(done));
    });
    ASSERT_TRUE(updated.ok()) << updated.error().message;
    EXPECT_EQ(limit(), std::to_string(bytes));
    EXPECT_EQ(Status(*id).annotations.at("x"), std::to_string(bytes));
  }
  EXPECT_EQ(Status(*id).state, ContainerState::kRunning);
  CleanUp();
}

TEST_F(OciRuntimeTest, ChangesTheCpusOfAContainerBeforeAndAfterItsStart) {
  RunSandbox();
  ContainerConfig config = harness_->ConfigFor(Program::kRunsUntilStopped);
  config.cgroup_changes.cpuset_cpus = "0";
  auto id = Create(config);
  ASSERT_TRUE(id.ok());
  const auto change = [&](const std::string& cpus) {
    return Await<void>(*harness_, [&](Runtime& runtime, RuntimeCallback<void> done) {
      runtime.ChangeCgroup(*id, {.cpuset_cpus = cpus}, std::move(done));
    });
  };
  const auto cpus = [&] {
    const std::string text =
        *RealFileSystem().ReadFile(StrCat("/proc/", Status(*id).pid, "/status"));
    const std::size_t at = text.find("Cpus_allowed_list:");
    return std::string(Trim(text.substr(at + 18, text.find('\n', at) - at - 18)));
  };
  const long count = ::sysconf(_SC_NPROCESSORS_ONLN);
  const std::string second = count > 1 ? "1" : "0";
  ASSERT_TRUE(change(second).ok()) << "before its cgroup exists";
  ASSERT_TRUE(Start(*id).ok());
  EXPECT_EQ(cpus(), second);
  ASSERT_TRUE(change("0").ok());
  EXPECT_EQ(cpus(), "0");
  EXPECT_THAT(change("4096").error().message, HasSubstr("cpuset.cpus"));
  EXPECT_EQ(cpus(), "0");
  std::string spec;
  harness_->OnLoop([&](Runtime& runtime) { spec = *runtime.ContainerSpec(*id); });
  EXPECT_THAT(spec, HasSubstr("\"cpus\":\"0\""));
  CleanUp();
}

TEST_F(OciRuntimeTest, AttachesToTheContainerItself) {
  RunSandbox();
  ContainerConfig config =
      Script("while read line; do echo got $line; echo bad >&2; done; echo end");
  config.standard_input = true;
  config.standard_input_once = true;
  auto id = Create(std::move(config));
  ASSERT_TRUE(id.ok() && Start(*id).ok());
  Listener listener;
  std::unique_ptr<ProcessStreams> streams;
  harness_->OnLoop([&](Runtime& runtime) {
    auto attached = runtime.Attach(
        *id, {.standard_input = true, .standard_output = true, .error_output = true}, listener);
    ASSERT_TRUE(attached.ok()) << attached.error().message;
    streams = std::move(*attached);
    streams->WriteInput("this\n");
  });
  ASSERT_TRUE(harness_->WaitUntil(
      [&] { return listener.output == "got this\n" && listener.error_output == "bad\n"; }));
  harness_->OnLoop([&](Runtime&) { streams->CloseInput(); });
  ASSERT_TRUE(harness_->WaitUntil([&] { return listener.end.has_value(); }));
  EXPECT_EQ(listener.output, "got this\nend\n");
  EXPECT_EQ(WaitForExit(*id).exit_code, 0);
  harness_->OnLoop([&](Runtime&) { streams.reset(); });
  CleanUp();
}

TEST_F(OciRuntimeTest, StopsAContainerThatIsStillStarting) {
  RunSandbox();
  auto id = Create(harness_->ConfigFor(Program::kRunsUntilStopped));
  ASSERT_TRUE(id.ok());
  bool stopped = false;
  harness_->OnLoop([&](Runtime& runtime) {
    runtime.StartContainer(*id, [](Result<void>) {});
    runtime.StopContainer(*id, std::chrono::milliseconds(50),
                          [&](Result<void>) { stopped = true; });
  });
  ASSERT_TRUE(harness_->WaitUntil([&] { return stopped; }));
  EXPECT_EQ(Status(*id).state, ContainerState::kExited);
  CleanUp();
}

}  // namespace
}  // namespace drakkar::node
