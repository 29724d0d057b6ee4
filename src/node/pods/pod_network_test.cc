#include "node/runtime/network/pod_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/text/text.h"
#include "node/nri/describe.h"
#include "node/pods/container_config.h"
#include "node/pods/pod_dns.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Strings = std::vector<std::string>;

constexpr char kWeb[] = R"("containers":[{"name":"a","image":"busybox:1",
  "ports":[{"name":"web","containerPort":80,"hostPort":8080}],
  "readinessProbe":{"httpGet":{"port":"web"}},
  "env":[{"name":"IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}},
         {"name":"IPS","valueFrom":{"fieldRef":{"fieldPath":"status.podIPs"}}}]}])";
constexpr char kPlain[] = R"("containers":[{"name":"a","image":"busybox:1"}])";

api::TreePtr Parse(std::string_view json) {
  return *api::ParseJson(json);
}

class FakeNetwork final : public PodNetwork {
 public:
  PodNetworkState State() const override { return state; }
  void OnStateChanged(std::function<void()> listener) override { listener_ = std::move(listener); }
  void SetUp(PodNetworkRequest, RuntimeCallback<std::vector<std::string>>) override {}
  void TearDown(const PodNetworkUser&, RuntimeCallback<void>) override {}
  void Adopt(std::vector<PodNetworkUser>) override {}
  void Change(PodNetworkState to) {
    state = std::move(to);
    listener_();
  }
  PodNetworkState state{PodNetworkMode::kOwn, ""};

 private:
  std::function<void()> listener_;
};

struct NetworkNode : NodeHarness {
  NetworkNode() {
    NodeHarness::network = &fake;
    service_variables = {{"KUBERNETES_SERVICE_HOST", "127.0.0.1"}};
    pod_network_variables = {{"KUBERNETES_SERVICE_HOST", "10.70.0.1"}};
  }
  std::string Condition(const std::string& type, api::FieldName field) {
    const api::ObjectPtr node = api.Get("Node", "node-1");
    for (api::Value each : (*node)["status"]["conditions"].elements()) {
      if (each["type"].str() == type) return std::string(each[field].str());
    }
    return "(none)";
  }
  Strings PodIps(const std::string& name) {
    Strings ips;
    for (api::Value each : (*Pod(name))["status"]["podIPs"].elements()) {
      ips.emplace_back(each["ip"].str());
    }
    return ips;
  }
  const PodSandboxConfig& Config() { return machine.sandbox_configs.begin()->second; }
  FakeNetwork fake;
};

TEST(PodNetwork, APodHasItsOwnAddressesEverywhere) {
  NetworkNode node;
  node.machine.pod_ips = {"10.70.0.5", "fd00::5", "10.70.0.6"};
  node.StartAgent();
  node.CreatePod("p", kWeb);
  node.Advance(std::chrono::seconds(2));
  const api::Value status = (*node.Pod("p"))["status"];
  EXPECT_EQ(status["podIP"].str(), "10.70.0.5");
  EXPECT_THAT(node.PodIps("p"), ElementsAre("10.70.0.5", "fd00::5"));
  EXPECT_NE(status["hostIP"].str(), "10.70.0.5");
  const HollowContainer& container = *node.Containers("p", "a").at(0);
  EXPECT_EQ(EnvironmentOf(container, "IP"), "10.70.0.5");
  EXPECT_EQ(EnvironmentOf(container, "IPS"), "10.70.0.5,fd00::5");
  EXPECT_EQ(EnvironmentOf(container, "KUBERNETES_SERVICE_HOST"), "10.70.0.1");
  for (const Mount& mount : container.config.mounts) {
    if (mount.container_path != "/etc/hosts") continue;
    EXPECT_THAT(*node.files.ReadFile(mount.host_path), HasSubstr("10.70.0.5\tp\nfd00::5\tp\n"));
  }
  ASSERT_FALSE(node.prober.requests.empty());
  EXPECT_EQ(node.prober.requests.front().host, "10.70.0.5") << "probes use it";
  ASSERT_EQ(node.Config().ports.size(), 1u);
  EXPECT_EQ(node.Config().ports[0].host_port, 8080);
  EXPECT_EQ(node.Config().ports[0].container_port, 80);
}

TEST(PodNetwork, APodOnTheHostsNetworkHasTheHostsAddressAndNoMappedPorts) {
  NetworkNode node;
  node.machine.pod_ips = {"10.70.0.5"};
  node.StartAgent();
  node.CreatePod("p", StrCat(R"("hostNetwork":true,)", kPlain));
  node.Run();
  const api::Value status = (*node.Pod("p"))["status"];
  EXPECT_EQ(status["podIP"].str(), status["hostIP"].str());
  EXPECT_EQ(EnvironmentOf(*node.Containers("p", "a").at(0), "KUBERNETES_SERVICE_HOST"),
            "127.0.0.1");
  EXPECT_TRUE(node.Config().host_network);
  EXPECT_THAT(node.Config().ports, IsEmpty());
}

TEST(PodNetwork, ANodeWithoutItsNetworkIsNotReadyAndPodsWait) {
  NetworkNode node;
  node.fake.state = {PodNetworkMode::kNotReady, "cni plugin not initialized"};
  node.StartAgent();
  node.CreatePod("waits", kPlain);
  node.CreatePod("on-host", StrCat(R"("hostNetwork":true,)", kPlain));
  node.Run();
  EXPECT_EQ(node.Condition("Ready", "status"), "False");
  EXPECT_EQ(node.Condition("Ready", "message"),
            "container runtime network not ready: NetworkReady=false "
            "reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not "
            "initialized");
  EXPECT_EQ(node.Phase("waits"), "Pending");
  EXPECT_EQ(node.Phase("on-host"), "Running");
  EXPECT_EQ(node.Events("NetworkNotReady").size(), 1u);
  node.fake.Change({PodNetworkMode::kOwn, ""});
  node.Run();
  EXPECT_EQ(node.Condition("Ready", "status"), "True") << "at once, not at the next heartbeat";
  node.Advance(std::chrono::seconds(2));
  EXPECT_EQ(node.Phase("waits"), "Running");
}

TEST(PodNetwork, ANodeWhosePodsShareTheHostsNetworkSaysSo) {
  NetworkNode node;
  node.fake.state = {PodNetworkMode::kHost, "plugins are missing"};
  node.StartAgent();
  node.CreatePod("p", kPlain);
  node.Run();
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(node.Condition("Ready", "status"), "True");
  EXPECT_EQ(node.Condition("PodsShareHostNetwork", "status"), "True");
  EXPECT_EQ(node.Condition("PodsShareHostNetwork", "message"),
            "pods share the host's network: plugins are missing");
  EXPECT_EQ(node.Events("PodsShareHostNetwork").size(), 1u);
  node.fake.Change({PodNetworkMode::kOwn, ""});
  node.Run();
  EXPECT_EQ(node.Condition("PodsShareHostNetwork", "status"), "(none)");
}

TEST(PodNetwork, NriPluginsLearnTheNamespaceAndTheAddresses) {
  PodSandbox sandbox;
  sandbox.network_namespace = "/run/netns/x";
  sandbox.ips = {"10.70.0.5"};
  const rpc::NriPodSandbox described = DescribeSandbox(sandbox);
  EXPECT_EQ(described.linux_namespaces.at("network"), "/var/run/netns/x");
  EXPECT_THAT(described.ips, ElementsAre("10.70.0.5"));
  EXPECT_TRUE(DescribeSandbox(PodSandbox()).linux_namespaces.empty());
}

TEST(SandboxConfig, CarriesHostPortsAndBandwidth) {
  const auto pod = Parse(R"({"metadata":{"name":"p","annotations":{
      "kubernetes.io/ingress-bandwidth":"1M","kubernetes.io/egress-bandwidth":"nonsense"}},
    "spec":{"initContainers":[{"ports":[{"hostPort":1,"containerPort":1}]},
        {"restartPolicy":"Always","ports":[{"hostPort":2,"containerPort":22,"protocol":"UDP"}]}],
      "containers":[{"ports":[{"containerPort":9},
        {"hostPort":3,"containerPort":33,"hostIP":"192.0.2.1"}]}]}})");
  const PodSandboxConfig config = MakeSandboxConfig(pod->root(), 0, "/logs");
  EXPECT_FALSE(config.host_network);
  ASSERT_EQ(config.ports.size(), 2u) << "no init container, no port without a host port";
  EXPECT_EQ(config.ports[0].host_port, 2);
  EXPECT_EQ(config.ports[0].protocol, "UDP");
  EXPECT_EQ(config.ports[1].container_port, 33);
  EXPECT_EQ(config.ports[1].host_ip, "192.0.2.1");
  EXPECT_EQ(config.bandwidth.ingress_bits, 1'000'000);
  EXPECT_EQ(config.bandwidth.egress_bits, 0);
}

TEST(SandboxConfig, TheHostnameIsTheFullNameIfThePodAsksForThat) {
  const auto pod = [](const std::string& name, const char* more) {
    return Parse(
        StrCat(R"({"metadata":{"name":")", name, R"(","namespace":"n"},"spec":{)", more, "}}"));
  };
  EXPECT_EQ(*KernelHostname(pod("p", R"("subdomain":"s")")->root(), "cluster.local"), "p");
  EXPECT_EQ(*KernelHostname(pod("p", R"("setHostnameAsFQDN":true)")->root(), "d"), "p");
  const char* full = R"("subdomain":"s","setHostnameAsFQDN":true)";
  EXPECT_EQ(*KernelHostname(pod("p", full)->root(), "example.org"), "p.s.n.svc.example.org");
  const auto name = KernelHostname(pod(std::string(60, 'p'), full)->root(), "example.org");
  ASSERT_FALSE(name.ok());
  EXPECT_THAT(name.error().message, HasSubstr("is too long (64 is the max, 80 characters"));
}

TEST(PodDns, ReadsAResolverConfiguration) {
  const DnsConfig config = ParseResolvConf(
      "# comment\n; comment\nnameserver 10.0.0.1\n  nameserver\t10.0.0.2  \nnameserver\n"
      "domain old.example\nsearch a.example b.example\noptions ndots:2 rotate\noptions ndots:3\n");
  EXPECT_THAT(config.servers, ElementsAre("10.0.0.1", "10.0.0.2"));
  EXPECT_THAT(config.searches, ElementsAre("a.example", "b.example"));
  EXPECT_THAT(config.options, ElementsAre("ndots:3", "rotate"));
}

struct DnsCase {
  const char* spec;
  Strings servers;
  Strings searches;
  Strings options;
};

TEST(PodDns, FollowsPolicyAndConfigurationOfThePod) {
  const DnsSettings settings{
      .cluster_dns = {"10.96.0.10"}, .cluster_domain = "c", .resolv_conf = ""};
  const DnsConfig host{.servers = {"192.0.2.53"}, .searches = {"site"}, .options = {"rotate"}};
  const Strings cluster = {"n.svc.c", "svc.c", "c", "site"};
  const DnsCase cases[] = {
      {R"("x":1)", {"10.96.0.10"}, cluster, {"ndots:5"}},
      {R"("dnsPolicy":"ClusterFirst")", {"10.96.0.10"}, cluster, {"ndots:5"}},
      {R"("dnsPolicy":"ClusterFirst","hostNetwork":true)", {"192.0.2.53"}, {"site"}, {"rotate"}},
      {R"("dnsPolicy":"ClusterFirstWithHostNet","hostNetwork":true)",
       {"10.96.0.10"},
       cluster,
       {"ndots:5"}},
      {R"("dnsPolicy":"Default")", {"192.0.2.53"}, {"site"}, {"rotate"}},
      {R"("dnsPolicy":"None","dnsConfig":{"nameservers":["1.1.1.1"],"searches":["x"],
          "options":[{"name":"ndots","value":"1"},{"name":"edns0"}]})",
       {"1.1.1.1"},
       {"x"},
       {"ndots:1", "edns0"}},
      {R"("dnsPolicy":"Default","dnsConfig":{"nameservers":["1.1.1.1","192.0.2.53"],
          "searches":["site","x"],"options":[{"name":"rotate","value":"2"}]})",
       {"192.0.2.53", "1.1.1.1"},
       {"site", "x"},
       {"rotate:2"}},
  };
  for (const DnsCase& each : cases) {
    const auto pod = Parse(StrCat(R"({"metadata":{"namespace":"n"},"spec":{)", each.spec, "}}"));
    const PodDns dns = MakePodDns(pod->root(), settings, host);
    EXPECT_EQ(dns.config.servers, each.servers) << each.spec;
    EXPECT_EQ(dns.config.searches, each.searches) << each.spec;
    EXPECT_EQ(dns.config.options, each.options) << each.spec;
    EXPECT_THAT(dns.remarks, IsEmpty());
  }
  const auto pod = Parse(R"({"metadata":{"namespace":"n"},"spec":{}})");
  EXPECT_EQ(MakePodDns(pod->root(), {}, host).config.servers, host.servers)
      << "without cluster DNS as with Default";
}

TEST(PodDns, WhatAResolverWouldNotReadIsCutOffWithARemark) {
  DnsConfig host{
      .servers = {"1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"}, .searches = {}, .options = {}};
  for (int i = 0; i < 33; ++i) host.searches.push_back(StrCat("s", i));
  const auto pod = Parse(R"({"metadata":{"namespace":"n"},"spec":{"dnsPolicy":"Default"}})");
  PodDns dns = MakePodDns(pod->root(), {}, host);
  EXPECT_EQ(dns.config.servers.size(), 3u);
  EXPECT_EQ(dns.config.searches.size(), 32u);
  ASSERT_EQ(dns.remarks.size(), 2u);
  EXPECT_THAT(dns.remarks[0], HasSubstr("1.1.1.1 2.2.2.2 3.3.3.3"));
  host = {
      .servers = {}, .searches = {std::string(2000, 'a'), std::string(100, 'b')}, .options = {}};
  dns = MakePodDns(pod->root(), {}, host);
  EXPECT_EQ(dns.config.searches.size(), 1u);
  EXPECT_EQ(dns.remarks.size(), 1u);
}

TEST(PodDns, AResolverThatPodsCannotReachIsReplacedByTheRealOnes) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.MakeDirectories("/etc", 0755).ok());
  ASSERT_TRUE(files.MakeDirectories("/run/systemd/resolve", 0755).ok());
  EXPECT_THAT(HostResolvConf(files, {})->servers, IsEmpty());
  ASSERT_TRUE(files.WriteFile("/etc/resolv.conf", "nameserver 127.0.0.53\n", 0644).ok());
  EXPECT_THAT(HostResolvConf(files, {})->servers, ElementsAre("127.0.0.53"));
  ASSERT_TRUE(
      files.WriteFile("/run/systemd/resolve/resolv.conf", "nameserver 192.0.2.1\n", 0644).ok());
  EXPECT_THAT(HostResolvConf(files, {})->servers, ElementsAre("192.0.2.1"));
  ASSERT_TRUE(files.WriteFile("/etc/resolv.conf", "nameserver 192.0.2.9\n", 0644).ok());
  EXPECT_THAT(HostResolvConf(files, {})->servers, ElementsAre("192.0.2.9"));
  ASSERT_TRUE(files.WriteFile("/own", "nameserver 127.0.0.1\n", 0644).ok());
  DnsSettings settings;
  settings.resolv_conf = "/own";
  EXPECT_THAT(HostResolvConf(files, settings)->servers, ElementsAre("127.0.0.1"));
  settings.resolv_conf = "/none";
  EXPECT_FALSE(HostResolvConf(files, settings).ok());
}

}  // namespace
}  // namespace drakkar::node
