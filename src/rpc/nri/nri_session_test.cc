#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/seeded_loop.h"
#include "rpc/nri/nri_codec.h"
#include "rpc/nri/nri_plugin_session.h"
#include "rpc/nri/nri_runtime_session.h"

namespace drakkar::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

NriPodSandbox Pod(const std::string& name) {
  return {.id = "sandbox-" + name,
          .name = name,
          .uid = "uid-" + name,
          .namespace_name = "default",
          .labels = {{"app", "x"}},
          .annotations = {{"note", "y"}},
          .pid = 42,
          .ips = {"192.0.2.1"},
          .linux_namespaces = {{"network", "/proc/42/ns/net"}},
          .cgroup_parent = "/pods/p",
          .cgroups_path = "/pods/p/s",
          .resources = {.cpu_shares = 2},
          .pod_resources = {.memory_limit = 1 << 20, .cpu_quota = 50'000, .cpu_period = 100'000},
          .pod_overhead = {.memory_limit = 5}};
}

// Both sides on one loop, which carries bytes in pieces of any size.
class NriSessionTest : public ::testing::Test {
 protected:
  void Start(std::string name = "net.example.com", std::string index = "50") {
    runtime_ = std::make_unique<NriRuntimeSession>(NriRuntimeSession::Options{
        .loop = loop_,
        .runtime_version = "1",
        .send = [this](std::string bytes) { ToPlugin(std::move(bytes)); },
        .on_configured =
            [this] {
              runtime_->Synchronize(existing_, containers_,
                                    [this](Result<std::vector<NriContainerUpdate>> updates) {
                                      if (!updates.ok()) return;
                                      log_.push_back("ready");
                                      updates_ = *std::move(updates);
                                    });
            },
        .on_update =
            [this](std::vector<NriContainerUpdate> updates, std::vector<NriEviction> evictions,
                   NriRuntimeSession::Updated done) {
              for (const NriEviction& each : evictions) log_.push_back("evict " + each.reason);
              updates_ = updates;
              done(std::move(updates));
            },
        .on_failed = [this](const Error& error) { log_.push_back("failed: " + error.message); }});
    callbacks_.on_pods = [this](const std::vector<NriPodSandbox>& pods) { told_ += pods.size(); };
    callbacks_.on_failed = [this](const Error& error) {
      log_.push_back("plugin failed: " + error.message);
    };
    plugin_ = std::make_unique<NriPluginSession>(
        NriPluginSession::Options{.loop = loop_,
                                  .name = std::move(name),
                                  .index = std::move(index),
                                  .send =
                                      [this](std::string bytes) {
                                        loop_.Post([this, bytes = std::move(bytes)] {
                                          if (runtime_ == nullptr) return;
                                          EXPECT_TRUE(runtime_->Receive(bytes).ok());
                                        });
                                      },
                                  .callbacks = callbacks_});
    plugin_->Start();
    loop_.RunUntilIdle();
  }
  void ToPlugin(std::string bytes) {
    // Byte by byte: framing must not depend on how the socket splits the data. Large messages
    // whole, which is faster.
    if (bytes.size() > (64u << 10)) {
      return loop_.Post([this, bytes = std::move(bytes)] {
        if (plugin_ == nullptr) return;
        EXPECT_TRUE(plugin_->Receive(bytes).ok());
      });
    }
    for (const char byte : bytes) {
      loop_.Post([this, byte] {
        if (plugin_ == nullptr) return;
        EXPECT_TRUE(plugin_->Receive({&byte, 1}).ok());
      });
    }
  }
  Result<void> Run(const NriPodSandbox& pod) {
    std::optional<Result<void>> answer;
    runtime_->Deliver(NriEvent::kRunPodSandbox, pod, {},
                      [&](Result<void> result) { answer = result; });
    loop_.RunUntilIdle();
    if (!answer) loop_.Advance(std::chrono::seconds(3));
    return answer ? *answer : Result<void>(Internal("no answer"));
  }

  SeededLoop loop_;
  std::vector<NriPodSandbox> existing_;
  std::vector<NriContainer> containers_;
  std::vector<NriContainerUpdate> updates_;
  NriPluginSession::Callbacks callbacks_;
  std::vector<std::string> log_;
  std::size_t told_ = 0;
  std::unique_ptr<NriRuntimeSession> runtime_;
  std::unique_ptr<NriPluginSession> plugin_;
};

TEST_F(NriSessionTest, APluginIsRegisteredConfiguredAndToldWhatIsThere) {
  for (int i = 0; i < 600; ++i) existing_.push_back(Pod("p" + std::to_string(i)));
  callbacks_.on_run_pod_sandbox = [](const NriPodSandbox&, NriDone done) { done(Ok()); };
  Start();
  EXPECT_THAT(log_, ElementsAre("ready"));
  EXPECT_EQ(told_, 600u);
  EXPECT_EQ(runtime_->name(), "net.example.com");
  EXPECT_TRUE(runtime_->Wants(NriEvent::kRunPodSandbox));
  EXPECT_FALSE(runtime_->Wants(NriEvent::kStopPodSandbox));
}

TEST_F(NriSessionTest, ARunningSandboxIsHandedOverWholeAndWaitedFor) {
  std::optional<NriPodSandbox> got;
  NriDone held;
  callbacks_.on_run_pod_sandbox = [&](const NriPodSandbox& pod, NriDone done) {
    got = pod;
    held = std::move(done);
  };
  Start();
  bool answered = false;
  runtime_->Deliver(NriEvent::kRunPodSandbox, Pod("a"), {}, [&](Result<void> result) {
    EXPECT_TRUE(result.ok());
    answered = true;
  });
  loop_.RunUntilIdle();
  ASSERT_TRUE(got);
  EXPECT_EQ(*got, Pod("a"));
  EXPECT_FALSE(answered);
  held(Ok());
  loop_.RunUntilIdle();
  EXPECT_TRUE(answered);
}

TEST_F(NriSessionTest, AnErrorOfThePluginReachesTheRuntime) {
  callbacks_.on_run_pod_sandbox = [](const NriPodSandbox&, NriDone done) {
    done(FailedPrecondition("no address left"));
  };
  Start();
  const auto answer = Run(Pod("a"));
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().message, HasSubstr("NRI plugin 50-net.example.com: RunPodSandbox"));
  EXPECT_THAT(answer.error().message, HasSubstr("no address left"));
  EXPECT_TRUE(runtime_->is_ready());
}

TEST_F(NriSessionTest, APluginThatDoesNotAnswerIsGivenUpAndHoldsNothingUp) {
  std::vector<NriDone> held;
  callbacks_.on_run_pod_sandbox = [&](const NriPodSandbox&, NriDone done) {
    held.push_back(std::move(done));
  };
  Start();
  EXPECT_TRUE(Run(Pod("a")).ok());
  ASSERT_EQ(log_.size(), 2u);
  EXPECT_THAT(log_[1],
              HasSubstr("failed: NRI plugin 50-net.example.com: RunPodSandbox: no answer"));
}

TEST_F(NriSessionTest, ADroppedCallIsAnError) {
  callbacks_.on_run_pod_sandbox = [](const NriPodSandbox&, NriDone) {};
  Start();
  EXPECT_THAT(Run(Pod("a")).error().message, HasSubstr("the call was dropped"));
}

TEST_F(NriSessionTest, NamesAndIndexesAreChecked) {
  Start("bad/name");
  ASSERT_GE(log_.size(), 1u);
  EXPECT_THAT(log_[0], HasSubstr("failed: invalid plugin name"));
  log_.clear();
  Start("good", "5");
  EXPECT_THAT(log_[0], HasSubstr("invalid plugin index \"5\", must be 2 digits"));
  EXPECT_THAT(log_[1], HasSubstr("plugin failed: register the NRI plugin"));
}

TEST_F(NriSessionTest, APluginThatNeverRegistersIsGivenUp) {
  runtime_ = std::make_unique<NriRuntimeSession>(NriRuntimeSession::Options{
      .loop = loop_,
      .send = [](std::string) {},
      .on_failed = [this](const Error& error) { log_.push_back(error.message); }});
  loop_.Advance(std::chrono::seconds(6));
  EXPECT_THAT(log_, ElementsAre("the NRI plugin did not register in time"));
}

TEST_F(NriSessionTest, OlderRuntimesDeliverByStateChange) {
  std::vector<std::string> got;
  callbacks_.on_run_pod_sandbox = [&](const NriPodSandbox& pod, NriDone done) {
    got.push_back(pod.name);
    done(Ok());
  };
  Start();
  // Hand-made messages of such a runtime.
  std::optional<Result<std::string>> answer;
  TtrpcEndpoint old({.loop = loop_,
                     .serving_connection = kNriRuntimeConnection,
                     .calling_connection = kNriPluginConnection,
                     .send = [this](std::string bytes) { ToPlugin(std::move(bytes)); },
                     .serve = [](const std::string&, const std::string&, TtrpcDone) {}});
  old.Call("/nri.pkg.api.v1alpha1.Plugin/StateChange", nri::EncodeStateChange({1, Pod("old")}),
           std::chrono::seconds(1),
           [&](Result<std::string> result) { answer = std::move(result); });
  loop_.RunUntilIdle();
  EXPECT_THAT(got, ElementsAre("old"));
}

TEST_F(NriSessionTest, AfterTheSocketIsGoneCallsFailAtOnce) {
  callbacks_.on_run_pod_sandbox = [](const NriPodSandbox&, NriDone) {};
  Start();
  bool answered = false;
  plugin_.reset();
  runtime_->Deliver(NriEvent::kRunPodSandbox, Pod("a"), {}, [&](Result<void> result) {
    EXPECT_TRUE(result.ok());
    answered = true;
  });
  loop_.RunUntilIdle();
  EXPECT_FALSE(answered);
  runtime_->Close(Unavailable("the connection was closed"));
  loop_.RunUntilIdle();
  EXPECT_TRUE(answered);
}

// Every field that a message has.
NriResources AllResources() {
  return {.memory_limit = 1,
          .memory_reservation = 2,
          .memory_swap = -1,
          .memory_kernel = 4,
          .memory_kernel_tcp = 5,
          .memory_swappiness = 60,
          .disable_oom_killer = true,
          .use_hierarchy = false,
          .cpu_shares = 7,
          .cpu_quota = -1,
          .cpu_period = 9,
          .realtime_runtime = 10,
          .realtime_period = 11,
          .cpus = "0-1",
          .mems = "0",
          .hugepage_limits = {{"2MB", 1u << 21}},
          .blockio_class = "slow",
          .rdt_class = "gold",
          .unified = {{"memory.high", "max"}},
          .devices = {{true, "c", 1, std::nullopt, "rw"}},
          .pids = 12};
}

NriContainer TheContainer() {
  return {
      .id = "c1",
      .pod_sandbox_id = "sandbox-p",
      .name = "c",
      .state = NriContainerState::kRunning,
      .labels = {{"l", "1"}},
      .annotations = {{"a", "2"}},
      .args = {"sh"},
      .env = {"A=1"},
      .mounts = {{"/data", "bind", "/host", {"rbind", "ro"}}},
      .hooks = {{"createRuntime", "/bin/h", {"h"}, {"E=1"}, 3}, {"poststop", "/bin/p", {}, {}, {}}},
      .rlimits = {{"RLIMIT_NOFILE", 2, 1}},
      .cdi_devices = {"v.com/c=d"},
      .namespaces = {{"network", "/run/netns/x"}, {"mount", ""}},
      .devices = {{"/dev/x", "c", 1, 2, 0600, 3, 4}},
      .resources = AllResources(),
      .oom_score_adj = -5,
      .cgroups_path = "/pods/p/c1",
      .seccomp_profile = NriSeccompProfile::kLocalhost,
      .seccomp_file = "/p.json",
      .sysctl = {{"net.x", "1"}},
      .uid = 10,
      .gid = 11,
      .additional_gids = {12},
      .image = "busybox",
      .image_digest = "sha256:1",
      .pid = 7,
      .created_at = 1,
      .started_at = 2,
      .finished_at = 3,
      .exit_code = 4,
      .status_reason = "Error",
      .status_message = "why"};
}

NriContainerAdjustment TheAdjustment() {
  return {.annotations = {{"-a", ""}},
          .mounts = {{"/more", "bind", "/m", {"ro"}}},
          .env = {{"B", "2"}, {"-A", ""}},
          .hooks = {{"prestart", "/h", {"h", "x"}, {}, {}}},
          .rlimits = {{"RLIMIT_CORE", 1, 0}},
          .cdi_devices = {"v.com/c=d"},
          .args = {"sh", "-c"},
          .devices = {{"/dev/y", "b", 8, 0, {}, {}, {}}},
          .resources = AllResources(),
          .cgroups_path = "/x/c1",
          .oom_score_adj = 100,
          .seccomp =
              NriSeccomp{.default_action = "SCMP_ACT_ERRNO",
                         .default_errno = 1,
                         .architectures = {"SCMP_ARCH_X86_64"},
                         .flags = {"SECCOMP_FILTER_FLAG_LOG"},
                         .listener_path = "/l",
                         .listener_metadata = "m",
                         .syscalls = {{{"read"}, "SCMP_ACT_ALLOW", 2, {{0, 1, 2, "SCMP_CMP_EQ"}}}}},
          .namespaces = {{"-ipc", ""}},
          .sysctl = {{"net.y", "2"}}};
}

TEST_F(NriSessionTest, AContainerIsHandedOverWholeAndItsChangesComeBack) {
  const NriAnswer changes{TheAdjustment(),
                          {{"c2", AllResources(), true}, {"c3", {.cpus = "1"}, false}},
                          {{"c4", "in the way"}}};
  std::vector<NriContainer> seen;
  callbacks_.on_create_container = [&](const NriPodSandbox& pod, const NriContainer& container,
                                       NriAnswered done) {
    EXPECT_EQ(pod, Pod("p"));
    seen.push_back(container);
    done(changes);
  };
  callbacks_.container_events = {NriEvent::kStopContainer};
  callbacks_.on_container_event = [&](NriEvent event, const NriPodSandbox&,
                                      const NriContainer& container, NriDone done) {
    log_.push_back(std::string(NriEventName(event)) + " " + container.name);
    done(Internal("too late"));
  };
  Start();
  EXPECT_TRUE(runtime_->Wants(NriEvent::kCreateContainer));
  EXPECT_FALSE(runtime_->Wants(NriEvent::kStartContainer));
  std::vector<Result<NriAnswer>> answers;
  for (const NriEvent event :
       {NriEvent::kCreateContainer, NriEvent::kStartContainer, NriEvent::kStopContainer}) {
    runtime_->DeliverContainer(event, Pod("p"), TheContainer(), {}, [&](Result<NriAnswer> answer) {
      answers.push_back(std::move(answer));
    });
    loop_.RunUntilIdle();
  }
  EXPECT_THAT(seen, ElementsAre(TheContainer()));
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(*answers[0], changes);
  EXPECT_TRUE(answers[1].ok()) << "not asked for";
  EXPECT_THAT(answers[2].error().message,
              HasSubstr("NRI plugin 50-net.example.com: StopContainer: "));
  EXPECT_THAT(answers[2].error().message, HasSubstr("too late"));
  EXPECT_THAT(log_, ElementsAre("ready", "StopContainer c"));
}

TEST_F(NriSessionTest, UpdatesOfPodsAndContainersCarryTheNewResources) {
  std::optional<NriResources> of_pod, of_container;
  callbacks_.on_update_pod_sandbox = [&](const NriPodSandbox&, const NriResources& resources,
                                         NriDone done) {
    of_pod = resources;
    done(Ok());
  };
  callbacks_.on_update_container = [&](const NriPodSandbox&, const NriContainer&,
                                       const NriResources& resources, NriAnswered done) {
    of_container = resources;
    done(NriAnswer{.updates = {{"c1", {.cpu_shares = 3}, false}}});
  };
  callbacks_.on_stop_container = [&](const NriPodSandbox&, const NriContainer&, NriAnswered done) {
    done(NriAnswer{.updates = {{"c2", {.cpus = "0"}, true}}});
  };
  Start();
  bool done = false;
  runtime_->Deliver(NriEvent::kUpdatePodSandbox, Pod("p"), AllResources(),
                    [&](Result<void> result) { done = result.ok(); });
  NriAnswer updated, stopped;
  runtime_->DeliverContainer(NriEvent::kUpdateContainer, Pod("p"), TheContainer(),
                             {.memory_limit = 9},
                             [&](Result<NriAnswer> answer) { updated = *std::move(answer); });
  runtime_->DeliverContainer(NriEvent::kStopContainer, Pod("p"), TheContainer(), {},
                             [&](Result<NriAnswer> answer) { stopped = *std::move(answer); });
  loop_.RunUntilIdle();
  EXPECT_TRUE(done);
  EXPECT_EQ(of_pod, AllResources());
  EXPECT_EQ(of_container, NriResources{.memory_limit = 9});
  ASSERT_EQ(updated.updates.size(), 1u);
  EXPECT_EQ(updated.updates[0].resources.cpu_shares, 3);
  ASSERT_EQ(stopped.updates.size(), 1u);
  EXPECT_TRUE(stopped.updates[0].ignore_failure);
}

TEST_F(NriSessionTest, SynchronizationIsSplitBySizeAndItsUpdatesCount) {
  std::size_t parts = 0, containers = 0;
  for (int i = 0; i < 40; ++i) {
    containers_.push_back(TheContainer());
    containers_.back().env = {std::string(100'000, 'x')};
  }
  callbacks_.on_containers = [&](const std::vector<NriContainer>& part) {
    ++parts;
    containers += part.size();
    return std::vector<NriContainerUpdate>{{"c1", {.cpus = "1"}, false}};
  };
  callbacks_.on_run_pod_sandbox = [](const NriPodSandbox&, NriDone done) { done(Ok()); };
  Start();
  EXPECT_THAT(log_, ElementsAre("ready"));
  EXPECT_EQ(containers, 40u);
  EXPECT_GE(parts, 4u) << "a message is far below the limit of 4 MiB";
  ASSERT_EQ(updates_.size(), 1u);
  EXPECT_EQ(updates_[0].resources.cpus, "1");
}

TEST_F(NriSessionTest, APluginUpdatesAndEvictsOnItsOwn) {
  callbacks_.on_run_pod_sandbox = [](const NriPodSandbox&, NriDone done) { done(Ok()); };
  Start();
  std::optional<Result<std::vector<NriContainerUpdate>>> failed;
  plugin_->UpdateContainers({{"c1", AllResources(), true}}, {{"c2", "noise"}},
                            [&](auto result) { failed = std::move(result); });
  loop_.RunUntilIdle();
  ASSERT_TRUE(failed && failed->ok());
  EXPECT_THAT(**failed, ElementsAre(NriContainerUpdate{"c1", AllResources(), true}));
  EXPECT_THAT(log_, ElementsAre("ready", "evict noise"));
}

TEST_F(NriSessionTest, AValidatorSeesAllChangesAndMayRejectThem) {
  const NriValidation all{
      Pod("p"),
      TheContainer(),
      TheAdjustment(),
      {{"c2", {.cpus = "0"}, false}},
      {{"c1",
        {{{NriField::kCpusetCpus, "10-a"}}, {{NriField::kEnv, {{"B", "10-a"}, {"C", "20-b"}}}}}}},
      {{"a", "10"}, {"b", "20"}}};
  std::optional<NriValidation> seen;
  Result<void> verdict;
  callbacks_.on_validate = [&](const NriValidation& validation, NriDone done) {
    seen = validation;
    done(verdict);
  };
  Start();
  const auto validate = [&] {
    std::optional<Result<void>> answer;
    runtime_->Validate(all, [&](Result<void> result) { answer = std::move(result); });
    loop_.RunUntilIdle();
    return *answer;
  };
  EXPECT_TRUE(validate().ok());
  EXPECT_EQ(seen, all);
  verdict = FailedPrecondition("not with these hooks");
  EXPECT_EQ(validate().error().message,
            "NRI plugin 50-net.example.com rejects the changes of container c: not with these "
            "hooks");
  EXPECT_TRUE(runtime_->is_ready());
}

TEST_F(NriSessionTest, AValidatorThatDoesNotAnswerHasNotAgreed) {
  NriDone held;
  callbacks_.on_validate = [&](const NriValidation&, NriDone done) { held = std::move(done); };
  Start();
  std::optional<Result<void>> answer;
  runtime_->Validate({}, [&](Result<void> result) { answer = std::move(result); });
  loop_.RunUntilIdle();
  loop_.Advance(std::chrono::seconds(3));
  ASSERT_TRUE(answer);
  EXPECT_THAT(answer->error().message, HasSubstr("could not validate"));
  EXPECT_FALSE(runtime_->is_ready()) << "and is disconnected";
}

TEST(NriCodec, AValidatorIsToldTheOwnersEvenIfThereAreNone) {
  // Plugins look an owner up in this message (5) without checking that it is there.
  EXPECT_THAT(nri::EncodeValidation({}), HasSubstr(std::string("\x2a\x00", 2)));
}

TEST(NriCodec, ChangesThatNobodyCarriesOutAreNamed) {
  // adjust (1) with linux (6): io_priority (5), scheduler (10), rdt (11), memory_policy (12)
  const std::string bytes("\x0a\x0a\x32\x08\x2a\x00\x52\x00\x5a\x00\x62\x00", 12);
  const auto answer = nri::DecodeAnswer(NriEvent::kCreateContainer, bytes);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_THAT(answer->adjustment.unsupported,
              ElementsAre("I/O priority", "scheduler", "RDT", "memory policy"));
}

TEST_F(NriSessionTest, UnknownEventsAreRefused) {
  callbacks_.container_events = {static_cast<NriEvent>(20)};
  callbacks_.on_container_event = [](NriEvent, const NriPodSandbox&, const NriContainer&,
                                     NriDone done) { done(Ok()); };
  Start();
  ASSERT_FALSE(log_.empty());
  EXPECT_THAT(log_.front(), HasSubstr("it subscribes to unknown events"));
}

}  // namespace
}  // namespace drakkar::rpc
