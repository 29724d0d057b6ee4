#include "node/runtime/testing/runtime_harness.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>

#include "base/env/file_system.h"
#include "base/env/random.h"
#include "base/exec/uv_loop.h"
#include "base/exec/worker_pool.h"
#include "base/result/check.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "node/runtime/hollow/hollow_runtime.h"
#include "node/runtime/oci/cgroups.h"
#include "node/runtime/oci/conmon.h"
#include "node/runtime/oci/host.h"
#include "node/runtime/oci/oci_runtime.h"
#include "node/runtime/testing/tar_writer.h"

namespace drakkar::node {

HollowProgram HollowProgramFor(const ContainerConfig& config) {
  HollowProgram program;
  const std::string& name = config.command.at(0);
  if (name == "prints") {
    program.runs_for = std::chrono::milliseconds(10);
    program.exit_code = 3;
  }
  if (name == "ends") {
    program.runs_for = std::chrono::hours(1);
    program.exit_code = 7;
  }
  program.ignores_stop_signal = name == "ignores";
  program.exec = [](const std::vector<std::string>&) { return ExecResult{5, "out\n", "err\n"}; };
  return program;
}

ContainerConfig HollowConfigFor(RuntimeHarness::Program program) {
  using Program = RuntimeHarness::Program;
  ContainerConfig config;
  config.name = "main";
  config.image = "busybox";
  config.command = {program == Program::kPrintsAndExits3    ? "prints"
                    : program == Program::kRunsUntilStopped ? "runs"
                    : program == Program::kEndsWhenTold     ? "ends"
                                                            : "ignores"};
  return config;
}

PodSandboxConfig HollowSandboxConfig(const std::string& uid) {
  PodSandboxConfig config;
  config.name = "pod";
  config.namespace_name = "default";
  config.uid = uid;
  config.hostname = "pod-host";
  config.log_directory = "/logs/" + uid;
  return config;
}

ContainerConfig OciConfigFor(RuntimeHarness::Program program) {
  using Program = RuntimeHarness::Program;
  ContainerConfig config;
  config.name = "main";
  config.image = "busybox";
  config.log_path = "main/0.log";
  std::string script;
  switch (program) {
    case Program::kPrintsAndExits3:
      script = "env; echo to-stderr >&2; exit 3";
      break;
    case Program::kRunsUntilStopped:
      script = "trap 'exit 143' TERM; echo ready; while true; do sleep 0.02; done";
      break;
    case Program::kIgnoresStopSignal:
      script = "trap '' TERM; echo ready; while true; do sleep 0.02; done";
      break;
    case Program::kEndsWhenTold:
      script = "while [ ! -e /told ]; do sleep 0.01; done; echo ended; exit 7";
      break;
  }
  config.command = {"/bin/sh", "-c", script};
  return config;
}

namespace {

class HollowHarness final : public RuntimeHarness {
 public:
  HollowHarness() {
    Image image;
    image.id = "sha256:" + std::string(64, 'a');
    image.names = {"docker.io/library/busybox:latest"};
    machine_.images.push_back(image);
    machine_.handlers = {{.name = "second"}};
    machine_.program_of = HollowProgramFor;
    StartAgent();
  }

  ContainerConfig ConfigFor(Program program) override { return HollowConfigFor(program); }
  PodSandboxConfig SandboxConfig(const std::string& uid) override {
    return HollowSandboxConfig(uid);
  }
  void LetItEnd(const std::string&) override { loop_.Advance(std::chrono::hours(1)); }
  void OnLoop(std::function<void(Runtime&)> call) override { call(*runtime_); }
  bool WaitUntil(std::function<bool()> until) override {
    for (int i = 0; i < 100; ++i) {
      loop_.RunUntilIdle();
      if (until()) return true;
      // Not longer than the container that exits when told.
      if (!loop_.AdvanceToNextTimer(std::chrono::minutes(10))) break;
    }
    loop_.RunUntilIdle();
    return until();
  }
  void KillAgent() override { runtime_.reset(); }
  void StartAgent() override {
    exits_.clear();
    runtime_ = MakeHollowRuntime(loop_, machine_);
    runtime_->OnExit([this](const ContainerStatus& status) { exits_.push_back(status); });
    bool opened = false;
    runtime_->Open([&](Result<void> result) { opened = result.ok(); });
    loop_.RunUntilIdle();
    CHECK(opened);
    WaitUntil([] { return false; });
  }
  Result<void> TryToStartAgent() override {
    StartAgent();
    return Ok();
  }
  bool WaitForUnseenExit(const std::string&) override { return true; }
  std::vector<ContainerStatus>& exits() override { return exits_; }
  std::vector<std::string> Leftovers() override {
    std::vector<std::string> left;
    for (const auto& [id, unused] : machine_.sandboxes) left.push_back("sandbox " + id);
    for (const auto& [id, unused] : machine_.containers) left.push_back("container " + id);
    return left;
  }
  bool has_real_processes() const override { return false; }

 private:
  SeededLoop loop_;
  HollowMachine machine_;
  std::vector<ContainerStatus> exits_;
  std::unique_ptr<Runtime> runtime_;
};

class OciHarness final : public RuntimeHarness {
 public:
  OciHarness(std::string directory, FileSystem& files)
      : directory_(std::move(directory)),
        files_(files),
        images_(files, RealRandom(), directory_ + "/images"),
        thread_(std::make_unique<LoopThread>("runtime-test")),
        workers_(std::make_unique<WorkerPool>(2, 1000)) {}
  ~OciHarness() override {
    thread_->RunSync([this] { runtime_.reset(); });
    workers_.reset();
    thread_.reset();
    // Cleans up after a failed test. Without its processes a container's conmon exits by itself.
    if (auto groups = Cgroups::Detect(RealFileSystem()); groups.ok()) {
      for (const std::string& uid : uids_)
        static_cast<void>(groups->Remove("/drakkar/pod" + uid).ok());
    }
    static_cast<void>(UnmountAll(directory_).ok());
    static_cast<void>(RealFileSystem().RemoveTree(directory_).ok());
  }

  Result<void> Prepare() {
    ::signal(SIGPIPE, SIG_IGN);  // as the agent does
    const std::string tar = directory_ + "/busybox.tar";
    RETURN_IF_ERROR(RealFileSystem().WriteFile(tar, BusyboxRootfs(), 0600));
    ImportOptions options;
    options.name = "busybox";
    RETURN_IF_ERROR(images_.Import(tar, options));
    return OpenAgent();
  }

  ContainerConfig ConfigFor(Program program) override { return OciConfigFor(program); }
  PodSandboxConfig SandboxConfig(const std::string& uid) override {
    PodSandboxConfig config;
    config.name = "pod";
    config.namespace_name = "default";
    // Unique across test runs: the cgroup is named after it.
    config.uid = StrCat(uid, "-", ::getpid());
    config.hostname = "pod-host";
    config.log_directory = directory_ + "/logs/" + uid;
    uids_.push_back(config.uid);
    return config;
  }
  void LetItEnd(const std::string& id) override {
    const std::string path = directory_ + "/runtime/containers/" + id + "/rootfs/told";
    CHECK(RealFileSystem().WriteFile(path, "", 0644).ok());
  }
  void OnLoop(std::function<void(Runtime&)> call) override {
    thread_->RunSync([&] { call(*runtime_); });
  }
  bool WaitUntil(std::function<bool()> until) override {
    // The loop polls, so that the test need not know what happens next.
    auto state = std::make_shared<Waiting>();
    state->until = std::move(until);
    state->deadline = thread_->loop().clock().Monotonic() + std::chrono::seconds(30);
    thread_->RunSync([&] { Poll(state); });
    std::unique_lock lock(state->mutex);
    state->changed.wait(lock, [&] { return state->finished; });
    return state->held;
  }
  void KillAgent() override {
    thread_->RunSync([this] { runtime_.reset(); });
  }
  void StartAgent() override {
    auto opened = OpenAgent();
    if (!opened.ok()) std::fprintf(stderr, "open: %s\n", opened.error().message.c_str());
    CHECK(opened.ok());
  }
  Result<void> TryToStartAgent() override { return OpenAgent(); }
  bool WaitForUnseenExit(const std::string& id) override {
    const std::string path = directory_ + "/runtime/exits/" + id;
    return WaitUntil([path] { return RealFileSystem().Exists(path); });
  }
  std::vector<ContainerStatus>& exits() override { return exits_; }

  std::vector<std::string> Leftovers() override {
    std::vector<std::string> left;
    FileSystem& files = RealFileSystem();
    for (const char* name : {"sandboxes", "containers", "exits", "state"}) {
      auto names = files.ListDirectory(directory_ + "/runtime/" + name);
      if (!names.ok()) continue;
      for (const std::string& entry : *names) left.push_back(StrCat(name, "/", entry));
    }
    const auto images = files.ListDirectory(directory_ + "/images");
    for (const std::string& image : *images) {
      auto users = files.ListDirectory(StrCat(directory_, "/images/", image, "/uses"));
      if (!users.ok()) continue;
      for (const std::string& user : *users) left.push_back(StrCat("image of ", user));
    }
    auto mounts = files.ReadFile("/proc/self/mountinfo");
    for (std::string_view line : Split(*mounts, '\n')) {
      if (line.find(directory_) != std::string_view::npos) left.push_back(StrCat("mount ", line));
    }
    auto groups = Cgroups::Detect(files);
    for (const std::string& root : groups->roots()) {
      for (const std::string& uid : uids_) {
        const std::string path = root + "/drakkar/pod" + uid;
        if (files.Exists(path)) left.push_back("cgroup " + path);
      }
    }
    auto processes = files.ListDirectory("/proc");
    for (const std::string& pid : *processes) {
      auto arguments = files.ReadFile("/proc/" + pid + "/cmdline");
      if (arguments.ok() && arguments->find(directory_) != std::string::npos) {
        left.push_back("process " + pid + " " + arguments->substr(0, arguments->find('\0')));
      }
    }
    return left;
  }
  bool has_real_processes() const override { return true; }

 private:
  struct Waiting {
    std::function<bool()> until;
    std::mutex mutex;
    std::condition_variable changed;
    bool finished = false;
    bool held = false;
    TimerHandle timer;
    MonotonicTime deadline{};
  };

  void Poll(const std::shared_ptr<Waiting>& state) {
    const bool held = state->until();
    if (!held && thread_->loop().clock().Monotonic() < state->deadline) {
      state->timer =
          thread_->loop().RunAfter(std::chrono::milliseconds(5), [this, state] { Poll(state); });
      return;
    }
    state->timer.reset();
    std::lock_guard lock(state->mutex);
    state->held = held;
    state->finished = true;
    state->changed.notify_one();
  }

  Result<void> OpenAgent() {
    auto answer = std::make_shared<std::optional<Result<void>>>();
    thread_->RunSync([&] {
      exits_.clear();
      OciRuntimeOptions options;
      options.root = directory_ + "/runtime";
      const std::string second = directory_ + "/second-runtime";
      if (auto written = RealFileSystem().WriteFile(second, "#!/bin/sh\nexec runc \"$@\"\n", 0755);
          written.ok()) {
        options.handlers = {{"second", second}};
      }
      options.log = [](const std::string& text) {
        std::fprintf(stderr, "runtime: %s\n", text.c_str());
      };
      runtime_ = MakeOciRuntime(thread_->loop(), *workers_, files_, RealRandom(), images_,
                                std::move(options));
      runtime_->OnExit([this](const ContainerStatus& status) { exits_.push_back(status); });
      runtime_->Open([answer](Result<void> result) { answer->emplace(std::move(result)); });
    });
    if (!WaitUntil([answer] { return answer->has_value(); })) return Internal("no answer");
    return **answer;
  }

  std::string directory_;
  FileSystem& files_;
  ImageStore images_;
  std::unique_ptr<LoopThread> thread_;
  std::unique_ptr<WorkerPool> workers_;
  std::vector<std::string> uids_;
  std::vector<ContainerStatus> exits_;
  std::unique_ptr<Runtime> runtime_;
};

}  // namespace

std::unique_ptr<RuntimeHarness> MakeHollowHarness() {
  return std::make_unique<HollowHarness>();
}

std::unique_ptr<RuntimeHarness> MakeOciHarness(std::string& why) {
  return MakeOciHarness(why, RealFileSystem());
}

std::unique_ptr<RuntimeHarness> MakeOciHarness(std::string& why, FileSystem& files) {
  if (::geteuid() != 0) {
    why = "containers need root";
    return nullptr;
  }
  auto cgroups = Cgroups::Detect(RealFileSystem());
  if (!cgroups.ok()) {
    why = cgroups.error().message;
    return nullptr;
  }
  if (auto programs = FindPrograms(RealFileSystem(), "", cgroups->is_unified()); !programs.ok()) {
    why = programs.error().message;
    return nullptr;
  }
  if (BusyboxRootfs().empty()) {
    why = "busybox is not installed: run apt-get install busybox-static";
    return nullptr;
  }
  char pattern[] = "/tmp/drakkar-runtime-XXXXXX";
  CHECK(::mkdtemp(pattern) != nullptr);
  auto harness = std::make_unique<OciHarness>(pattern, files);
  auto prepared = harness->Prepare();
  if (!prepared.ok()) std::fprintf(stderr, "prepare: %s\n", prepared.error().message.c_str());
  CHECK(prepared.ok());
  return harness;
}

}  // namespace drakkar::node
