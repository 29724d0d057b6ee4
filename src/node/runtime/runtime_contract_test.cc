#include "base/env/file_system.h"
#include "base/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node/runtime/runtime.h"
#include "node/runtime/testing/runtime_harness.h"

namespace drakkar::node {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Program = RuntimeHarness::Program;

class RuntimeContract : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string_view(GetParam()) == "hollow") {
      harness_ = MakeHollowHarness();
      return;
    }
    if (std::string_view(GetParam()) == "cri" || std::string_view(GetParam()) == "cri_polled") {
      harness_ = MakeCriHarness(std::string_view(GetParam()) == "cri");
      return;
    }
    std::string why;
    harness_ =
        std::string_view(GetParam()) == "oci" ? MakeOciHarness(why) : MakeContainerdHarness(why);
    if (!harness_) GTEST_SKIP() << "no real containers here: " << why;
  }

  std::string Sandbox(const std::string& uid = "uid-1") {
    auto config = harness_->SandboxConfig(uid);
    auto id =
        Await<std::string>(*harness_, [&](Runtime& runtime, RuntimeCallback<std::string> done) {
          runtime.RunPodSandbox(config, std::move(done));
        });
    EXPECT_TRUE(id.ok()) << (id.ok() ? "" : id.error().message);
    return id.ok() ? *id : "";
  }
  Result<std::string> Create(const std::string& sandbox, const ContainerConfig& config) {
    return Await<std::string>(*harness_, [&](Runtime& runtime, RuntimeCallback<std::string> done) {
      runtime.CreateContainer(sandbox, config, std::move(done));
    });
  }
  Result<void> Start(const std::string& id) {
    return Await<void>(*harness_, [&](Runtime& runtime, RuntimeCallback<void> done) {
      runtime.StartContainer(id, std::move(done));
    });
  }
  std::string Run(const std::string& sandbox, Program program, const std::string& name = "main") {
    ContainerConfig config = harness_->ConfigFor(program);
    config.name = name;
    config.log_path = name + "/0.log";
    auto id = Create(sandbox, config);
    EXPECT_TRUE(id.ok()) << (id.ok() ? "" : id.error().message);
    if (!id.ok()) return "";
    auto started = Start(*id);
    EXPECT_TRUE(started.ok()) << (started.ok() ? "" : started.error().message);
    if (program == Program::kRunsUntilStopped || program == Program::kIgnoresStopSignal)
      WaitForTrap(*id);
    return *id;
  }
  // A signal sent before the program has set its trap would be lost.
  void WaitForTrap(const std::string& id) {
    if (!harness_->has_real_processes()) return;
    const std::string log = Status(id).log_path;
    EXPECT_TRUE(harness_->WaitUntil([&] {
      const auto file = RealFileSystem().Stat(log);
      return file.ok() && file->size_bytes > 0;
    }));
  }
  Result<void> Stop(const std::string& id, Duration grace) {
    return Await<void>(*harness_, [&](Runtime& runtime, RuntimeCallback<void> done) {
      runtime.StopContainer(id, grace, std::move(done));
    });
  }
  Result<void> Remove(const std::string& id) {
    return Await<void>(*harness_, [&](Runtime& runtime, RuntimeCallback<void> done) {
      runtime.RemoveContainer(id, std::move(done));
    });
  }
  Result<void> RemoveSandbox(const std::string& id) {
    return Await<void>(*harness_, [&](Runtime& runtime, RuntimeCallback<void> done) {
      runtime.RemovePodSandbox(id, std::move(done));
    });
  }
  ContainerStatus Status(const std::string& id) {
    ContainerStatus status;
    harness_->OnLoop([&](Runtime& runtime) {
      auto found = runtime.GetContainerStatus(id);
      EXPECT_TRUE(found.ok());
      if (found.ok()) status = *found;
    });
    return status;
  }
  // Lets a little time pass.
  void Pause() {
    harness_->WaitUntil([looks = 0]() mutable { return ++looks > 3; });
  }
  bool WaitForExit(const std::string& id) {
    return harness_->WaitUntil([&] {
      return std::any_of(harness_->exits().begin(), harness_->exits().end(),
                         [&](const ContainerStatus& status) { return status.id == id; });
    });
  }
  std::size_t ExitsOf(const std::string& id) {
    return static_cast<std::size_t>(
        std::count_if(harness_->exits().begin(), harness_->exits().end(),
                      [&](const ContainerStatus& status) { return status.id == id; }));
  }

  std::unique_ptr<RuntimeHarness> harness_;
};

TEST_P(RuntimeContract, RunsAContainerAndReportsItsExitOnce) {
  const std::string sandbox = Sandbox();
  ContainerConfig config = harness_->ConfigFor(Program::kPrintsAndExits3);
  config.environment = {{"COLOR", "red"}, {"COLOR", "blue"}};
  config.labels = {{"app", "x"}};
  auto id = Create(sandbox, config);
  ASSERT_TRUE(id.ok()) << id.error().message;
  EXPECT_EQ(Status(*id).state, ContainerState::kCreated);
  auto started = Start(*id);
  ASSERT_TRUE(started.ok()) << started.error().message;
  ASSERT_TRUE(WaitForExit(*id));
  const ContainerStatus status = Status(*id);
  EXPECT_EQ(status.state, ContainerState::kExited);
  EXPECT_EQ(status.exit_code, 3);
  EXPECT_EQ(status.reason, kReasonError);
  EXPECT_EQ(status.name, "main");
  EXPECT_EQ(status.sandbox_id, sandbox);
  EXPECT_EQ(status.labels.at("app"), "x");
  EXPECT_EQ(status.pid, 0);
  EXPECT_LE(status.created_at, status.started_at);
  EXPECT_LE(status.started_at, status.finished_at + std::chrono::seconds(1));
  EXPECT_THAT(status.image_id, HasSubstr("sha256:"));
  EXPECT_EQ(ExitsOf(*id), 1u);
  if (harness_->has_real_processes()) {
    auto log = RealFileSystem().ReadFile(status.log_path);
    ASSERT_TRUE(log.ok()) << status.log_path;
    EXPECT_THAT(*log, HasSubstr(" stdout F COLOR=blue\n"));
    if (harness_->names_host_network_pods()) {
      EXPECT_THAT(*log, HasSubstr(" stdout F HOSTNAME=pod-host\n"));
    }
    EXPECT_THAT(*log, HasSubstr(" stderr F to-stderr\n"));
    // 2026-01-02T03:04:05.123456789+00:00 stdout F ...
    EXPECT_EQ((*log)[10], 'T');
  }
  ASSERT_TRUE(RemoveSandbox(sandbox).ok());
  EXPECT_THAT(harness_->Leftovers(), IsEmpty());
}

TEST_P(RuntimeContract, StopsWithTheStopSignalWithinTheGracePeriod) {
  const std::string sandbox = Sandbox();
  const std::string id = Run(sandbox, Program::kRunsUntilStopped);
  EXPECT_EQ(Status(id).state, ContainerState::kRunning);
  EXPECT_GT(Status(id).pid, 0);
  ASSERT_TRUE(Stop(id, std::chrono::seconds(30)).ok());
  EXPECT_EQ(Status(id).exit_code, 143);
  EXPECT_TRUE(Stop(id, std::chrono::seconds(30)).ok()) << "stopping what is stopped succeeds";
  ASSERT_TRUE(RemoveSandbox(sandbox).ok());
  EXPECT_THAT(harness_->Leftovers(), IsEmpty());
}

TEST_P(RuntimeContract, RunsPodsWithTheHandlersItHasAndRefusesOthers) {
  harness_->OnLoop([&](Runtime& runtime) {
    const auto handlers = runtime.Handlers();
    ASSERT_TRUE(handlers.has_value());
    EXPECT_THAT(*handlers, Contains(Field(&RuntimeHandler::name, harness_->handler())));
  });
  PodSandboxConfig config = harness_->SandboxConfig("uid-1");
  const auto run = [&](const std::string& handler) {
    config.runtime_handler = handler;
    return Await<std::string>(*harness_, [&](Runtime& runtime, RuntimeCallback<std::string> done) {
      runtime.RunPodSandbox(config, std::move(done));
    });
  };
  const auto unknown = run("nobody-has-this");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("nobody-has-this"));
  const auto sandbox = run(harness_->handler());
  ASSERT_TRUE(sandbox.ok()) << sandbox.error().message;
  const std::string id = Run(*sandbox, Program::kRunsUntilStopped);
  harness_->KillAgent();
  harness_->StartAgent();
  harness_->OnLoop([&](Runtime& runtime) {
    const auto sandboxes = runtime.ListPodSandboxes();
    ASSERT_EQ(sandboxes.size(), 1u);
    EXPECT_EQ(sandboxes[0].runtime_handler, harness_->handler());
  });
  Run(*sandbox, Program::kRunsUntilStopped, "second");
  ASSERT_TRUE(Stop(id, std::chrono::seconds(30)).ok());
  ASSERT_TRUE(RemoveSandbox(*sandbox).ok());
  EXPECT_THAT(harness_->Leftovers(), IsEmpty());
}

TEST_P(RuntimeContract, KillsAContainerThatOutlivesItsGracePeriod) {
  const std::string sandbox = Sandbox();
  const std::string id = Run(sandbox, Program::kIgnoresStopSignal);
  ASSERT_TRUE(Stop(id, std::chrono::milliseconds(100)).ok());
  EXPECT_EQ(Status(id).exit_code, 137);
  EXPECT_EQ(Status(id).reason, kReasonError);
  EXPECT_EQ(ExitsOf(id), 1u);
  ASSERT_TRUE(RemoveSandbox(sandbox).ok());
}

TEST_P(RuntimeContract, ASecondStopMayShortenTheGracePeriod) {
  const std::string sandbox = Sandbox();
  const std::string id = Run(sandbox, Program::kIgnoresStopSignal);
  bool first_done = false;
  harness_->OnLoop([&](Runtime& runtime) {
    runtime.StopContainer(id, std::chrono::minutes(9), [&](Result<void>) { first_done = true; });
  });
  ASSERT_TRUE(Stop(id, Duration::zero()).ok());
  EXPECT_EQ(Status(id).exit_code, 137);
  EXPECT_TRUE(harness_->WaitUntil([&] { return first_done; }));
  ASSERT_TRUE(RemoveSandbox(sandbox).ok());
}

TEST_P(RuntimeContract, RunsSeveralContainersInOnePod) {
  const std::string sandbox = Sandbox();
  const std::string a = Run(sandbox, Program::kRunsUntilStopped, "a");
  const std::string b = Run(sandbox, Program::kRunsUntilStopped, "b");
  const std::string c = Run(sandbox, Program::kPrintsAndExits3, "c");
  ASSERT_TRUE(WaitForExit(c));
  harness_->OnLoop([&](Runtime& runtime) {
    auto list = runtime.ListContainers();
    ASSERT_THAT(list, SizeIs(3));
    EXPECT_EQ(list[0].id, a);
    EXPECT_EQ(list[1].id, b);
    EXPECT_EQ(list[2].id, c);
    EXPECT_EQ(list[0].state, ContainerState::kRunning);
    EXPECT_EQ(list[2].state, ContainerState::kExited);
  });
  ASSERT_TRUE(Remove(a).ok()) << "a running one is killed first";
  ASSERT_TRUE(Remove(a).ok()) << "removing what is gone succeeds";
  harness_->OnLoop([&](Runtime& runtime) { EXPECT_FALSE(runtime.GetContainerStatus(a).ok()); });
  ASSERT_TRUE(RemoveSandbox(sandbox).ok());
  harness_->OnLoop([&](Runtime& runtime) {
    EXPECT_THAT(runtime.ListContainers(), IsEmpty());
    EXPECT_THAT(runtime.ListPodSandboxes(), IsEmpty());
  });
  EXPECT_THAT(harness_->Leftovers(), IsEmpty());
}

TEST_P(RuntimeContract, AdoptsRunningContainersAfterTheAgentDied) {
  const std::string sandbox = Sandbox();
  const std::string id = Run(sandbox, Program::kEndsWhenTold);
  const ContainerStatus before = Status(id);
  harness_->KillAgent();
  harness_->StartAgent();
  const ContainerStatus after = Status(id);
  EXPECT_EQ(after.state, ContainerState::kRunning);
  EXPECT_EQ(after.pid, before.pid) << "the same process, not a second one";
  EXPECT_EQ(after.started_at, before.started_at);
  harness_->OnLoop([&](Runtime& runtime) {
    ASSERT_THAT(runtime.ListPodSandboxes(), SizeIs(1));
    EXPECT_EQ(runtime.ListPodSandboxes()[0].state, SandboxState::kReady);
  });
  harness_->LetItEnd(id);
  ASSERT_TRUE(WaitForExit(id));
  EXPECT_EQ(Status(id).exit_code, 7);
  EXPECT_EQ(ExitsOf(id), 1u);
  ASSERT_TRUE(RemoveSandbox(sandbox).ok());
  EXPECT_THAT(harness_->Leftovers(), IsEmpty());
}

TEST_P(RuntimeContract, StopsAnAdoptedContainer) {
  const std::string sandbox = Sandbox();
  const std::string id = Run(sandbox, Program::kRunsUntilStopped);
  harness_->KillAgent();
  harness_->StartAgent();
  ASSERT_TRUE(Stop(id, std::chrono::seconds(30)).ok());
  EXPECT_EQ(Status(id).exit_code, 143);
  ASSERT_TRUE(RemoveSandbox(sandbox).ok());
  EXPECT_THAT(harness_->Leftovers(), IsEmpty());
}

TEST_P(RuntimeContract, ReportsAnExitThatHappenedWhileTheAgentWasDown) {
  const std::string sandbox = Sandbox();
  const std::string id = Run(sandbox, Program::kEndsWhenTold);
  harness_->KillAgent();
  harness_->LetItEnd(id);
  ASSERT_TRUE(harness_->WaitForUnseenExit(id));
  harness_->StartAgent();
  ASSERT_TRUE(WaitForExit(id));
  EXPECT_EQ(ExitsOf(id), 1u);
  const ContainerStatus status = Status(id);
  EXPECT_EQ(status.state, ContainerState::kExited);
  EXPECT_EQ(status.exit_code, 7);
  EXPECT_GT(status.finished_at, status.started_at);
  if (harness_->has_real_processes()) {
    auto log = RealFileSystem().ReadFile(status.log_path);
    ASSERT_TRUE(log.ok());
    EXPECT_THAT(*log, HasSubstr(" stdout F ended\n"));
  }
  harness_->KillAgent();
  harness_->StartAgent();
  EXPECT_EQ(Status(id).exit_code, 7);
  EXPECT_EQ(ExitsOf(id), 0u) << "what was reported and recorded is not news to the next agent";
  ASSERT_TRUE(RemoveSandbox(sandbox).ok());
  EXPECT_THAT(harness_->Leftovers(), IsEmpty());
}

TEST_P(RuntimeContract, KeepsCreatedContainersAcrossARestart) {
  const std::string sandbox = Sandbox();
  auto id = Create(sandbox, harness_->ConfigFor(Program::kPrintsAndExits3));
  ASSERT_TRUE(id.ok());
  harness_->KillAgent();
  harness_->StartAgent();
  EXPECT_EQ(Status(*id).state, ContainerState::kCreated);
  ASSERT_TRUE(Start(*id).ok());
  ASSERT_TRUE(WaitForExit(*id));
  EXPECT_EQ(Status(*id).exit_code, 3);
  ASSERT_TRUE(RemoveSandbox(sandbox).ok());
}

TEST_P(RuntimeContract, ExecutesACommandInARunningContainer) {
  const std::string sandbox = Sandbox();
  const std::string id = Run(sandbox, Program::kRunsUntilStopped);
  auto result =
      Await<ExecResult>(*harness_, [&](Runtime& runtime, RuntimeCallback<ExecResult> done) {
        runtime.ExecSync(id, {"/bin/sh", "-c", "echo out; echo err >&2; exit 5"},
                         std::chrono::seconds(20), std::move(done));
      });
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->exit_code, 5);
  EXPECT_EQ(result->output, "out\n");
  EXPECT_EQ(result->error_output, "err\n");
  ASSERT_TRUE(RemoveSandbox(sandbox).ok());
  auto late = Await<ExecResult>(*harness_, [&](Runtime& runtime, RuntimeCallback<ExecResult> done) {
    runtime.ExecSync(id, {"/bin/true"}, Duration::zero(), std::move(done));
  });
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, ErrorCode::kFailedPrecondition);
}

// Collects a command's output; lives on the runtime's loop.
class Listener final : public ProcessStreams::Events {
 public:
  void OnOutput(OutputStream stream, std::string_view bytes) override {
    (stream == OutputStream::kStandard ? output : error_output).append(bytes);
  }
  void OnInputDrained() override {}
  void OnEnd(Result<int> code) override {
    if (code.ok()) exit_code = *code;
    ended = true;
  }
  std::string output, error_output;
  int exit_code = -1;
  bool ended = false;
};

TEST_P(RuntimeContract, ConnectsStreamsToACommandInARunningContainer) {
  const std::string sandbox = Sandbox();
  const std::string id = Run(sandbox, Program::kRunsUntilStopped);
  Listener listener;
  std::unique_ptr<ProcessStreams> streams;
  harness_->OnLoop([&](Runtime& runtime) {
    auto started = runtime.Exec(
        id, {"/bin/sh", "-c", "cat; echo out; echo err >&2; exit 5"},
        {.standard_input = true, .standard_output = true, .error_output = true}, listener);
    ASSERT_TRUE(started.ok()) << started.error().message;
    streams = std::move(*started);
    EXPECT_FALSE(listener.ended) << "nothing from within the call";
    streams->WriteInput("one ");
    streams->WriteInput("two ");
    streams->CloseInput();
  });
  ASSERT_TRUE(harness_->WaitUntil([&] { return listener.ended; }));
  EXPECT_EQ(listener.output, "one two out\n");
  EXPECT_EQ(listener.error_output, "err\n");
  EXPECT_EQ(listener.exit_code, 5);
  harness_->OnLoop([&](Runtime&) { streams.reset(); });
  ASSERT_TRUE(RemoveSandbox(sandbox).ok());
  harness_->OnLoop([&](Runtime& runtime) {
    auto late = runtime.Exec(id, {"/bin/true"}, {}, listener);
    ASSERT_FALSE(late.ok());
    EXPECT_EQ(late.error().code, ErrorCode::kFailedPrecondition);
  });
}

// Collects what a port sends.
class PortListener final : public PortConnection::Events {
 public:
  void OnPortData(std::string_view bytes) override { received += bytes; }
  void OnPortDrained() override {}
  void OnPortEnd(Result<void> result) override {
    error = result.ok() ? "" : result.error().message;
    ended = true;
  }
  std::string received, error;
  bool ended = false;
};

TEST_P(RuntimeContract, ReachesAPortOfAPod) {
  const std::string sandbox = Sandbox();
  const std::uint16_t port = harness_->EchoPort();
  ContainerConfig config = harness_->ConfigFor(Program::kRunsUntilStopped);
  if (harness_->has_real_processes()) {
    config.command = {"/bin/sh", "-c", StrCat("while true; do nc -l -p ", port, " -e cat; done")};
  }
  auto id = Create(sandbox, config);
  ASSERT_TRUE(id.ok()) << id.error().message;
  ASSERT_TRUE(Start(*id).ok());
  const std::string text(100'000, 'x');
  PortListener listener;
  std::unique_ptr<PortConnection> connection;
  // Until the server listens, connections are refused.
  for (int i = 0; i < 500 && listener.received.empty(); ++i) {
    listener = {};
    harness_->OnLoop([&](Runtime& runtime) {
      auto connected = runtime.ConnectPort(sandbox, port, listener);
      ASSERT_TRUE(connected.ok()) << connected.error().message;
      EXPECT_FALSE(listener.ended) << "nothing from within the call";
      connection = std::move(*connected);
      connection->Write(text);
    });
    harness_->WaitUntil([&] { return listener.ended || listener.received.size() == text.size(); });
    if (!listener.received.empty()) break;
    harness_->OnLoop([&](Runtime&) { connection.reset(); });
    Pause();
  }
  EXPECT_EQ(listener.received, text) << listener.error;
  harness_->OnLoop([&](Runtime&) { connection->FinishWriting(); });
  EXPECT_TRUE(harness_->WaitUntil([&] { return listener.ended; }));
  EXPECT_EQ(listener.error, "");
  harness_->OnLoop([&](Runtime&) { connection.reset(); });
  ASSERT_TRUE(RemoveSandbox(sandbox).ok());
  harness_->OnLoop(
      [&](Runtime& runtime) { EXPECT_FALSE(runtime.ConnectPort(sandbox, port, listener).ok()); });
}

TEST_P(RuntimeContract, SaysHowToImportAMissingImage) {
  const std::string sandbox = Sandbox();
  ContainerConfig config = harness_->ConfigFor(Program::kPrintsAndExits3);
  config.image = "localhost/nowhere:1";
  auto id = Create(sandbox, config);
  ASSERT_FALSE(id.ok());
  EXPECT_EQ(id.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(id.error().message, HasSubstr(harness_->import_hint()));
  harness_->OnLoop([&](Runtime& runtime) { EXPECT_THAT(runtime.ListContainers(), IsEmpty()); });
  ASSERT_TRUE(RemoveSandbox(sandbox).ok());
  EXPECT_THAT(harness_->Leftovers(), IsEmpty());
}

TEST_P(RuntimeContract, KnowsAnImageByEveryFormOfItsName) {
  harness_->OnLoop([&](Runtime& runtime) {
    for (const char* name :
         {"busybox", "busybox:latest", "library/busybox", "docker.io/library/busybox"}) {
      EXPECT_TRUE(runtime.ImageStatus(name).ok()) << name;
    }
    EXPECT_FALSE(runtime.ImageStatus("busybox:other").ok());
    EXPECT_THAT(runtime.ListImages(), SizeIs(harness_->image_count()));
  });
}

TEST_P(RuntimeContract, StoppingASandboxKillsItsContainersAndRefusesNewOnes) {
  const std::string sandbox = Sandbox();
  const std::string id = Run(sandbox, Program::kIgnoresStopSignal);
  ASSERT_TRUE(Await<void>(*harness_, [&](Runtime& runtime, RuntimeCallback<void> done) {
                runtime.StopPodSandbox(sandbox, std::move(done));
              }).ok());
  EXPECT_EQ(Status(id).exit_code, 137);
  harness_->OnLoop([&](Runtime& runtime) {
    ASSERT_THAT(runtime.ListPodSandboxes(), SizeIs(1));
    EXPECT_EQ(runtime.ListPodSandboxes()[0].state, SandboxState::kNotReady);
  });
  auto refused = Create(sandbox, harness_->ConfigFor(Program::kPrintsAndExits3));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kFailedPrecondition);
  ASSERT_TRUE(RemoveSandbox(sandbox).ok());
  ASSERT_TRUE(RemoveSandbox(sandbox).ok()) << "removing what is gone succeeds";
  EXPECT_THAT(harness_->Leftovers(), IsEmpty());
}

TEST_P(RuntimeContract, SurvivesARestartOfTheRuntimesOwnProcess) {
  const std::string sandbox = Sandbox();
  const std::string id = Run(sandbox, Program::kEndsWhenTold);
  const ContainerStatus before = Status(id);
  if (!harness_->RestartRuntime()) {
    ASSERT_TRUE(RemoveSandbox(sandbox).ok());
    GTEST_SKIP() << "its runtime is no process of its own";
  }
  // Until the new process answers, calls fail.
  bool answered = false;
  for (int i = 0; i < 1000 && !answered; ++i) {
    Pause();
    auto done =
        Await<ExecResult>(*harness_, [&](Runtime& runtime, RuntimeCallback<ExecResult> callback) {
          runtime.ExecSync(id, {"/bin/true"}, std::chrono::seconds(20), std::move(callback));
        });
    answered = done.ok();
  }
  ASSERT_TRUE(answered);
  EXPECT_EQ(Status(id).pid, before.pid);
  EXPECT_EQ(ExitsOf(id), 0u);
  harness_->LetItEnd(id);
  ASSERT_TRUE(WaitForExit(id));
  EXPECT_EQ(Status(id).exit_code, 7);
  ASSERT_TRUE(RemoveSandbox(sandbox).ok());
  EXPECT_THAT(harness_->Leftovers(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(All, RuntimeContract,
                         ::testing::Values("hollow", "oci", "cri", "cri_polled", "containerd"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace drakkar::node
