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
          .linux_namespaces = {{"network", "/proc/42/ns/net"}}};
}

// Both sides on one loop, which carries bytes in pieces of any size.
class NriSessionTest : public ::testing::Test {
 protected:
  void Start(std::string name = "net.example.com", std::string index = "50") {
    runtime_ = std::make_unique<NriRuntimeSession>(NriRuntimeSession::Options{
        .loop = loop_,
        .runtime_version = "1",
        .send = [this](std::string bytes) { ToPlugin(std::move(bytes)); },
        .pods = [this] { return existing_; },
        .on_ready = [this] { log_.push_back("ready"); },
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
    // Byte by byte: framing must not depend on how the socket splits the data.
    for (const char byte : bytes) {
      loop_.Post([this, byte] {
        if (plugin_ == nullptr) return;
        EXPECT_TRUE(plugin_->Receive({&byte, 1}).ok());
      });
    }
  }
  Result<void> Run(const NriPodSandbox& pod) {
    std::optional<Result<void>> answer;
    runtime_->Deliver(NriEvent::kRunPodSandbox, pod, [&](Result<void> result) { answer = result; });
    loop_.RunUntilIdle();
    if (!answer) loop_.Advance(std::chrono::seconds(3));
    return answer ? *answer : Result<void>(Internal("no answer"));
  }

  SeededLoop loop_;
  std::vector<NriPodSandbox> existing_;
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
  runtime_->Deliver(NriEvent::kRunPodSandbox, Pod("a"), [&](Result<void> result) {
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
  runtime_->Deliver(NriEvent::kRunPodSandbox, Pod("a"), [&](Result<void> result) {
    EXPECT_TRUE(result.ok());
    answered = true;
  });
  loop_.RunUntilIdle();
  EXPECT_FALSE(answered);
  runtime_->Close(Unavailable("the connection was closed"));
  loop_.RunUntilIdle();
  EXPECT_TRUE(answered);
}

NriContainer TheContainer() {
  return {.id = "c1",
          .pod_sandbox_id = "sandbox-p",
          .name = "c",
          .state = NriContainerState::kRunning,
          .labels = {{"l", "1"}},
          .annotations = {{"a", "2"}},
          .args = {"sh"},
          .env = {"A=1"},
          .mounts = {{"/data", "bind", "/host", {"rbind", "ro"}}},
          .pid = 7,
          .created_at = 1,
          .started_at = 2,
          .finished_at = 3,
          .exit_code = 4};
}

TEST_F(NriSessionTest, AContainerIsHandedOverWholeAndItsChangesComeBack) {
  const NriContainerAdjustment changes{.annotations = {{"-a", ""}},
                                       .mounts = {{"/more", "bind", "/m", {"ro"}}},
                                       .env = {{"B", "2"}, {"-A", ""}}};
  std::vector<NriContainer> seen;
  callbacks_.on_create_container = [&](const NriPodSandbox& pod, const NriContainer& container,
                                       NriAdjusted done) {
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
  EXPECT_THAT(runtime_->subscribed(),
              ElementsAre(NriEvent::kCreateContainer, NriEvent::kStopContainer));
  std::vector<Result<NriContainerAdjustment>> answers;
  for (const NriEvent event :
       {NriEvent::kCreateContainer, NriEvent::kStartContainer, NriEvent::kStopContainer}) {
    runtime_->DeliverContainer(
        event, Pod("p"), TheContainer(),
        [&](Result<NriContainerAdjustment> answer) { answers.push_back(std::move(answer)); });
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

TEST(NriCodec, ChangesThatNobodyCarriesOutAreNamed) {
  // adjust (1) with hooks (5), linux (6) and args (9); evict (3)
  const std::string bytes("\x0a\x0b\x2a\x02\x08\x01\x32\x02\x08\x01\x4a\x01x\x1a\x00", 15);
  const auto adjustment = nri::DecodeAdjustment(bytes);
  ASSERT_TRUE(adjustment.ok()) << adjustment.error().message;
  EXPECT_THAT(adjustment->unsupported, ElementsAre("hooks", "linux", "args", "evictions"));
}

TEST_F(NriSessionTest, APluginThatWantsToValidateChangesIsTurnedAway) {
  callbacks_.container_events = {NriEvent::kValidateContainerAdjustment};
  callbacks_.on_container_event = [](NriEvent, const NriPodSandbox&, const NriContainer&,
                                     NriDone done) { done(Ok()); };
  Start();
  ASSERT_FALSE(log_.empty());
  EXPECT_THAT(log_.front(), HasSubstr("50-net.example.com wants to validate container changes"));
}

}  // namespace
}  // namespace drakkar::rpc
