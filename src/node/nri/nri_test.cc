#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdlib.h>

#include "base/env/file_system.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "net/socket/socket.h"
#include "node/nri/hooked_runtime.h"
#include "node/nri/nri_server.h"
#include "node/runtime/hollow/hollow_runtime.h"
#include "rpc/nri/nri_plugin_session.h"

namespace drakkar::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A plugin in this process, over a real socket.
class TestPlugin final : public net::Socket::Handler {
 public:
  TestPlugin(UvLoop& loop, const std::string& path, std::string name, std::string index,
             rpc::NriPluginSession::Callbacks callbacks)
      : session_({.loop = loop,
                  .name = std::move(name),
                  .index = std::move(index),
                  .send = [this](std::string bytes) { socket_->Write(bytes); },
                  .callbacks = std::move(callbacks)}) {
    connector_ = net::Connector::Start(loop, {.unix_path = path},
                                       [this](Result<std::unique_ptr<net::Socket>> connected) {
                                         ASSERT_TRUE(connected.ok()) << connected.error().message;
                                         socket_ = *std::move(connected);
                                         socket_->Start(*this);
                                         session_.Start();
                                       });
  }
  void OnSocketData(std::string_view bytes) override { EXPECT_TRUE(session_.Receive(bytes).ok()); }
  void OnSocketClosed(const Error*) override {}
  void OnSocketDrained() override {}

 private:
  std::unique_ptr<net::Socket> socket_;
  rpc::NriPluginSession session_;
  std::unique_ptr<net::Connector> connector_;
};

class NriServerTest : public ::testing::Test {
 protected:
  NriServerTest() {
    char pattern[] = "/tmp/drakkar-nri-XXXXXX";
    directory_ = ::mkdtemp(pattern);
    server_ = std::make_unique<NriServer>(
        NriServer::Options{.loop = loop_, .socket_path = directory_ + "/run/nri.sock", .pods = [] {
                             return std::vector<rpc::NriPodSandbox>{{.id = "s0", .name = "old"}};
                           }});
    EXPECT_TRUE(server_->Start().ok());
  }
  ~NriServerTest() override {
    plugins_.clear();
    server_.reset();
    loop_.Post([this] { loop_.Stop(); });
    loop_.Run();
    static_cast<void>(RealFileSystem().RemoveTree(directory_));
  }
  // Runs the loop until `condition` holds, a few seconds at most.
  bool Wait(const std::function<bool()>& condition) {
    TimerHandle limit = loop_.RunAfter(std::chrono::seconds(5), [this] { loop_.Stop(); });
    std::function<void()> look = [&] {
      if (condition()) return loop_.Stop();
      poll_ = loop_.RunAfter(std::chrono::milliseconds(1), look);
    };
    loop_.Post(look);
    loop_.Run();
    poll_.reset();
    return condition();
  }
  void Add(const std::string& name, const std::string& index) {
    rpc::NriPluginSession::Callbacks callbacks;
    callbacks.on_pods = [this, name](const auto& pods) {
      log_.push_back(StrCat(name, " receives ", pods.size()));
    };
    callbacks.on_run_pod_sandbox = [this, name](const rpc::NriPodSandbox& pod, rpc::NriDone done) {
      log_.push_back(StrCat(name, " runs ", pod.name));
      done(name == "fails" ? Result<void>(Internal("no")) : Ok());
    };
    plugins_.push_back(std::make_unique<TestPlugin>(loop_, directory_ + "/run/nri.sock", name,
                                                    index, std::move(callbacks)));
    const std::size_t expected = server_->plugins() + 1;
    ASSERT_TRUE(Wait([&] { return server_->plugins() == expected; }));
  }
  Result<void> Run(const std::string& name) {
    std::optional<Result<void>> answer;
    server_->Deliver(rpc::NriEvent::kRunPodSandbox, {.id = "s", .name = name},
                     [&](Result<void> result) { answer = std::move(result); });
    EXPECT_TRUE(Wait([&] { return answer.has_value(); }));
    return *answer;
  }

  UvLoop loop_;
  std::string directory_;
  std::unique_ptr<NriServer> server_;
  std::vector<std::unique_ptr<TestPlugin>> plugins_;
  std::vector<std::string> log_;
  TimerHandle poll_;
};

TEST_F(NriServerTest, PluginsAreCalledInIndexOrder) {
  EXPECT_EQ(RealFileSystem().Stat(directory_ + "/run/nri.sock")->mode, 0600u);
  Add("later", "90");
  Add("first", "10");
  EXPECT_THAT(log_, ElementsAre("later receives 1", "first receives 1"));
  log_.clear();
  EXPECT_TRUE(Run("a").ok());
  EXPECT_THAT(log_, ElementsAre("first runs a", "later runs a"));
}

TEST_F(NriServerTest, AFailingPluginFailsTheEvent) {
  Add("fails", "10");
  Add("later", "90");
  log_.clear();
  EXPECT_THAT(Run("a").error().message, HasSubstr("NRI plugin 10-fails"));
  EXPECT_THAT(log_, ElementsAre("fails runs a"));
}

TEST_F(NriServerTest, ADisconnectedPluginIsDropped) {
  Add("one", "10");
  plugins_.clear();
  EXPECT_TRUE(Wait([&] { return server_->plugins() == 0; }));
  EXPECT_TRUE(Run("a").ok());
}

TEST_F(NriServerTest, PluginsAdjustAContainerOneAfterTheOther) {
  const auto add = [&](const std::string& name, const std::string& index,
                       rpc::NriContainerAdjustment changes) {
    rpc::NriPluginSession::Callbacks callbacks;
    callbacks.on_create_container = [this, name, changes](const rpc::NriPodSandbox& pod,
                                                          const rpc::NriContainer& container,
                                                          rpc::NriAdjusted done) {
      log_.push_back(
          StrCat(name, " sees ", pod.name, "/", container.name, " ", Join(container.env, ",")));
      done(changes);
    };
    plugins_.push_back(std::make_unique<TestPlugin>(loop_, directory_ + "/run/nri.sock", name,
                                                    index, std::move(callbacks)));
    const std::size_t expected = server_->plugins() + 1;
    ASSERT_TRUE(Wait([&] { return server_->plugins() == expected; }));
  };
  EXPECT_FALSE(server_->Wants(rpc::NriEvent::kCreateContainer));
  add("second", "20", {.env = {{"B", "2"}}});
  add("first", "10", {.env = {{"A", "1"}}});
  EXPECT_TRUE(server_->Wants(rpc::NriEvent::kCreateContainer));
  const auto create = [&] {
    std::optional<Result<rpc::NriContainerAdjustment>> answer;
    server_->DeliverContainer(
        rpc::NriEvent::kCreateContainer, {.name = "p"}, {.name = "c", .env = {"X=0"}},
        [&](Result<rpc::NriContainerAdjustment> result) { answer = std::move(result); });
    EXPECT_TRUE(Wait([&] { return answer.has_value(); }));
    return *answer;
  };
  const auto changes = create();
  ASSERT_TRUE(changes.ok()) << changes.error().message;
  EXPECT_THAT(changes->env, ElementsAre(std::pair<std::string, std::string>("A", "1"),
                                        std::pair<std::string, std::string>("B", "2")));
  EXPECT_THAT(log_, ElementsAre("first sees p/c X=0", "second sees p/c X=0,A=1"));
  add("third", "30", {.env = {{"A", "9"}}});
  EXPECT_THAT(create().error().message,
              HasSubstr("10-first and 30-third both change environment variable A"));
}

class RecordingHooks final : public PodHooks {
 public:
  bool Wants(rpc::NriEvent event) const override { return containers || rpc::IsPodEvent(event); }
  void DeliverContainer(rpc::NriEvent event, rpc::NriPodSandbox pod, rpc::NriContainer container,
                        rpc::NriAdjusted done) override {
    log.push_back(StrCat(rpc::NriEventName(event), " ", pod.name, "/", container.name));
    seen.push_back(std::move(container));
    if (refuse == event) return done(Internal("refused"));
    done(event == rpc::NriEvent::kCreateContainer ? changes : rpc::NriContainerAdjustment());
  }
  bool containers = false;
  std::optional<rpc::NriEvent> refuse;
  rpc::NriContainerAdjustment changes;
  std::vector<rpc::NriContainer> seen;

  void Deliver(rpc::NriEvent event, rpc::NriPodSandbox pod, rpc::NriDone done) override {
    log.push_back(StrCat(rpc::NriEventName(event), " ", pod.name));
    held.push_back(std::move(done));
  }
  void Answer(Result<void> result) {
    rpc::NriDone done = std::move(held.back());
    held.pop_back();
    done(std::move(result));
  }
  std::vector<std::string> log;
  std::vector<rpc::NriDone> held;
};

class HookedRuntimeTest : public ::testing::Test {
 protected:
  HookedRuntimeTest() {
    runtime_ = MakeHookedRuntime(MakeHollowRuntime(loop_, machine_), hooks_, loop_.random());
    runtime_->OnExit([this](const ContainerStatus& status) { ended_.push_back(status.name); });
    runtime_->Open([](Result<void> opened) { EXPECT_TRUE(opened.ok()); });
    loop_.RunUntilIdle();
  }
  void RunSandbox() {
    PodSandboxConfig config;
    config.name = "a";
    config.namespace_name = "default";
    config.uid = "u";
    runtime_->RunPodSandbox(std::move(config),
                            [this](Result<std::string> id) { id_ = std::move(id); });
    loop_.RunUntilIdle();
  }

  // A sandbox whose hooks succeed, with a container in it.
  Result<std::string> CreateContainer() {
    if (!id_) {
      RunSandbox();
      hooks_.Answer(Ok());
      loop_.RunUntilIdle();
      machine_.images.push_back({.id = "sha256:1", .names = {"localhost/busybox:latest"}});
      machine_.program_of = [this](const ContainerConfig& config) {
        created_ = config;
        return HollowProgram();
      };
    }
    ContainerConfig config;
    config.name = "c";
    config.image = "localhost/busybox:latest";
    config.environment = {{"A", "1"}};
    std::optional<Result<std::string>> created;
    runtime_->CreateContainer(**id_, config,
                              [&](Result<std::string> id) { created = std::move(id); });
    loop_.RunUntilIdle();
    return created ? *created : Result<std::string>(Internal("no answer"));
  }
  Result<void> Await(const std::function<void(RuntimeCallback<void>)>& call) {
    std::optional<Result<void>> answer;
    call([&](Result<void> result) { answer = std::move(result); });
    loop_.RunUntilIdle();
    loop_.Advance(std::chrono::seconds(1));
    return answer ? *answer : Result<void>(Internal("no answer"));
  }

  SeededLoop loop_;
  HollowMachine machine_;
  std::vector<std::string> ended_;
  ContainerConfig created_;
  RecordingHooks hooks_;
  std::unique_ptr<Runtime> runtime_;
  std::optional<Result<std::string>> id_;
};

TEST_F(HookedRuntimeTest, ASandboxIsReadyOnlyAfterItsHooksHaveFinished) {
  RunSandbox();
  EXPECT_THAT(hooks_.log, ElementsAre("RunPodSandbox a"));
  EXPECT_FALSE(id_.has_value());
  hooks_.Answer(Ok());
  loop_.RunUntilIdle();
  ASSERT_TRUE(id_ && id_->ok());
}

TEST_F(HookedRuntimeTest, ASandboxWhoseHookFailsIsRemoved) {
  RunSandbox();
  hooks_.Answer(Internal("no address"));
  loop_.RunUntilIdle();
  ASSERT_TRUE(id_ && !id_->ok());
  EXPECT_EQ(id_->error().message, "no address");
  EXPECT_TRUE(runtime_->ListPodSandboxes().empty());
}

TEST_F(HookedRuntimeTest, HookErrorsDoNotStopAStopOrARemoval) {
  RunSandbox();
  hooks_.Answer(Ok());
  loop_.RunUntilIdle();
  int done = 0;
  runtime_->StopPodSandbox(**id_, [&](Result<void> result) { done += result.ok(); });
  hooks_.Answer(Internal("whatever"));
  loop_.RunUntilIdle();
  runtime_->RemovePodSandbox(**id_, [&](Result<void> result) { done += result.ok(); });
  hooks_.Answer(Ok());
  loop_.RunUntilIdle();
  EXPECT_EQ(done, 2);
  EXPECT_THAT(hooks_.log, ElementsAre("RunPodSandbox a", "StopPodSandbox a", "RemovePodSandbox a"));
}

TEST_F(HookedRuntimeTest, HooksSeeAContainerFromBeforeItsCreationToItsRemoval) {
  hooks_.containers = true;
  hooks_.changes.env = {{"B", "2"}};
  const auto id = CreateContainer();
  ASSERT_TRUE(id.ok()) << id.error().message;
  hooks_.log.erase(hooks_.log.begin());  // RunPodSandbox
  EXPECT_EQ(hooks_.seen[0].id, *id) << "the id is known before";
  EXPECT_THAT(hooks_.seen[0].env, ElementsAre("A=1"));
  ASSERT_EQ(created_.environment.size(), 2u);
  EXPECT_EQ(created_.environment[1].name, "B");
  EXPECT_TRUE(Await([&](auto done) { runtime_->StartContainer(*id, std::move(done)); }).ok());
  EXPECT_TRUE(Await([&](auto done) {
                runtime_->StopContainer(*id, Duration::zero(), std::move(done));
              }).ok());
  EXPECT_THAT(ended_, ElementsAre("c"));
  EXPECT_TRUE(Await([&](auto done) { runtime_->RemoveContainer(*id, std::move(done)); }).ok());
  EXPECT_THAT(hooks_.log,
              ElementsAre("CreateContainer a/c", "PostCreateContainer a/c", "StartContainer a/c",
                          "PostStartContainer a/c", "StopContainer a/c", "RemoveContainer a/c"));
  EXPECT_THAT(hooks_.seen[2].env, ElementsAre("A=1", "B=2"))
      << "later events tell what it has become";
}

TEST_F(HookedRuntimeTest, AHookCanRefuseTheCreationAndTheStartOfAContainer) {
  hooks_.containers = true;
  hooks_.refuse = rpc::NriEvent::kCreateContainer;
  EXPECT_EQ(CreateContainer().error().message, "refused");
  EXPECT_TRUE(runtime_->ListContainers().empty());
  hooks_.refuse = rpc::NriEvent::kStartContainer;
  const auto id = CreateContainer();
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(
      Await([&](auto done) { runtime_->StartContainer(*id, std::move(done)); }).error().message,
      "refused");
  EXPECT_EQ(runtime_->GetContainerStatus(*id)->state, ContainerState::kCreated);
}

TEST_F(HookedRuntimeTest, EventsWithoutSubscribersAreNotSent) {
  const auto id = CreateContainer();
  ASSERT_TRUE(id.ok());
  EXPECT_TRUE(Await([&](auto done) { runtime_->StartContainer(*id, std::move(done)); }).ok());
  EXPECT_THAT(hooks_.log, ElementsAre("RunPodSandbox a"));
}

}  // namespace
}  // namespace drakkar::node
