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
  rpc::NriPluginSession& session() { return session_; }

 private:
  std::unique_ptr<net::Socket> socket_;
  rpc::NriPluginSession session_;
  std::unique_ptr<net::Connector> connector_;
};

// One pod, and containers whose cgroups are lists of texts.
class FakeObjects final : public HookedObjects {
 public:
  std::vector<rpc::NriPodSandbox> DescribePods() override { return {{.id = "s0", .name = "old"}}; }
  std::vector<rpc::NriContainer> DescribeContainers() override { return {{.id = "c0"}}; }
  void Update(std::vector<rpc::NriContainerUpdate> updates,
              absl::AnyInvocable<void(std::vector<FailedUpdate>)> done) override {
    std::vector<FailedUpdate> failed;
    for (rpc::NriContainerUpdate& update : updates) {
      log.push_back(StrCat("update ", update.container_id, " ", update.resources.cpus));
      if (update.container_id == "broken") {
        failed.push_back({std::move(update), Internal("no such file")});
      }
    }
    done(std::move(failed));
  }
  void Evict(const rpc::NriEviction& eviction) override {
    log.push_back(StrCat("evict ", eviction.container_id));
  }
  std::vector<std::string> log;
};

class NriServerTest : public ::testing::Test {
 protected:
  NriServerTest() {
    char pattern[] = "/tmp/drakkar-nri-XXXXXX";
    directory_ = ::mkdtemp(pattern);
    server_ = std::make_unique<NriServer>(
        NriServer::Options{.loop = loop_, .socket_path = directory_ + "/run/nri.sock"});
    server_->Connect(&objects_);
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
    server_->Deliver(rpc::NriEvent::kRunPodSandbox, {.id = "s", .name = name}, {},
                     [&](Result<void> result) { answer = std::move(result); });
    EXPECT_TRUE(Wait([&] { return answer.has_value(); }));
    return *answer;
  }

  TestPlugin& Add(const std::string& name, const std::string& index,
                  rpc::NriPluginSession::Callbacks callbacks) {
    plugins_.push_back(std::make_unique<TestPlugin>(loop_, directory_ + "/run/nri.sock", name,
                                                    index, std::move(callbacks)));
    const std::size_t expected = server_->plugins() + 1;
    EXPECT_TRUE(Wait([&] { return server_->plugins() == expected; }));
    return *plugins_.back();
  }
  // A plugin that answers the creation of containers.
  TestPlugin& AddCreator(const std::string& name, const std::string& index,
                         std::function<Result<rpc::NriAnswer>(const rpc::NriContainer&)> answer) {
    rpc::NriPluginSession::Callbacks callbacks;
    callbacks.on_create_container = [this, name, answer = std::move(answer)](
                                        const rpc::NriPodSandbox& pod,
                                        const rpc::NriContainer& container, rpc::NriAnswered done) {
      log_.push_back(
          StrCat(name, " sees ", pod.name, "/", container.name, " ", Join(container.env, ",")));
      done(answer(container));
    };
    return Add(name, index, std::move(callbacks));
  }
  Result<PodHooks::Changes> Create(std::map<std::string, std::string> annotations = {}) {
    std::optional<Result<PodHooks::Changes>> answer;
    server_->DeliverContainer(
        rpc::NriEvent::kCreateContainer, {.name = "p", .annotations = std::move(annotations)},
        {.id = "c1", .name = "c", .env = {"X=0"}}, {},
        [&](Result<PodHooks::Changes> result) { answer = std::move(result); });
    EXPECT_TRUE(Wait([&] { return answer.has_value(); }));
    return *answer;
  }

  UvLoop loop_;
  FakeObjects objects_;
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
  const auto answers = [](rpc::NriContainerAdjustment changes) {
    return [changes](const rpc::NriContainer&) { return rpc::NriAnswer{changes, {}, {}}; };
  };
  EXPECT_FALSE(server_->Wants(rpc::NriEvent::kCreateContainer));
  AddCreator("second", "20", answers({.env = {{"B", "2"}}}));
  AddCreator("first", "10", answers({.env = {{"A", "1"}}}));
  EXPECT_TRUE(server_->Wants(rpc::NriEvent::kCreateContainer));
  const auto changes = Create();
  ASSERT_TRUE(changes.ok()) << changes.error().message;
  EXPECT_THAT(changes->adjustment.env, ElementsAre(std::pair<std::string, std::string>("A", "1"),
                                                   std::pair<std::string, std::string>("B", "2")));
  EXPECT_THAT(log_, ElementsAre("first sees p/c X=0", "second sees p/c X=0,A=1"));
  AddCreator("third", "30", answers({.env = {{"A", "9"}}}));
  EXPECT_THAT(Create().error().message,
              HasSubstr("10-first and 30-third both change environment variable A"));
}

TEST_F(NriServerTest, UpdatesOfOtherContainersAreInForceBeforeTheAnswer) {
  bool fails = false;
  AddCreator("cpu", "10", [&](const rpc::NriContainer&) {
    return rpc::NriAnswer{
        {.resources = {.cpus = "1"}},
        {{"c2", {.cpus = "0"}, false}, {fails ? "broken" : "c3", {.cpus = "0"}, false}},
        {{"c4", "in the way"}}};
  });
  const auto changes = Create();
  ASSERT_TRUE(changes.ok()) << changes.error().message;
  EXPECT_EQ(changes->adjustment.resources.cpus, "1");
  EXPECT_THAT(objects_.log, ElementsAre("evict c4", "update c2 0", "update c3 0"));
  fails = true;
  EXPECT_THAT(Create().error().message,
              HasSubstr("update container broken for an NRI plugin: no such file"));
}

TEST_F(NriServerTest, ARequestThatCannotBeHonouredFailsOnlyItsContainer) {
  AddCreator("odd", "10", [](const rpc::NriContainer& container) -> Result<rpc::NriAnswer> {
    if (container.id == "c1") return Internal("not this one");
    return rpc::NriAnswer();
  });
  EXPECT_THAT(Create().error().message, HasSubstr("not this one"));
  EXPECT_TRUE(Run("a").ok()) << "other events go on";
  EXPECT_EQ(server_->plugins(), 1u);
}

TEST_F(NriServerTest, ANewPluginsUpdatesAreAppliedAndEventsWaitForItsSynchronization) {
  rpc::NriPluginSession::Callbacks callbacks;
  callbacks.on_containers = [this](const std::vector<rpc::NriContainer>& containers) {
    log_.push_back(StrCat("synchronizes ", containers.size()));
    return std::vector<rpc::NriContainerUpdate>{{"c0", {.cpus = "0-1"}, false}};
  };
  callbacks.on_run_pod_sandbox = [this](const rpc::NriPodSandbox& pod, rpc::NriDone done) {
    log_.push_back(StrCat("runs ", pod.name));
    done(Ok());
  };
  plugins_.push_back(std::make_unique<TestPlugin>(loop_, directory_ + "/run/nri.sock", "late", "10",
                                                  std::move(callbacks)));
  ASSERT_TRUE(Wait([&] { return server_->Wants(rpc::NriEvent::kRunPodSandbox); }));
  EXPECT_TRUE(Run("a").ok());
  EXPECT_THAT(log_, ElementsAre("synchronizes 1", "runs a"));
  EXPECT_THAT(objects_.log, ElementsAre("update c0 0-1"));
}

TEST_F(NriServerTest, EventsAreDeliveredOneAfterTheOther) {
  std::vector<rpc::NriDone> held;
  rpc::NriPluginSession::Callbacks callbacks;
  callbacks.on_run_pod_sandbox = [&](const rpc::NriPodSandbox& pod, rpc::NriDone done) {
    log_.push_back(pod.name);
    held.push_back(std::move(done));
  };
  Add("slow", "10", std::move(callbacks));
  int answered = 0;
  for (const char* name : {"a", "b"}) {
    server_->Deliver(rpc::NriEvent::kRunPodSandbox, {.id = name, .name = name}, {},
                     [&](Result<void> result) { answered += result.ok(); });
  }
  ASSERT_TRUE(Wait([&] { return held.size() == 1; }));
  EXPECT_THAT(log_, ElementsAre("a"));
  held[0](Ok());
  ASSERT_TRUE(Wait([&] { return held.size() == 2; }));
  held[1](Ok());
  EXPECT_TRUE(Wait([&] { return answered == 2; }));
}

TEST_F(NriServerTest, APluginUpdatesContainersOnItsOwn) {
  TestPlugin& plugin = AddCreator("cpu", "10", [](const auto&) { return rpc::NriAnswer(); });
  std::optional<Result<std::vector<rpc::NriContainerUpdate>>> failed;
  plugin.session().UpdateContainers(
      {{"c1", {.cpus = "0"}, false}, {"broken", {.cpus = "1"}, false}}, {{"c9", "enough"}},
      [&](auto result) { failed = std::move(result); });
  ASSERT_TRUE(Wait([&] { return failed.has_value(); }));
  ASSERT_TRUE(failed->ok());
  ASSERT_EQ((*failed)->size(), 1u);
  EXPECT_EQ((**failed)[0].container_id, "broken");
  EXPECT_THAT(objects_.log, ElementsAre("evict c9", "update broken 1", "update c1 0"));
}

TEST_F(NriServerTest, AValidatorSeesWhoOwnsWhatAndMayReject) {
  AddCreator("cpu", "10", [](const auto&) {
    return rpc::NriAnswer{{.resources = {.cpus = "1"}}, {{"c2", {.cpus = "0"}, false}}, {}};
  });
  std::optional<rpc::NriValidation> seen;
  Result<void> verdict = Ok();
  rpc::NriPluginSession::Callbacks callbacks;
  callbacks.on_validate = [&](const rpc::NriValidation& validation, rpc::NriDone done) {
    seen = validation;
    done(verdict);
  };
  Add("judge", "90", std::move(callbacks));
  ASSERT_TRUE(Create().ok());
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->adjustment.resources.cpus, "1");
  EXPECT_EQ(seen->container.resources.cpus, "") << "as it was before";
  EXPECT_EQ(seen->owners.at("c1").simple.at(rpc::NriField::kCpusetCpus), "10-cpu");
  EXPECT_EQ(seen->owners.at("c2").simple.at(rpc::NriField::kCpusetCpus), "10-cpu");
  EXPECT_THAT(seen->plugins, ElementsAre(rpc::NriPluginInstance{"cpu", "10"},
                                         rpc::NriPluginInstance{"judge", "90"}));
  objects_.log.clear();
  verdict = FailedPrecondition("no pinning here");
  EXPECT_THAT(Create().error().message, HasSubstr("90-judge rejects the changes of container c"));
  EXPECT_TRUE(objects_.log.empty()) << "nothing was updated";
}

TEST_F(NriServerTest, WithoutARequiredPluginNoContainerIsCreated) {
  EXPECT_TRUE(Create().ok());
  EXPECT_THAT(Create({{"required-plugins.noderesource.dev", "[ cpu ]"}}).error().message,
              HasSubstr("container c requires NRI plugins that are not connected: cpu"));
  server_ = std::make_unique<NriServer>(NriServer::Options{
      .loop = loop_, .socket_path = directory_ + "/run/2.sock", .required_plugins = {"cpu"}});
  EXPECT_TRUE(server_->Wants(rpc::NriEvent::kCreateContainer));
  EXPECT_THAT(Create().error().message, HasSubstr("not connected: cpu"));
  EXPECT_TRUE(Create({{"tolerate-missing-plugins.noderesource.dev/container.c", "true"}}).ok());
  EXPECT_TRUE(Run("a").ok()) << "sandboxes are not affected";
}

class RecordingHooks final : public PodHooks {
 public:
  void Connect(HookedObjects* given) override { objects = given; }
  bool Wants(rpc::NriEvent event) const override {
    return containers || event <= rpc::NriEvent::kRemovePodSandbox;
  }
  void DeliverContainer(rpc::NriEvent event, rpc::NriPodSandbox pod, rpc::NriContainer container,
                        rpc::NriResources resources, Changed done) override {
    log.push_back(StrCat(rpc::NriEventName(event), " ", pod.name, "/", container.name));
    seen.push_back(std::move(container));
    if (event == rpc::NriEvent::kUpdateContainer) asked = std::move(resources);
    if (refuse == event) return done(Internal("refused"));
    Changes answer;
    if (event == rpc::NriEvent::kCreateContainer) answer.adjustment = changes;
    if (event == rpc::NriEvent::kUpdateContainer) answer.resources = updates;
    done(std::move(answer));
  }
  HookedObjects* objects = nullptr;
  rpc::NriResources asked;
  rpc::NriResources updates;
  bool containers = false;
  std::optional<rpc::NriEvent> refuse;
  rpc::NriContainerAdjustment changes;
  std::vector<rpc::NriContainer> seen;

  void Deliver(rpc::NriEvent event, rpc::NriPodSandbox pod, rpc::NriResources,
               rpc::NriDone done) override {
    log.push_back(StrCat(rpc::NriEventName(event), " ", pod.name));
    if (event == rpc::NriEvent::kUpdatePodSandbox ||
        event == rpc::NriEvent::kPostUpdatePodSandbox) {
      return done(Ok());
    }
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

TEST_F(HookedRuntimeTest, AnUnsupportedChangeFailsTheContainerAndSaysWhy) {
  hooks_.containers = true;
  hooks_.changes.resources.rdt_class = "gold";
  EXPECT_THAT(CreateContainer().error().message,
              HasSubstr("changes of NRI plugins to container c: this node does not support RDT"));
  EXPECT_TRUE(runtime_->ListContainers().empty());
  hooks_.changes = {};
  EXPECT_TRUE(CreateContainer().ok()) << "others are not affected";
}

TEST_F(HookedRuntimeTest, HooksChangeTheCgroupsOfContainers) {
  hooks_.containers = true;
  hooks_.changes.resources.cpus = "1";
  const auto id = CreateContainer();
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(created_.cgroup_changes.cpuset_cpus, "1");
  EXPECT_TRUE(Await([&](auto done) { runtime_->StartContainer(*id, std::move(done)); }).ok());
  const auto update = [&](std::vector<rpc::NriContainerUpdate> updates) {
    std::optional<std::vector<HookedObjects::FailedUpdate>> failed;
    hooks_.objects->Update(std::move(updates), [&](auto result) { failed = std::move(result); });
    loop_.RunUntilIdle();
    return *failed;
  };
  EXPECT_TRUE(update({{*id, {.cpus = "0"}, false}, {"gone", {.cpus = "0"}, false}}).empty())
      << "a container that is gone is no failure";
  EXPECT_EQ(machine_.containers.at(*id).config.cgroup_changes.cpuset_cpus, "0");
  EXPECT_EQ(hooks_.objects->DescribeContainers()[0].resources.cpus, "0");
  const auto failed = update({{*id, {.rdt_class = "gold"}, false}});
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_THAT(failed[0].error.message, HasSubstr("RDT"));
  machine_.FailNext("ChangeCgroup", Internal("read-only file system"));
  EXPECT_EQ(update({{*id, {.cpus = "1"}, false}}).size(), 1u);
}

TEST_F(HookedRuntimeTest, HooksChangeAResizeBeforeItHappens) {
  hooks_.containers = true;
  const auto id = CreateContainer();
  ASSERT_TRUE(id.ok());
  EXPECT_TRUE(Await([&](auto done) { runtime_->StartContainer(*id, std::move(done)); }).ok());
  hooks_.log.clear();
  hooks_.updates.cpu_shares = 9;
  ResourceUpdate update;
  update.container.cpu_shares = 2;
  update.container.memory_limit_bytes = 7;
  EXPECT_TRUE(
      Await([&](auto done) { runtime_->UpdateContainer(*id, update, std::move(done)); }).ok());
  EXPECT_EQ(hooks_.asked.cpu_shares, 2);
  EXPECT_EQ(machine_.containers.at(*id).config.resources.memory_limit_bytes, 7);
  EXPECT_EQ(machine_.containers.at(*id).config.cgroup_changes.cpu_shares, 9);
  EXPECT_THAT(hooks_.log, ElementsAre("UpdatePodSandbox a", "UpdateContainer a/c",
                                      "PostUpdateContainer a/c", "PostUpdatePodSandbox a"));
  hooks_.refuse = rpc::NriEvent::kUpdateContainer;
  EXPECT_EQ(Await([&](auto done) { runtime_->UpdateContainer(*id, update, std::move(done)); })
                .error()
                .message,
            "refused");
}

TEST_F(HookedRuntimeTest, AnEvictedContainerIsStopped) {
  hooks_.containers = true;
  const auto id = CreateContainer();
  ASSERT_TRUE(id.ok());
  EXPECT_TRUE(Await([&](auto done) { runtime_->StartContainer(*id, std::move(done)); }).ok());
  hooks_.objects->Evict({*id, "in the way"});
  loop_.RunUntilIdle();
  loop_.Advance(std::chrono::seconds(31));
  EXPECT_THAT(ended_, ElementsAre("c"));
  EXPECT_TRUE(hooks_.objects->DescribeContainers().empty()) << "what has ended is not described";
}

TEST_F(HookedRuntimeTest, EventsWithoutSubscribersAreNotSent) {
  const auto id = CreateContainer();
  ASSERT_TRUE(id.ok());
  EXPECT_TRUE(Await([&](auto done) { runtime_->StartContainer(*id, std::move(done)); }).ok());
  EXPECT_THAT(hooks_.log, ElementsAre("RunPodSandbox a"));
}

}  // namespace
}  // namespace drakkar::node
