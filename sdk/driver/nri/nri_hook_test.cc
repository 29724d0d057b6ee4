// The hook against the runtime's side of NRI, over a unix socket.
#include "sdk/driver/nri/nri_hook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>

#include "sdk/driver/nri/testing/nri_runtime.h"

namespace drakkar::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Duration kLimit = std::chrono::seconds(20);

class NriHookTest : public ::testing::Test {
 protected:
  NriHookTest() {
    char pattern[] = "/tmp/nri_hook_test.XXXXXX";
    directory_ = ::mkdtemp(pattern);
    socket_path_ = directory_ + "/nri.sock";
  }
  ~NriHookTest() override {
    hook_.reset();
    runtime_.reset();
    loop_.Post([this] { loop_.Stop(); });
    loop_.Run();
    std::filesystem::remove_all(directory_);
  }

  void StartRuntime() { runtime_ = std::make_unique<NriRuntime>(loop_, socket_path_); }
  void StartHook(std::string index = "50") {
    callbacks_.on_ready = [this](const std::string& runtime) { ready_.push_back(runtime); };
    callbacks_.on_failed = [this](const Error& error) { failures_.push_back(error.message); };
    hook_ = std::make_unique<NriHook>(NriHook::Options{.loop = loop_,
                                                       .random = RealRandom(),
                                                       .socket_path = socket_path_,
                                                       .name = "net.example.com",
                                                       .index = std::move(index),
                                                       .callbacks = callbacks_});
    hook_->Start();
  }
  // Lets the loop run until `condition` holds.
  [[nodiscard]] bool RunUntil(const std::function<bool()>& condition, Duration limit = kLimit) {
    const auto end = loop_.clock().Monotonic() + limit;
    bool holds = false;
    TimerHandle timer;
    std::function<void()> check = [&] {
      holds = condition();
      if (holds || loop_.clock().Monotonic() > end) return loop_.Stop();
      timer = loop_.RunAfter(std::chrono::milliseconds(1), [&] { check(); });
    };
    loop_.Post([&] { check(); });
    loop_.Run();
    return holds;
  }
  [[nodiscard]] bool RunUntilRegistered() {
    return RunUntil(
        [this] { return hook_->is_registered() && runtime_ != nullptr && runtime_->is_ready; });
  }
  Result<void> Deliver(rpc::NriEvent event, const rpc::NriPodSandbox& pod) {
    std::optional<Result<void>> answer;
    runtime_->session->Deliver(event, pod, {}, [&](Result<void> result) { answer = result; });
    EXPECT_TRUE(RunUntil([&] { return answer.has_value(); }));
    return answer.value_or(Internal("no answer"));
  }

  std::string directory_, socket_path_;
  UvLoop loop_;
  rpc::NriPluginSession::Callbacks callbacks_;
  std::vector<std::string> ready_, failures_;
  std::unique_ptr<NriRuntime> runtime_;
  std::unique_ptr<NriHook> hook_;
};

TEST_F(NriHookTest, RegistersAndPassesEventsToTheDriver) {
  std::vector<std::string> seen;
  callbacks_.on_pods = [&](const std::vector<rpc::NriPodSandbox>& pods) {
    for (const rpc::NriPodSandbox& pod : pods) seen.push_back("is there: " + pod.name);
  };
  callbacks_.on_run_pod_sandbox = [&](const rpc::NriPodSandbox& pod, rpc::NriDone done) {
    seen.push_back("runs: " + pod.name);
    done(pod.name == "bad" ? Result<void>(FailedPrecondition("no address left")) : Ok());
  };
  StartRuntime();
  runtime_->existing = {{.id = "s0", .name = "old"}};
  StartHook("42");
  EXPECT_FALSE(hook_->is_registered()) << "nothing has been sent yet";
  ASSERT_TRUE(RunUntilRegistered());
  EXPECT_EQ(runtime_->session->title(), "42-net.example.com");
  ASSERT_THAT(ready_, SizeIs(1));
  EXPECT_THAT(ready_[0], HasSubstr("test-runtime"));
  EXPECT_TRUE(Deliver(rpc::NriEvent::kRunPodSandbox, {.id = "s1", .name = "web"}).ok());
  const Result<void> refused = Deliver(rpc::NriEvent::kRunPodSandbox, {.id = "s2", .name = "bad"});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("no address left"));
  EXPECT_THAT(seen, ElementsAre("is there: old", "runs: web", "runs: bad"));
  EXPECT_FALSE(runtime_->session->Wants(rpc::NriEvent::kStopPodSandbox)) << "no callback for it";
  EXPECT_THAT(failures_, IsEmpty());
  EXPECT_EQ(runtime_->accepted, 1);
}

TEST_F(NriHookTest, RegistersAgainAfterEachLossAndReportsEach) {
  StartRuntime();
  StartHook();
  ASSERT_TRUE(RunUntilRegistered());
  runtime_->Disconnect();
  ASSERT_TRUE(RunUntil([this] { return !hook_->is_registered(); }));
  EXPECT_THAT(failures_, ElementsAre("the runtime closed the connection"));
  ASSERT_TRUE(RunUntilRegistered());
  EXPECT_EQ(runtime_->accepted, 2);
  EXPECT_THAT(ready_, SizeIs(2));
  runtime_->Disconnect();
  ASSERT_TRUE(RunUntil([this] { return !hook_->is_registered(); }));
  EXPECT_THAT(failures_, SizeIs(2)) << "the same reason, but it was registered in between";
  ASSERT_TRUE(RunUntilRegistered());
}

TEST_F(NriHookTest, WaitsForARuntimeThatIsNotThereAndReportsThatOnce) {
  StartHook();
  ASSERT_TRUE(RunUntil([this] { return !failures_.empty(); }));
  EXPECT_FALSE(hook_->is_registered());
  // Two more attempts.
  EXPECT_FALSE(RunUntil([] { return false; }, std::chrono::milliseconds(450)));
  EXPECT_THAT(failures_, SizeIs(1));
  StartRuntime();
  ASSERT_TRUE(RunUntilRegistered());
  EXPECT_THAT(failures_, SizeIs(1));
  EXPECT_THAT(ready_, SizeIs(1));
}

TEST_F(NriHookTest, TheRuntimesReasonForRefusingItIsReported) {
  StartRuntime();
  StartHook("not two digits");
  ASSERT_TRUE(RunUntil([this] { return !failures_.empty() && runtime_->closed > 0; }));
  EXPECT_THAT(failures_[0], HasSubstr("index"));
  EXPECT_FALSE(hook_->is_registered());
  EXPECT_THAT(ready_, IsEmpty());
}

TEST_F(NriHookTest, ABrokenStreamIsClosedAndOpenedAgain) {
  StartRuntime();
  StartHook();
  ASSERT_TRUE(RunUntilRegistered());
  runtime_->Send(std::string(64, '\xff'));
  ASSERT_TRUE(RunUntil([this] { return runtime_->closed == 1; }));
  EXPECT_THAT(failures_, SizeIs(1));
  ASSERT_TRUE(RunUntilRegistered());
  EXPECT_EQ(runtime_->accepted, 2);
}

TEST_F(NriHookTest, ClosesItsConnectionAndIsSilentOnceDestroyed) {
  StartRuntime();
  StartHook();
  ASSERT_TRUE(RunUntilRegistered());
  hook_.reset();
  ASSERT_TRUE(RunUntil([this] { return runtime_->closed == 1; }));
  EXPECT_THAT(failures_, IsEmpty());
  // While it waits to retry, too.
  runtime_.reset();
  StartHook();
  ASSERT_TRUE(RunUntil([this] { return failures_.size() == 1; }));
  hook_.reset();
  StartRuntime();
  EXPECT_FALSE(RunUntil([this] { return runtime_->accepted > 0; }, std::chrono::milliseconds(200)));
}

}  // namespace
}  // namespace drakkar::driver
