#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include "base/env/file_system.h"
#include "base/env/random.h"
#include "base/exec/uv_loop.h"
#include "base/hash/sha256.h"
#include "base/result/check.h"
#include "base/testing/memory_file_system.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "node/runtime/cri/cri_runtime.h"
#include "node/runtime/cri/http_stream_dialer.h"
#include "node/runtime/oci/cgroups.h"
#include "node/runtime/oci/host.h"
#include "node/runtime/testing/fake_cri.h"
#include "node/runtime/testing/runtime_harness.h"
#include "node/runtime/testing/tar_writer.h"
#include "rpc/testing/memory_transport.h"

namespace drakkar::node {
namespace {

constexpr char kSocket[] = "/run/cri.sock";

// CriRuntime against FakeCri, all on one seeded loop.
class CriHarness final : public RuntimeHarness {
 public:
  explicit CriHarness(bool has_events) : transport_(loop_) {
    Image image;
    image.id = "sha256:" + std::string(64, 'a');
    image.names = {"docker.io/library/busybox:latest"};
    machine_.images.push_back(image);
    machine_.handlers = {{.name = "second", .user_namespaces = true}};
    machine_.program_of = HollowProgramFor;
    fake_ = std::make_unique<FakeCri>(FakeCri::Options{.loop = loop_,
                                                       .transport = transport_,
                                                       .machine = machine_,
                                                       .socket_path = kSocket,
                                                       .has_events = has_events});
    fake_->Start();
    StartAgent();
  }

  ContainerConfig ConfigFor(Program program) override { return HollowConfigFor(program); }
  PodSandboxConfig SandboxConfig(const std::string& uid) override {
    return HollowSandboxConfig(uid);
  }
  void LetItEnd(const std::string&) override { loop_.Advance(std::chrono::hours(1)); }
  void OnLoop(std::function<void(Runtime&)> call) override { call(*runtime_); }
  bool WaitUntil(std::function<bool()> until) override {
    for (int i = 0; i < 30; ++i) {
      loop_.RunUntilIdle();
      if (until()) return true;
      if (!loop_.AdvanceToNextTimer(std::chrono::minutes(10))) break;
    }
    loop_.RunUntilIdle();
    return until();
  }
  void KillAgent() override { runtime_.reset(); }
  void StartAgent() override { CHECK(TryToStartAgent().ok()); }
  Result<void> TryToStartAgent() override {
    exits_.clear();
    runtime_ = MakeCriRuntime({.loop = loop_,
                               .transport = transport_,
                               .files = files_,
                               .socket_path = kSocket,
                               .reported_path = "/reported-exits",
                               .dial = fake_->Dialer()});
    runtime_->OnExit([this](const ContainerStatus& status) { exits_.push_back(status); });
    std::optional<Result<void>> opened;
    runtime_->Open([&](Result<void> result) { opened = std::move(result); });
    if (!WaitUntil([&] { return opened.has_value(); })) return Internal("no answer");
    return *opened;
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
  std::string import_hint() const override { return "import it"; }

 private:
  SeededLoop loop_;
  MemoryFileSystem files_;
  HollowMachine machine_;
  rpc::MemoryTransport transport_;
  std::unique_ptr<FakeCri> fake_;
  std::vector<ContainerStatus> exits_;
  std::unique_ptr<CriRuntime> runtime_;
};

// An image as `ctr images import` takes it: an OCI layout in a tar archive.
std::string OciArchive(const std::string& name, const std::string& rootfs,
                       const std::string& entrypoint) {
  const std::string layer = "sha256:" + Sha256Hex(rootfs);
  const std::string config =
      StrCat(R"({"architecture":"amd64","os":"linux","config":{"Entrypoint":)", entrypoint,
             R"(},"rootfs":{"type":"layers","diff_ids":[")", layer, R"("]}})");
  const auto descriptor = [](const char* type, const std::string& bytes) {
    return StrCat(R"("mediaType":"application/vnd.oci.image.)", type, R"(","digest":"sha256:)",
                  Sha256Hex(bytes), R"(","size":)", bytes.size());
  };
  const std::string manifest = StrCat(
      R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{)",
      descriptor("config.v1+json", config), R"(},"layers":[{)", descriptor("layer.v1.tar", rootfs),
      "}]}");
  const std::string index =
      StrCat(R"({"schemaVersion":2,"manifests":[{)", descriptor("manifest.v1+json", manifest),
             R"(,"annotations":{"io.containerd.image.name":")", name, R"("}}]})");
  TarWriter tar;
  tar.File("oci-layout", R"({"imageLayoutVersion":"1.0.0"})");
  tar.File("index.json", index);
  for (const std::string& blob : {rootfs, config, manifest}) {
    tar.File("blobs/sha256/" + Sha256Hex(blob), blob);
  }
  return tar.Finish();
}

// Runs a program to its end; false if it fails.
bool RunProgram(const std::vector<std::string>& arguments, const std::string& log) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(fd, 1);
    ::dup2(fd, 2);
    std::vector<char*> argv;
    for (const std::string& each : arguments) argv.push_back(const_cast<char*>(each.c_str()));
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  return ::waitpid(pid, &status, 0) == pid && status == 0;
}

// CriRuntime against a containerd of its own, in a temporary directory.
class ContainerdHarness final : public RuntimeHarness {
 public:
  ContainerdHarness(std::string directory, std::string programs)
      : directory_(std::move(directory)),
        programs_(std::move(programs)),
        thread_(std::make_unique<LoopThread>("cri-test")) {
    thread_->RunSync([this] { transport_ = rpc::MakeGrpcTransport(thread_->loop()); });
  }
  ~ContainerdHarness() override {
    thread_->RunSync([this] {
      runtime_.reset();
      transport_.reset();
    });
    thread_.reset();
    // Cleans up after a failed test: shims outlive their containerd.
    for (const int pid : Processes()) ::kill(pid, SIGKILL);
    if (containerd_ > 0) ::waitpid(containerd_, nullptr, 0);
    static_cast<void>(UnmountAll(directory_).ok());
    static_cast<void>(RealFileSystem().RemoveTree(directory_).ok());
  }

  Result<void> Prepare() {
    FileSystem& files = RealFileSystem();
    const std::string text = StrCat(
        "version = 2\nroot = \"", directory_, "/root\"\nstate = \"", directory_,
        "/state\"\n[grpc]\n  address = \"", socket(), "\"\n[ttrpc]\n  address = \"", directory_,
        "/ttrpc\"\n[plugins.\"io.containerd.internal.v1.opt\"]\n  path = \"", directory_,
        "/opt\"\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  sandbox_image = "
        "\"localhost/pause:1\"\n  restrict_oom_score_adj = true\n"
        "  [plugins.\"io.containerd.grpc.v1.cri\".cni]\n    conf_dir = \"",
        directory_, "/cni\"\n[plugins.\"io.containerd.nri.v1.nri\"]\n  disable = true\n");
    RETURN_IF_ERROR(files.WriteFile(directory_ + "/config.toml", text, 0600));
    StartContainerd();
    const std::string rootfs = BusyboxRootfs();
    struct {
      const char* name;
      const char* entrypoint;
    } const kImages[] = {
        {"docker.io/library/busybox:latest", R"(["/bin/sh"])"},
        {"localhost/pause:1",
         R"(["/bin/sh","-c","trap 'exit 0' TERM; while true; do sleep 1000 & wait $!; done"])"}};
    for (const auto& image : kImages) {
      const std::string tar = directory_ + "/image.tar";
      RETURN_IF_ERROR(files.WriteFile(tar, OciArchive(image.name, rootfs, image.entrypoint), 0600));
      bool imported = false;
      for (int i = 0; i < 100 && !imported; ++i) {
        imported = RunProgram({programs_ + "/ctr", "-a", socket(), "-n", "k8s.io", "images",
                               "import", "--local", tar},
                              log()) ||
                   RunProgram({programs_ + "/ctr", "-a", socket(), "-n", "k8s.io", "images",
                               "import", tar},
                              log());
        if (!imported) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
      if (!imported) return Internal(StrCat("could not import ", image.name, ", see ", log()));
    }
    return OpenAgent();
  }

  ContainerConfig ConfigFor(Program program) override {
    ContainerConfig config = OciConfigFor(program);
    return config;
  }
  PodSandboxConfig SandboxConfig(const std::string& uid) override {
    PodSandboxConfig config;
    config.name = "pod";
    config.namespace_name = "default";
    config.uid = StrCat(uid, "-", ::getpid());
    config.hostname = "pod-host";
    config.log_directory = directory_ + "/logs/" + uid;
    // Its network is the host's, but its name is its own.
    uids_.push_back(config.uid);
    return config;
  }
  void LetItEnd(const std::string& id) override {
    const std::string path = tasks() + "/" + id + "/rootfs/told";
    CHECK(RealFileSystem().WriteFile(path, "", 0644).ok());
  }
  void OnLoop(std::function<void(Runtime&)> call) override {
    thread_->RunSync([&] { call(*runtime_); });
  }
  bool WaitUntil(std::function<bool()> until) override {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (;;) {
      bool held = false;
      thread_->RunSync([&] { held = until(); });
      if (held || std::chrono::steady_clock::now() > deadline) return held;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  void KillAgent() override {
    thread_->RunSync([this] { runtime_.reset(); });
  }
  void StartAgent() override {
    const auto opened = OpenAgent();
    if (!opened.ok()) std::fprintf(stderr, "open: %s\n", opened.error().message.c_str());
    CHECK(opened.ok());
  }
  Result<void> TryToStartAgent() override { return OpenAgent(); }
  bool WaitForUnseenExit(const std::string& id) override {
    const auto pid = RealFileSystem().ReadFile(tasks() + "/" + id + "/init.pid");
    return !pid.ok() || WaitUntil([process = "/proc/" + *pid + "/exe"] {
      return !RealFileSystem().ReadLink(process).ok();
    });
  }
  std::vector<ContainerStatus>& exits() override { return exits_; }
  std::vector<std::string> Leftovers() override {
    std::vector<std::string> left;
    // A shim ends a moment after its last container.
    WaitUntil([this] { return Processes().size() <= 1; });
    for (const int pid : Processes()) {
      if (pid != containerd_) left.push_back(StrCat("process ", pid));
    }
    if (auto names = RealFileSystem().ListDirectory(tasks()); names.ok()) {
      for (const std::string& name : *names) left.push_back("task " + name);
    }
    auto groups = Cgroups::Detect(RealFileSystem());
    WaitUntil([&] { return LeftCgroups(*groups).empty(); });
    for (std::string& path : LeftCgroups(*groups)) left.push_back("cgroup " + path);
    return left;
  }
  std::string handler() const override { return "runc"; }
  bool has_real_processes() const override { return true; }
  std::string import_hint() const override { return "import it"; }
  bool names_host_network_pods() const override { return false; }
  std::size_t image_count() const override { return 2; }  // with that of its sandboxes
  bool RestartRuntime() override {
    ::kill(containerd_, SIGKILL);
    ::waitpid(containerd_, nullptr, 0);
    StartContainerd();
    return true;
  }

 private:
  std::string socket() const { return directory_ + "/sock"; }
  std::string log() const { return directory_ + "/containerd.log"; }
  std::string tasks() const { return directory_ + "/state/io.containerd.runtime.v2.task/k8s.io"; }

  void StartContainerd() {
    containerd_ = ::fork();
    if (containerd_ == 0) {
      const int fd = ::open(log().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      ::dup2(fd, 1);
      ::dup2(fd, 2);
      // The shim is found beside it.
      ::setenv("PATH", StrCat(programs_, ":/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin").c_str(),
               1);
      const std::string program = programs_ + "/containerd";
      const std::string config = directory_ + "/config.toml";
      ::execl(program.c_str(), "containerd", "-c", config.c_str(), nullptr);
      ::_exit(127);
    }
  }

  std::vector<int> Processes() const {
    std::vector<int> pids;
    const auto names = RealFileSystem().ListDirectory("/proc");
    for (const std::string& name : *names) {
      const auto arguments = RealFileSystem().ReadFile("/proc/" + name + "/cmdline");
      if (arguments.ok() && arguments->find(directory_) != std::string::npos) {
        if (const auto pid = ParseInt64(name)) pids.push_back(static_cast<int>(*pid));
      }
    }
    return pids;
  }
  std::vector<std::string> LeftCgroups(const Cgroups& groups) const {
    std::vector<std::string> left;
    for (const std::string& root : groups.roots()) {
      for (const std::string& uid : uids_) {
        const std::string path = root + "/drakkar/pod" + uid;
        if (RealFileSystem().Exists(path)) left.push_back(path);
      }
    }
    return left;
  }

  Result<void> OpenAgent() {
    auto answer = std::make_shared<std::optional<Result<void>>>();
    thread_->RunSync([&] {
      exits_.clear();
      auto cgroups = Cgroups::Detect(RealFileSystem());
      runtime_ =
          MakeCriRuntime({.loop = thread_->loop(),
                          .transport = *transport_,
                          .files = RealFileSystem(),
                          .socket_path = socket(),
                          .reported_path = directory_ + "/reported",
                          .dial = MakeHttpStreamDialer(thread_->loop()),
                          .cgroups = cgroups.ok() ? std::optional<Cgroups>(*cgroups) : std::nullopt,
                          .log = [](const std::string& line) {
                            std::fprintf(stderr, "cri: %s\n", line.c_str());
                          }});
      runtime_->OnExit([this](const ContainerStatus& status) { exits_.push_back(status); });
      runtime_->Open([answer](Result<void> result) { answer->emplace(std::move(result)); });
    });
    if (!WaitUntil([answer] { return answer->has_value(); })) return Internal("no answer");
    return **answer;
  }

  const std::string directory_;
  const std::string programs_;
  pid_t containerd_ = -1;
  std::unique_ptr<LoopThread> thread_;
  std::unique_ptr<rpc::Transport> transport_;
  std::vector<std::string> uids_;
  std::vector<ContainerStatus> exits_;
  std::unique_ptr<CriRuntime> runtime_;
};

}  // namespace

std::unique_ptr<RuntimeHarness> MakeCriHarness(bool has_events) {
  return std::make_unique<CriHarness>(has_events);
}

std::unique_ptr<RuntimeHarness> MakeContainerdHarness(std::string& why) {
  if (::geteuid() != 0) {
    why = "containers need root";
    return nullptr;
  }
  std::string programs;
  const char* given = ::getenv("DRAKKAR_CONTAINERD");
  for (const std::string& directory :
       {std::string(given == nullptr ? "" : given), std::string(DRAKKAR_CONTAINERD_DIR),
        std::string("/usr/bin")}) {
    if (programs.empty() && !directory.empty() &&
        RealFileSystem().Exists(directory + "/containerd")) {
      programs = directory;
    }
  }
  if (programs.empty()) {
    why = "there is no containerd: run ./dev peers containerd, or apt-get install containerd";
    return nullptr;
  }
  if (BusyboxRootfs().empty()) {
    why = "busybox is not installed: run apt-get install busybox-static";
    return nullptr;
  }
  ::signal(SIGPIPE, SIG_IGN);  // as the agent does
  char pattern[] = "/tmp/drakkar-cri-XXXXXX";
  CHECK(::mkdtemp(pattern) != nullptr);
  auto harness = std::make_unique<ContainerdHarness>(pattern, programs);
  const auto prepared = harness->Prepare();
  if (!prepared.ok()) {
    why = prepared.error().message;
    std::fprintf(stderr, "prepare: %s\n", why.c_str());
  }
  CHECK(prepared.ok());
  return harness;
}

}  // namespace drakkar::node
