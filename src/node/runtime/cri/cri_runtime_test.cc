#include "node/runtime/cri/cri_runtime.h"

#include <rpc_proto/cri.pb.h>

#include "base/testing/memory_file_system.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node/runtime/cri/cri_image_collector.h"
#include "node/runtime/cri/cri_messages.h"
#include "node/runtime/cri/cri_streams.h"
#include "node/runtime/testing/fake_cri.h"
#include "rpc/testing/memory_transport.h"

namespace drakkar::node {
namespace {

namespace wire = rpc::cri_wire;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kSocket[] = "/run/containerd/containerd.sock";

class CriRuntimeTest : public ::testing::Test {
 protected:
  CriRuntimeTest() {
    Image image;
    image.id = "sha256:" + std::string(64, 'a');
    image.names = {"docker.io/library/busybox:latest"};
    machine_.images.push_back(image);
  }
  FakeCri& Fake(FakeCri::Options options) {
    fake_ = std::make_unique<FakeCri>(std::move(options));
    fake_->Start();
    return *fake_;
  }
  FakeCri::Options FakeOptions() {
    return {.loop = loop_, .transport = transport_, .machine = machine_, .socket_path = kSocket};
  }
  Result<void> Open() {
    exits_.clear();
    std::optional<Result<void>> opened;
    Begin([&](Result<void> result) { opened = std::move(result); });
    for (int i = 0; i < 200 && !opened; ++i) {
      loop_.RunUntilIdle();
      loop_.Advance(std::chrono::seconds(1));
    }
    return opened ? *opened : Result<void>(Internal("no answer"));
  }
  void Begin(RuntimeCallback<void> done) {
    runtime_ = MakeCriRuntime({.loop = loop_,
                               .transport = transport_,
                               .files = files_,
                               .socket_path = kSocket,
                               .reported_path = "/reported",
                               .dial = fake_ ? fake_->Dialer() : StreamDialer(),
                               .credentials =
                                   [](const std::string&) {
                                     return std::vector<RegistryCredential>{{"node", "secret"}};
                                   },
                               .log = [this](const std::string& line) { log_ += line + "\n"; }});
    runtime_->OnExit([this](const ContainerStatus& status) { exits_.push_back(status.id); });
    runtime_->Open(std::move(done));
  }
  std::string Sandbox(const std::string& uid = "uid-1") {
    PodSandboxConfig config;
    config.name = "pod";
    config.namespace_name = "default";
    config.uid = uid;
    config.log_directory = "/logs";
    std::string id;
    runtime_->RunPodSandbox(config, [&](Result<std::string> made) {
      EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
      if (made.ok()) id = *made;
    });
    loop_.RunUntilIdle();
    return id;
  }
  Result<std::string> Create(const std::string& sandbox, ContainerConfig config) {
    std::optional<Result<std::string>> answer;
    runtime_->CreateContainer(sandbox, std::move(config),
                              [&](Result<std::string> made) { answer = std::move(made); });
    loop_.RunUntilIdle();
    return answer ? *answer : Result<std::string>(Internal("no answer"));
  }
  std::string Run(const std::string& sandbox, const std::string& name = "main") {
    ContainerConfig config;
    config.name = name;
    config.image = "busybox";
    auto id = Create(sandbox, config);
    EXPECT_TRUE(id.ok());
    runtime_->StartContainer(*id, [](Result<void> started) { EXPECT_TRUE(started.ok()); });
    loop_.RunUntilIdle();
    return *id;
  }

  SeededLoop loop_;
  MemoryFileSystem files_;
  HollowMachine machine_;
  rpc::MemoryTransport transport_{loop_};
  std::unique_ptr<FakeCri> fake_;
  std::unique_ptr<CriRuntime> runtime_;
  std::vector<std::string> exits_;
  std::string log_;
};

TEST_F(CriRuntimeTest, WaitsForARuntimeThatStartsLater) {
  std::optional<Result<void>> opened;
  Begin([&](Result<void> result) { opened = std::move(result); });
  loop_.Advance(std::chrono::seconds(30));
  EXPECT_FALSE(opened);
  EXPECT_THAT(runtime_->WhyNotReady(), HasSubstr("down"));
  Fake(FakeOptions());
  loop_.Advance(std::chrono::seconds(5));
  ASSERT_TRUE(opened);
  EXPECT_TRUE(opened->ok());
  EXPECT_EQ(runtime_->WhyNotReady(), "");
  EXPECT_EQ(runtime_->RuntimeVersion(), "containerd://0.fake");
}

TEST_F(CriRuntimeTest, SaysThatNoRuntimeAnswers) {
  const auto opened = Open();
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message, HasSubstr(kSocket));
}

TEST_F(CriRuntimeTest, SaysWhyTheRuntimeIsNotReady) {
  auto options = FakeOptions();
  options.not_ready = "cni plugin not initialized";
  Fake(options);
  ASSERT_TRUE(Open().ok()) << "pods on the host's network can run";
  EXPECT_THAT(runtime_->WhyNotReady(), HasSubstr("cni plugin not initialized"));
}

TEST_F(CriRuntimeTest, EventsReportAnExitWithoutPolling) {
  machine_.program_of = [](const ContainerConfig&) {
    return HollowProgram{.runs_for = std::chrono::milliseconds(300)};
  };
  Fake(FakeOptions());
  ASSERT_TRUE(Open().ok());
  const std::string id = Run(Sandbox());
  const std::size_t lists = fake_->calls("ListContainers");
  loop_.Advance(std::chrono::milliseconds(300));
  EXPECT_THAT(exits_, ElementsAre(id));
  EXPECT_EQ(fake_->calls("ListContainers"), lists);
}

TEST_F(CriRuntimeTest, PollsARuntimeWithoutEvents) {
  machine_.program_of = [](const ContainerConfig&) {
    return HollowProgram{.runs_for = std::chrono::seconds(10)};
  };
  auto options = FakeOptions();
  options.has_events = false;
  Fake(options);
  ASSERT_TRUE(Open().ok());
  EXPECT_THAT(log_, HasSubstr("polled"));
  const std::string id = Run(Sandbox());
  loop_.Advance(std::chrono::seconds(9));
  EXPECT_THAT(exits_, IsEmpty());
  loop_.Advance(std::chrono::seconds(2));
  EXPECT_THAT(exits_, ElementsAre(id));
}

TEST_F(CriRuntimeTest, FindsWhatHappenedWhileTheRuntimeWasAway) {
  machine_.program_of = [](const ContainerConfig& config) {
    HollowProgram program;
    if (config.name == "short") program.runs_for = std::chrono::seconds(20);
    return program;
  };
  Fake(FakeOptions());
  ASSERT_TRUE(Open().ok());
  const std::string sandbox = Sandbox();
  const std::string ends = Run(sandbox, "short");
  const std::string stays = Run(sandbox, "long");
  transport_.Kill(kSocket);
  fake_->Stop();
  loop_.Advance(std::chrono::seconds(1));
  EXPECT_THAT(runtime_->WhyNotReady(), HasSubstr("down"));
  bool refused = false;
  runtime_->StopContainer(stays, Duration::zero(), [&](Result<void> stopped) {
    refused = !stopped.ok() && stopped.error().code == ErrorCode::kUnavailable;
  });
  loop_.Advance(std::chrono::seconds(30));
  EXPECT_TRUE(refused);
  EXPECT_THAT(exits_, IsEmpty());
  fake_->Start();
  loop_.Advance(std::chrono::seconds(10));
  EXPECT_THAT(exits_, ElementsAre(ends));
  EXPECT_EQ(runtime_->GetContainerStatus(stays)->state, ContainerState::kRunning);
  EXPECT_EQ(runtime_->WhyNotReady(), "");
}

TEST_F(CriRuntimeTest, AdoptsAContainerWhoseCreationWasNotAnswered) {
  Fake(FakeOptions());
  ASSERT_TRUE(Open().ok());
  const std::string sandbox = Sandbox();
  transport_.SetAnswerFault(
      [](const std::string&, std::string_view method) -> std::optional<Error> {
        if (method != cri::kCreateContainer) return std::nullopt;
        return Unavailable("lost");
      });
  ContainerConfig config;
  config.name = "main";
  config.image = "busybox";
  EXPECT_FALSE(Create(sandbox, config).ok());
  transport_.SetAnswerFault(nullptr);
  loop_.Advance(CriRuntime::kRelistEvery + std::chrono::seconds(2));
  ASSERT_THAT(runtime_->ListContainers(), SizeIs(1));
  EXPECT_EQ(runtime_->ListContainers()[0].state, ContainerState::kCreated);
}

TEST_F(CriRuntimeTest, LeavesSandboxesOfOthersAlone) {
  Fake(FakeOptions());
  PodSandbox foreign;
  foreign.id = "foreign";
  foreign.state = SandboxState::kReady;
  machine_.sandboxes["foreign"] = foreign;
  ASSERT_TRUE(Open().ok());
  EXPECT_THAT(runtime_->ListPodSandboxes(), IsEmpty());
  loop_.Advance(CriRuntime::kRelistEvery * 2);
  EXPECT_THAT(runtime_->ListPodSandboxes(), IsEmpty());
}

TEST_F(CriRuntimeTest, PassesCdiDevicesByName) {
  auto options = FakeOptions();
  options.cdi_directories = {"/etc/cdi", "/var/run/cdi"};
  Fake(options);
  ASSERT_TRUE(Open().ok());
  EXPECT_THAT(runtime_->CdiDirectories(), ElementsAre("/etc/cdi", "/var/run/cdi"));
  ContainerConfig config;
  config.name = "main";
  config.image = "busybox";
  config.cdi_devices = {"vendor.com/gpu=0"};
  const auto id = Create(Sandbox(), config);
  ASSERT_TRUE(id.ok());
  EXPECT_THAT(machine_.containers[*id].config.cdi_devices, ElementsAre("vendor.com/gpu=0"));
}

TEST_F(CriRuntimeTest, RefusesWhatCriCannotExpress) {
  Fake(FakeOptions());
  ASSERT_TRUE(Open().ok());
  EXPECT_THAT(runtime_->CdiDirectories(), IsEmpty());
  ContainerConfig config;
  config.name = "main";
  config.image = "busybox";
  config.hooks.push_back({.name = "prestart", .path = "/bin/true"});
  const auto refused = Create(Sandbox(), config);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("enable CDI in the runtime"));
}

TEST_F(CriRuntimeTest, PullsWithThePodsCredentialsThenTheNodes) {
  Image image;
  image.id = "sha256:" + std::string(64, 'b');
  image.names = {"registry.example/app:1"};
  machine_.registry["registry.example/app:1"] = image;
  Fake(FakeOptions());
  fake_->RequireUser("node");
  ASSERT_TRUE(Open().ok());
  EXPECT_FALSE(runtime_->ImageStatus("registry.example/app:1").ok());
  int answers = 0;
  for (int i = 0; i < 2; ++i) {
    runtime_->PullImage({.image = "registry.example/app:1", .credentials = {{"pod", "x"}}},
                        [&](Result<Image> pulled) {
                          ASSERT_TRUE(pulled.ok());
                          EXPECT_EQ(pulled->id, image.id);
                          ++answers;
                        });
  }
  loop_.RunUntilIdle();
  EXPECT_EQ(answers, 2);
  ASSERT_THAT(fake_->pulls(), SizeIs(2)) << "concurrent pulls share their work";
  EXPECT_EQ(fake_->pulls()[0].username, "pod");
  EXPECT_EQ(fake_->pulls()[1].username, "node");
  EXPECT_FALSE(runtime_->IsImported("registry.example/app:1"));
  EXPECT_TRUE(runtime_->IsImported("busybox"));
}

TEST_F(CriRuntimeTest, SeesAnImageThatSomebodyImports) {
  Fake(FakeOptions());
  ASSERT_TRUE(Open().ok());
  EXPECT_FALSE(runtime_->ImageStatus("localhost/late:1").ok());
  loop_.RunUntilIdle();
  Image image;
  image.id = "sha256:" + std::string(64, 'c');
  image.names = {"localhost/late:1"};
  machine_.images.push_back(image);
  loop_.Advance(std::chrono::seconds(2));
  EXPECT_FALSE(runtime_->ImageStatus("localhost/late:1").ok());
  loop_.RunUntilIdle();
  EXPECT_TRUE(runtime_->ImageStatus("localhost/late:1").ok());
}

TEST_F(CriRuntimeTest, KeepsUpdatedAnnotations) {
  Fake(FakeOptions());
  ASSERT_TRUE(Open().ok());
  const std::string id = Run(Sandbox());
  ResourceUpdate update;
  update.container.memory_limit_bytes = 1 << 20;
  update.annotations = {{"resources", "new"}};
  bool updated = false;
  runtime_->UpdateContainer(id, update, [&](Result<void> result) { updated = result.ok(); });
  loop_.Advance(CriRuntime::kRelistEvery * 2);
  EXPECT_TRUE(updated);
  EXPECT_EQ(runtime_->GetContainerStatus(id)->annotations.at("resources"), "new");
  EXPECT_EQ(machine_.containers[id].config.resources.memory_limit_bytes, 1 << 20);
  EXPECT_EQ(machine_.containers[id].config.resources.cpu_quota_us, -1) << "no limit any more";
}

TEST(CriMessages, ACompleteContainerReachesTheRuntime) {
  PodSandboxConfig sandbox;
  sandbox.name = "pod";
  sandbox.uid = "uid";
  sandbox.host_network = false;
  sandbox.cgroup_parent = "/drakkar/poduid";
  const cri::SandboxRequest encoded = cri::EncodeRunPodSandbox(sandbox);
  EXPECT_EQ(cri::CgroupParentOf(encoded.config), "/drakkar/poduid");
  ContainerConfig config;
  config.name = "main";
  config.image = "busybox";
  config.mounts = {{.host_path = "/h",
                    .container_path = "/c",
                    .readonly = true,
                    .propagation = MountPropagation::kHostToContainer}};
  config.devices = {{.host_path = "/dev/null", .permissions = "rw"}};
  config.stop_signal = "SIGRTMIN+2";
  config.security.user = "1000";
  config.security.group = 2000;
  config.security.seccomp = SeccompKind::kLocalhost;
  config.security.seccomp_path = "/profiles/x.json";
  config.resources.oom_score_adjust = -997;
  const std::string target;
  const std::string image_id = "sha256:x";
  const auto bytes = cri::EncodeCreateContainer({.sandbox_id = "s",
                                                 .sandbox_config = encoded.config,
                                                 .config = config,
                                                 .image_id = image_id,
                                                 .process_namespace_of = target});
  ASSERT_TRUE(bytes.ok());
  wire::CreateContainerRequest request;
  ASSERT_TRUE(request.ParseFromString(*bytes));
  EXPECT_EQ(request.sandbox_config().metadata().uid(), "uid");
  const wire::ContainerConfig& sent = request.config();
  EXPECT_EQ(sent.image().image(), "sha256:x");
  EXPECT_EQ(sent.image().user_specified_image(), "busybox");
  EXPECT_EQ(sent.stop_signal(), wire::SIGNAL_SIGRTMINPLUS2);
  ASSERT_EQ(sent.mounts_size(), 1);
  EXPECT_TRUE(sent.mounts(0).readonly());
  EXPECT_EQ(sent.mounts(0).propagation(), wire::PROPAGATION_HOST_TO_CONTAINER);
  EXPECT_EQ(sent.devices(0).container_path(), "/dev/null");
  EXPECT_EQ(sent.devices(0).permissions(), "rw");
  const auto& security = sent.linux().security_context();
  EXPECT_EQ(security.run_as_user().value(), 1000);
  EXPECT_EQ(security.run_as_group().value(), 2000);
  EXPECT_EQ(security.seccomp().localhost_ref(), "/profiles/x.json");
  EXPECT_EQ(security.namespace_options().network(), wire::POD);
  EXPECT_EQ(security.namespace_options().pid(), wire::CONTAINER);
  EXPECT_THAT(security.masked_paths(), ::testing::Contains("/proc/kcore"));
  EXPECT_EQ(sent.linux().resources().oom_score_adj(), -997);
}

TEST(CriMessages, ReadsTheStatusOfACommand) {
  EXPECT_EQ(*ParseCommandStatus(R"({"status":"Success"})"), 0);
  EXPECT_EQ(*ParseCommandStatus(R"({"status":"Failure","reason":"NonZeroExitCode","details":)"
                                R"({"causes":[{"reason":"ExitCode","message":"7"}]}})"),
            7);
  EXPECT_THAT(
      ParseCommandStatus(R"({"status":"Failure","message":"no such file"})").error().message,
      HasSubstr("no such file"));
  EXPECT_FALSE(ParseCommandStatus("").ok());
}

TEST_F(CriRuntimeTest, UsageComesFromTheRuntime) {
  machine_.program_of = [](const ContainerConfig&) {
    return HollowProgram{.nano_cores = 500'000'000, .memory_bytes = 1 << 20, .disk_bytes = 77};
  };
  for (const bool has_pod_stats : {true, false}) {
    auto options = FakeOptions();
    options.has_pod_stats = has_pod_stats;
    Fake(options);
    ASSERT_TRUE(Open().ok());
    const std::string sandbox = Sandbox(StrCat("uid-", has_pod_stats));
    Run(sandbox, "a");
    loop_.Advance(std::chrono::seconds(2));
    std::optional<RuntimeUsage> usage;
    runtime_->ReadUsage(UsageScope::kWithoutFiles, [&](Result<RuntimeUsage> read) {
      ASSERT_TRUE(read.ok()) << read.error().message;
      usage = *read;
    });
    loop_.RunUntilIdle();
    ASSERT_TRUE(usage);
    const auto pod = std::find_if(usage->pods.begin(), usage->pods.end(),
                                  [&](const PodUsage& each) { return each.sandbox_id == sandbox; });
    ASSERT_NE(pod, usage->pods.end());
    EXPECT_EQ(pod->uid, StrCat("uid-", has_pod_stats));
    EXPECT_EQ(pod->memory.working_set_bytes, 1u << 20);
    EXPECT_EQ(pod->memory.swap_bytes, 4096u);
    EXPECT_GE(pod->cpu.total_ns.value_or(0), 1'000'000'000u);
    EXPECT_EQ(pod->interfaces.size(), has_pod_stats ? 1u : 0u);
    ASSERT_EQ(pod->containers.size(), 1u);
    EXPECT_EQ(pod->containers[0].name, "a");
    EXPECT_NE(pod->containers[0].started_at, WallTime{});
    EXPECT_EQ(pod->containers[0].root_fs.used_bytes, 77u);
    EXPECT_EQ(usage->images.path, "/var/lib/containerd");
    runtime_.reset();
  }
}

TEST_F(CriRuntimeTest, RemovesImages) {
  Fake(FakeOptions());
  ASSERT_TRUE(Open().ok());
  ASSERT_THAT(runtime_->ListImages(), SizeIs(1));
  std::optional<Result<void>> removed;
  runtime_->RemoveImage(machine_.images[0].id, [&](Result<void> result) { removed = result; });
  loop_.RunUntilIdle();
  ASSERT_TRUE(removed && removed->ok());
  EXPECT_THAT(runtime_->ListImages(), IsEmpty());
}

TEST_F(CriRuntimeTest, UnusedImagesAreCollectedWhenTheDiskIsFull) {
  auto add = [&](const std::string& name, bool pinned = false) {
    machine_.images.push_back({.id = "sha256:" + name,
                               .names = {StrCat("example.com/", name, ":1")},
                               .size_bytes = 100,
                               .is_pinned = pinned});
  };
  add("pause", true);
  add("old");
  Fake(FakeOptions());
  ASSERT_TRUE(Open().ok());
  Run(Sandbox());  // uses busybox
  DiskUsage disk{.used_bytes = 500, .total_bytes = 1'000};
  std::string full;
  CriImageCollector collector({.loop = loop_,
                               .runtime = *runtime_,
                               .settings = {.high_percent = 85, .low_percent = 80},
                               .disk = [&](const std::string& path) -> Result<DiskUsage> {
                                 EXPECT_EQ(path, "/var/lib/containerd");
                                 return disk;
                               },
                               .log = [](const std::string&) {},
                               .on_full = [&](const std::string& text) { full = text; }});
  collector.Start();
  loop_.Advance(CriImageCollector::kPeriod);
  add("new");
  loop_.Advance(CriImageCollector::kPeriod);
  EXPECT_EQ(machine_.images.size(), 4u);
  // One image is enough: the one that was unused for longer.
  disk.used_bytes = 900;
  loop_.Advance(CriImageCollector::kPeriod);
  std::vector<std::string> left;
  for (const Image& image : machine_.images) left.push_back(image.names[0]);
  EXPECT_THAT(left, ElementsAre("docker.io/library/busybox:latest", "example.com/pause:1",
                                "example.com/new:1"));
  EXPECT_EQ(full, "");
  // What is used or pinned stays, whatever the disk.
  disk.used_bytes = 1'000;
  loop_.Advance(CriImageCollector::kPeriod);
  EXPECT_EQ(machine_.images.size(), 2u);
  EXPECT_THAT(full, HasSubstr("only found 100 bytes"));
}

TEST_F(CriRuntimeTest, ImagesThatWereUnusedForLongAreRemovedThoughThereIsSpace) {
  const auto add = [&](const std::string& name, bool pinned) {
    machine_.images.push_back({.id = "sha256:" + name,
                               .names = {StrCat("example.com/", name, ":1")},
                               .size_bytes = 100,
                               .is_pinned = pinned});
  };
  add("pause", true);
  add("old", false);
  Fake(FakeOptions());
  ASSERT_TRUE(Open().ok());
  Run(Sandbox());  // uses busybox
  CriImageCollector collector({.loop = loop_,
                               .runtime = *runtime_,
                               .settings = {.high_percent = 100, .max_age = std::chrono::hours(1)},
                               .disk = [](const std::string&) -> Result<DiskUsage> {
                                 return DiskUsage{.used_bytes = 0, .total_bytes = 1'000};
                               },
                               .log = [](const std::string&) {},
                               .on_full = [](const std::string&) {}});
  collector.Start();
  loop_.Advance(std::chrono::minutes(59));
  EXPECT_EQ(machine_.images.size(), 3u);
  loop_.Advance(std::chrono::minutes(11));
  ASSERT_EQ(machine_.images.size(), 2u);
  EXPECT_EQ(machine_.images[1].id, "sha256:pause");
}

}  // namespace
}  // namespace drakkar::node
