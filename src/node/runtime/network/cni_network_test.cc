#include "node/runtime/network/cni_network.h"

#include <gtest/gtest.h>

#include "base/testing/memory_file_system.h"
#include "base/testing/memory_file_watcher.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "node/runtime/json.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;

// Plugins that answer as the test says.
class FakePlugins final : public CniExecutor {
 public:
  explicit FakePlugins(EventLoop& loop) : loop_(loop) {}

  bool HasPlugin(const std::string&) const override { return true; }
  void Run(CniCall call, RuntimeCallback<std::string> done) override {
    calls.push_back(call);
    ++running;
    most_running = std::max(most_running, running);
    if (holds) {
      held.push_back(std::move(done));
      return;
    }
    loop_.Post([this, call = std::move(call), done = std::move(done)]() mutable {
      --running;
      done(Answer(call));
    });
  }
  Result<std::string> Answer(const CniCall& call) {
    const std::string name = StrCat(call.plugin, " ", call.command);
    if (fails.contains(name)) return Internal(StrCat("plugin ", name, " failed: on purpose"));
    if (call.command != "ADD") return std::string();
    return result;
  }
  void LetGo() {
    holds = false;
    for (auto& done : std::exchange(held, {})) {
      --running;
      done(result);
    }
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const CniCall& call : calls) names.push_back(StrCat(call.plugin, " ", call.command));
    return names;
  }

  std::vector<CniCall> calls;
  std::set<std::string> fails;
  std::string result = R"({"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"/ns"}],)"
                       R"("ips":[{"interface":0,"address":"10.9.0.2/24"}]})";
  bool holds = false;
  std::vector<RuntimeCallback<std::string>> held;
  int running = 0;
  int most_running = 0;

 private:
  EventLoop& loop_;
};

using Names = std::vector<std::string>;

std::string TwoPlugins(std::string_view version = "1.0.0", std::string_view name = "net") {
  return StrCat(R"({"cniVersion":")", version, R"(","name":")", name,
                R"(","plugins":[{"type":"bridge"},)"
                R"({"type":"portmap","capabilities":{"portMappings":true}}]})");
}

struct Node {
  Node() {
    EXPECT_TRUE(files.MakeDirectories("/etc/cni/net.d", 0755).ok());
    EXPECT_TRUE(files.MakeDirectories("/data", 0755).ok());
  }
  void Configure(const std::string& text, const std::string& name = "10-net.conflist") {
    EXPECT_TRUE(files.WriteFile("/etc/cni/net.d/" + name, text, 0644).ok());
    watcher.Emit("/etc/cni/net.d", FileChange::kModified, name);
    loop.Advance(CniNetwork::kSettle);
  }
  void Start() {
    network.reset();
    network = std::make_unique<CniNetwork>(
        CniNetwork::Options{.loop = loop,
                            .files = files,
                            .watcher = watcher,
                            .executor = plugins,
                            .config_directory = "/etc/cni/net.d",
                            .state_directory = "/data/attachments",
                            .built_in = built_in,
                            .prepare_built_in = prepare,
                            .shared_because = shared_because,
                            .log = [this](const std::string& line) { log.push_back(line); }});
    network->Start();
  }
  PodNetworkRequest Request(const std::string& id) {
    return {.sandbox_id = id,
            .namespace_path = "/run/netns/" + id,
            .pod_name = "pod-" + id,
            .pod_namespace = "default",
            .pod_uid = "uid-" + id,
            .ports = {},
            .bandwidth = {},
            .dns = {},
            .annotations = {}};
  }
  Result<std::vector<std::string>> SetUp(PodNetworkRequest request) {
    std::optional<Result<std::vector<std::string>>> answer;
    network->SetUp(std::move(request), [&](auto ips) { answer = std::move(ips); });
    EXPECT_FALSE(answer.has_value()) << "answered inside the call";
    loop.RunUntilIdle();
    if (!answer) return Internal("no answer");
    return *std::move(answer);
  }
  Result<std::vector<std::string>> SetUp(const std::string& id) { return SetUp(Request(id)); }
  Result<void> TearDown(const std::string& id, const std::string& path = "/ns") {
    std::optional<Result<void>> answer;
    network->TearDown({id, path}, [&](Result<void> done) { answer = std::move(done); });
    EXPECT_FALSE(answer.has_value()) << "answered inside the call";
    loop.RunUntilIdle();
    return answer ? *answer : Internal("no answer");
  }
  std::vector<std::string> Attachments() {
    auto names = files.ListDirectory("/data/attachments");
    return names.ok() ? *names : std::vector<std::string>();
  }

  SeededLoop loop;
  MemoryFileSystem files;
  MemoryFileWatcher watcher{loop};
  FakePlugins plugins{loop};
  std::optional<CniList> built_in;
  std::function<void(RuntimeCallback<void>)> prepare;
  std::string shared_because;
  std::vector<std::string> log;
  std::unique_ptr<CniNetwork> network;
};

TEST(CniNetwork, RunsThePluginsInOrderAndHandsResultsOn) {
  Node node;
  node.Configure(TwoPlugins());
  node.Start();
  auto request = node.Request("s1");
  request.ports = {{.host_port = 8080, .container_port = 80, .protocol = "TCP", .host_ip = ""}};
  const auto ips = node.SetUp(request);
  ASSERT_TRUE(ips.ok()) << ips.error().message;
  EXPECT_EQ(*ips, (std::vector<std::string>{"10.9.0.2"}));
  ASSERT_EQ(node.plugins.Names(), (Names{"bridge ADD", "portmap ADD"}));
  const CniCall& first = node.plugins.calls[0];
  EXPECT_EQ(first.container_id, "s1");
  EXPECT_EQ(first.namespace_path, "/run/netns/s1");
  EXPECT_EQ(first.interface, "eth0");
  EXPECT_EQ(first.arguments,
            "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=pod-s1;"
            "K8S_POD_INFRA_CONTAINER_ID=s1;K8S_POD_UID=uid-s1");
  EXPECT_FALSE((*ParseJson(first.input))->root()["prevResult"].has_value());
  const api::TreePtr second = *ParseJson(node.plugins.calls[1].input);
  EXPECT_EQ(second->root()["prevResult"]["ips"].size(), 1u);
  EXPECT_EQ(node.plugins.calls[1].input.find("8080") != std::string::npos, true);
}

TEST(CniNetwork, TearsDownInReverseWithTheConfigurationItWasMadeWith) {
  Node node;
  node.Configure(TwoPlugins());
  node.Start();
  ASSERT_TRUE(node.SetUp("s1").ok());
  node.Configure(R"({"cniVersion":"1.0.0","name":"other","plugins":[{"type":"ptp"}]})");
  node.plugins.calls.clear();
  ASSERT_TRUE(node.TearDown("s1").ok());
  ASSERT_EQ(node.plugins.Names(), (Names{"portmap DEL", "bridge DEL"}));
  for (const CniCall& call : node.plugins.calls) {
    const api::TreePtr input = *ParseJson(call.input);
    EXPECT_EQ(input->root()["name"].str(), "net");
    EXPECT_EQ(input->root()["prevResult"]["ips"].size(), 1u) << "the cached result";
  }
  EXPECT_TRUE(node.Attachments().empty());
  EXPECT_TRUE(node.TearDown("s1").ok()) << "again";
  EXPECT_EQ(node.plugins.calls.size(), 2u);
}

TEST(CniNetwork, AFailedSetupIsUndoneAtOnce) {
  Node node;
  node.Configure(TwoPlugins());
  node.Start();
  node.plugins.fails = {"portmap ADD"};
  const auto ips = node.SetUp("s1");
  ASSERT_FALSE(ips.ok());
  EXPECT_EQ(ips.error().message, "plugin portmap ADD failed: on purpose");
  EXPECT_EQ(node.plugins.Names(),
            (Names{"bridge ADD", "portmap ADD", "portmap DEL", "bridge DEL"}));
  EXPECT_TRUE(node.Attachments().empty());
}

TEST(CniNetwork, WhatCouldNotBeUndoneIsRetried) {
  Node node;
  node.Configure(TwoPlugins());
  node.Start();
  node.plugins.fails = {"portmap ADD", "bridge DEL"};
  ASSERT_FALSE(node.SetUp("s1").ok());
  EXPECT_EQ(node.Attachments().size(), 1u);
  node.loop.Advance(seconds(1));
  EXPECT_EQ(node.Attachments().size(), 1u) << "it failed again";
  node.plugins.fails.clear();
  node.loop.Advance(seconds(2));
  EXPECT_TRUE(node.Attachments().empty());
  EXPECT_EQ(node.loop.pending_timers(), 0u);
}

TEST(CniNetwork, EveryPluginIsAskedToRemoveItsPartEvenIfOneFails) {
  Node node;
  node.Configure(TwoPlugins());
  node.Start();
  ASSERT_TRUE(node.SetUp("s1").ok());
  node.plugins.calls.clear();
  node.plugins.fails = {"portmap DEL"};
  EXPECT_FALSE(node.TearDown("s1").ok());
  EXPECT_EQ(node.plugins.Names(), (Names{"portmap DEL", "bridge DEL"}));
  EXPECT_EQ(node.Attachments().size(), 1u) << "so that the next call retries";
  node.plugins.fails.clear();
  EXPECT_TRUE(node.TearDown("s1", "").ok());
  EXPECT_TRUE(node.Attachments().empty());
}

TEST(CniNetwork, AResultWithoutAnAddressIsAFailure) {
  Node node;
  node.Configure(TwoPlugins());
  node.Start();
  for (const char* result : {"", "{}", R"({"ips":[]})", R"({"ips":[{"address":"x"}]})"}) {
    node.plugins.result = result;
    EXPECT_FALSE(node.SetUp("s1").ok()) << result;
    EXPECT_TRUE(node.Attachments().empty()) << result;
  }
}

TEST(CniNetwork, AfterARestartLostSandboxesAreTornDownAndOthersChecked) {
  Node node;
  node.Configure(TwoPlugins());
  node.Start();
  ASSERT_TRUE(node.SetUp("kept").ok());
  ASSERT_TRUE(node.SetUp("lost").ok());
  // Killed in the middle of ADD.
  node.plugins.holds = true;
  node.network->SetUp(node.Request("half"), [](auto) { FAIL() << "the network is gone"; });
  node.loop.RunUntilIdle();
  node.Start();
  node.plugins.holds = false;
  node.plugins.held.clear();
  node.plugins.calls.clear();
  node.network->Adopt({{"kept", "/run/netns/kept"}});
  node.loop.RunUntilIdle();
  std::map<std::string, Names> by_id;
  for (const CniCall& call : node.plugins.calls) {
    by_id[call.container_id].push_back(StrCat(call.plugin, " ", call.command));
  }
  EXPECT_EQ(by_id["kept"], (Names{"bridge CHECK", "portmap CHECK"}));
  EXPECT_EQ(by_id["lost"], (Names{"portmap DEL", "bridge DEL"}));
  EXPECT_EQ(by_id["half"], (Names{"portmap DEL", "bridge DEL"}));
  EXPECT_EQ(node.Attachments(), (Names{"kept.json"}));
}

TEST(CniNetwork, CheckIsLeftOutWhereTheNetworkDoesNotHaveIt) {
  for (const std::string& list :
       {TwoPlugins("0.3.1"),
        std::string(R"({"cniVersion":"1.0.0","name":"net","disableCheck":true,)"
                    R"("plugins":[{"type":"bridge"}]})")}) {
    Node node;
    node.Configure(list);
    node.Start();
    ASSERT_TRUE(node.SetUp("s1").ok());
    node.plugins.calls.clear();
    node.network->Adopt({{"s1", "/ns"}});
    node.loop.RunUntilIdle();
    EXPECT_EQ(node.plugins.Names(), Names{});
  }
}

TEST(CniNetwork, PluginsOfVersion11CollectGarbageAloneAndKnowWhatIsValid) {
  Node node;
  node.Configure(TwoPlugins("1.1.0"));
  node.Start();
  node.loop.RunUntilIdle();
  ASSERT_TRUE(node.SetUp("s1").ok());
  node.plugins.calls.clear();
  node.network->Adopt({{"s1", "/ns"}});
  node.loop.RunUntilIdle();
  ASSERT_EQ(node.plugins.Names(),
            (Names{"bridge CHECK", "portmap CHECK", "bridge GC", "portmap GC"}));
  const api::TreePtr input = *ParseJson(node.plugins.calls[2].input);
  const api::Value valid = input->root().Entry("cni.dev/valid-attachments");
  ASSERT_EQ(valid.size(), 1u);
  for (api::Value each : valid.elements()) {
    EXPECT_EQ(each.Entry("containerID").str(), "s1");
    EXPECT_EQ(each.Entry("ifname").str(), "eth0");
  }
  // A pod that starts meanwhile waits: GC would take its address for garbage.
  node.plugins.calls.clear();
  node.network->Adopt({{"s1", "/ns"}});
  node.network->SetUp(node.Request("s2"), [](auto) {});
  node.plugins.holds = false;
  node.loop.RunUntilIdle();
  EXPECT_EQ(node.plugins.Names(), (Names{"bridge CHECK", "portmap CHECK", "bridge GC", "portmap GC",
                                         "bridge ADD", "portmap ADD"}));
}

TEST(CniNetwork, AnUnusableRecordIsDroppedInsteadOfBlockingThePodForever) {
  Node node;
  node.Configure(TwoPlugins());
  node.Start();
  ASSERT_TRUE(node.SetUp("s1").ok());
  ASSERT_TRUE(node.files.WriteFile("/data/attachments/s1.json", "{torn", 0600).ok());
  EXPECT_TRUE(node.TearDown("s1").ok());
  EXPECT_TRUE(node.Attachments().empty());
}

TEST(CniNetwork, AFewOperationsRunAtATime) {
  Node node;
  node.Configure(TwoPlugins());
  node.Start();
  node.plugins.holds = true;
  int answered = 0;
  for (int i = 0; i < 20; ++i) {
    node.network->SetUp(node.Request(StrCat("s", i)), [&](auto ips) {
      EXPECT_TRUE(ips.ok());
      ++answered;
    });
  }
  node.loop.RunUntilIdle();
  EXPECT_EQ(node.plugins.running, static_cast<int>(CniNetwork::kMaxRunning));
  node.plugins.LetGo();
  node.loop.RunUntilIdle();
  EXPECT_EQ(answered, 20);
  EXPECT_EQ(node.plugins.most_running, static_cast<int>(CniNetwork::kMaxRunning));
}

TEST(CniNetwork, MorePodsThanTheQueueHoldsAreRefused) {
  Node node;
  node.Configure(TwoPlugins());
  node.Start();
  node.plugins.holds = true;
  int refused = 0;
  for (std::size_t i = 0; i < CniNetwork::kMaxQueued + 1; ++i) {
    node.network->SetUp(node.Request(StrCat("s", i)), [&](auto ips) {
      if (!ips.ok() && ips.error().code == ErrorCode::kResourceExhausted) ++refused;
    });
  }
  node.loop.RunUntilIdle();
  EXPECT_EQ(refused, 1);
}

TEST(CniNetwork, ANewConfigurationIsNoticed) {
  Node node;
  node.Start();
  int changes = 0;
  node.network->OnStateChanged([&] { ++changes; });
  EXPECT_EQ(node.network->State().mode, PodNetworkMode::kNotReady);
  EXPECT_EQ(node.network->State().message,
            "cni config load failed: no network config found in /etc/cni/net.d: cni plugin not "
            "initialized");
  const auto ips = node.SetUp("s1");
  ASSERT_FALSE(ips.ok());
  EXPECT_EQ(ips.error().code, ErrorCode::kUnavailable);
  node.Configure(TwoPlugins());
  EXPECT_EQ(node.network->State().mode, PodNetworkMode::kOwn);
  EXPECT_EQ(changes, 1);
  EXPECT_TRUE(node.SetUp("s1").ok());
  node.Configure("{broken", "00-first.conflist");
  EXPECT_EQ(node.network->State().mode, PodNetworkMode::kNotReady);
  EXPECT_EQ(changes, 2);
}

TEST(CniNetwork, ADirectoryThatIsCreatedLaterIsNoticed) {
  Node node;
  ASSERT_TRUE(node.files.RemoveTree("/etc/cni").ok());
  node.watcher.FailNextWatch(NotFound("no such directory"));
  node.Start();
  ASSERT_TRUE(node.watcher.IsWatched("/etc/cni"));
  ASSERT_TRUE(node.files.MakeDirectories("/etc/cni/net.d", 0755).ok());
  ASSERT_TRUE(node.files.WriteFile("/etc/cni/net.d/a.conflist", TwoPlugins(), 0644).ok());
  node.watcher.Emit("/etc/cni", FileChange::kCreated, "other");
  node.loop.Advance(seconds(1));
  EXPECT_EQ(node.network->State().mode, PodNetworkMode::kNotReady);
  node.watcher.Emit("/etc/cni", FileChange::kCreated, "net.d");
  node.loop.Advance(seconds(1));
  EXPECT_EQ(node.network->State().mode, PodNetworkMode::kOwn);
  EXPECT_TRUE(node.watcher.IsWatched("/etc/cni/net.d"));
}

TEST(CniNetwork, WithoutAConfigurationPodsShareTheHostsNetworkIfToldSo) {
  Node node;
  node.shared_because = "no plugins";
  node.Start();
  EXPECT_EQ(node.network->State(), (PodNetworkState{PodNetworkMode::kHost, "no plugins"}));
  node.Configure(TwoPlugins());
  EXPECT_EQ(node.network->State().mode, PodNetworkMode::kOwn);
}

TEST(CniNetwork, TheBuiltInNetworkIsPreparedBeforeItsFirstPodAndMakesWayForAConfiguredOne) {
  Node node;
  int prepared = 0;
  node.built_in = *ParseCniList(TwoPlugins("0.4.0", "built-in"), true);
  node.prepare = [&](RuntimeCallback<void> done) {
    EXPECT_TRUE(node.plugins.calls.empty());
    ++prepared;
    node.loop.Post([done = std::move(done)]() mutable { done(Ok()); });
  };
  node.Start();
  EXPECT_EQ(prepared, 0) << "without pods nothing happens to the machine";
  ASSERT_TRUE(node.SetUp("s1").ok());
  ASSERT_TRUE(node.SetUp("s2").ok());
  EXPECT_EQ(prepared, 1);
  node.Configure(TwoPlugins());
  ASSERT_TRUE(node.SetUp("s3").ok());
  const api::TreePtr input = *ParseJson(node.plugins.calls.back().input);
  EXPECT_EQ(input->root()["name"].str(), "net");
}

TEST(CniNetwork, NamesCannotSmuggleArguments) {
  Node node;
  node.Configure(TwoPlugins());
  node.Start();
  auto request = node.Request("s1");
  request.pod_name = "x;K8S_POD_NAMESPACE=kube-system";
  EXPECT_FALSE(node.SetUp(request).ok());
  EXPECT_TRUE(node.plugins.calls.empty());
}

TEST(CniNetwork, PodSettingsBecomeCapabilities) {
  PodNetworkRequest request;
  EXPECT_TRUE(CapabilitiesOf(request).empty());
  request.ports = {
      {.host_port = 1, .container_port = 2, .protocol = "UDP", .host_ip = "127.0.0.1"}};
  request.bandwidth = {.ingress_bits = 1000, .egress_bits = 0};
  request.dns = DnsConfig{.servers = {"10.0.0.10"}, .searches = {"a"}, .options = {"ndots:5"}};
  request.annotations = {{"k", "v"}};
  const auto arguments = CapabilitiesOf(request);
  EXPECT_EQ(arguments.at("portMappings"),
            R"([{"hostPort":1,"containerPort":2,"protocol":"udp","hostIP":"127.0.0.1"}])");
  EXPECT_EQ(arguments.at("bandwidth"), R"({"ingressRate":1000,"ingressBurst":2147483647})");
  EXPECT_EQ(arguments.at("dns"),
            R"({"servers":["10.0.0.10"],"searches":["a"],"options":["ndots:5"]})");
  EXPECT_EQ(arguments.at("io.kubernetes.cri.pod-annotations"), R"({"k":"v"})");
}

TEST(CniNetworkStatus, PodsWaitUntilThePluginsSayThatTheyAreReady) {
  Node node;
  node.Configure(TwoPlugins("1.1.0"));
  node.plugins.fails = {"portmap STATUS"};
  node.Start();
  EXPECT_EQ(node.network->State().mode, PodNetworkMode::kNotReady) << "not asked yet";
  int changes = 0;
  node.network->OnStateChanged([&] { ++changes; });
  node.loop.RunUntilIdle();
  EXPECT_EQ(node.plugins.Names(), (Names{"bridge STATUS", "portmap STATUS"}));
  EXPECT_EQ(node.network->State().message,
            "network plugins are not ready: plugin portmap STATUS failed: on purpose");
  EXPECT_FALSE(node.SetUp("a").ok());
  EXPECT_TRUE(node.TearDown("a").ok());
  node.plugins.fails.clear();
  node.loop.Advance(CniNetwork::kStatusEvery);
  EXPECT_EQ(node.network->State().mode, PodNetworkMode::kOwn);
  EXPECT_TRUE(node.SetUp("a").ok());
  const int before = changes;
  node.loop.Advance(3 * CniNetwork::kStatusEvery);
  EXPECT_EQ(changes, before) << "nothing changed";
  node.plugins.fails = {"bridge STATUS"};
  node.loop.Advance(CniNetwork::kStatusEvery);
  EXPECT_EQ(node.network->State().mode, PodNetworkMode::kNotReady);
  EXPECT_GT(changes, before);
}

TEST(CniNetworkStatus, ANewConfigurationIsAskedAtOnceAndAnOldVersionNever) {
  Node node;
  node.Configure(TwoPlugins("1.0.0"));
  node.Start();
  node.loop.Advance(seconds(60));
  EXPECT_EQ(node.plugins.Names(), Names());
  EXPECT_EQ(node.network->State().mode, PodNetworkMode::kOwn);
  node.plugins.holds = true;
  node.Configure(TwoPlugins("1.1.0", "second"));
  EXPECT_EQ(node.network->State().mode, PodNetworkMode::kNotReady);
  node.Configure(TwoPlugins("1.1.0", "third"));
  ASSERT_EQ(node.plugins.calls.size(), 1u) << "one question at a time";
  node.plugins.LetGo();
  node.loop.RunUntilIdle();
  EXPECT_EQ(node.network->State().mode, PodNetworkMode::kOwn);
  EXPECT_TRUE(node.plugins.calls.back().input.find("third") != std::string::npos);
  const std::size_t calls = node.plugins.calls.size();
  node.Configure(TwoPlugins("1.0.0", "fourth"));
  node.loop.Advance(seconds(60));
  EXPECT_EQ(node.plugins.calls.size(), calls);
  EXPECT_EQ(node.network->State().mode, PodNetworkMode::kOwn);
}

}  // namespace
}  // namespace drakkar::node
