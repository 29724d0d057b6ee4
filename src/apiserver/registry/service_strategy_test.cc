#include "apiserver/registry/service_strategy.h"

#include <set>

#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class ServiceTest : public CoreFixture {
 protected:
  void SetUp() override { StartCore(nullptr); }
  static std::string Body(std::string_view name, std::string_view spec,
                          std::string_view metadata = "") {
    return StrCat(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":")", name, "\"",
                  metadata, R"(},"spec":{)", spec, "}}");
  }
  api::Value Made(std::string_view name, std::string_view spec) {
    kept_ = Create(Body(name, spec));
    return (*kept_)["spec"];
  }
  std::string Rejected(std::string_view spec) {
    const Response made = TryCreate(Body("x", spec));
    return made.failure ? made.failure->message : "accepted";
  }
  Response Update(std::string_view name, std::string_view spec) {
    return Handle(RequestFor(Verb::kUpdate, Body(name, spec), AdminUser()));
  }

  static constexpr std::string_view kPort = R"("ports":[{"port":80}])";
  api::ObjectPtr kept_;
};

TEST_F(ServiceTest, AServiceGetsAFreeClusterAddress) {
  std::set<std::string> addresses;
  for (int i = 0; i < 20; ++i) {
    const api::Value spec = Made(StrCat("s", i), kPort);
    const std::string address(spec["clusterIP"].str());
    EXPECT_TRUE(address.starts_with("10.9") || address.starts_with("10.10") ||
                address.starts_with("10.11"))
        << address;
    EXPECT_EQ(spec["clusterIPs"].at(0).str(), address);
    EXPECT_TRUE(addresses.insert(address).second);
  }
  const api::Value spec = (*kept_)["spec"];
  EXPECT_EQ(spec["ipFamilies"].at(0).str(), "IPv4");
  EXPECT_EQ(spec["ipFamilyPolicy"].str(), "SingleStack");
  EXPECT_EQ(spec["internalTrafficPolicy"].str(), "Cluster");
  EXPECT_EQ(spec["ports"].at(0)["targetPort"].integer(), 80);
}

TEST_F(ServiceTest, AnAddressIsGivenOnce) {
  Made("a", StrCat(kPort, R"(,"clusterIP":"10.96.0.10")"));
  EXPECT_EQ(Rejected(StrCat(kPort, R"(,"clusterIP":"10.96.0.10")")),
            "Service \"x\" is invalid: spec.clusterIPs: Invalid value: [\"10.96.0.10\"]: failed "
            "to allocate IP 10.96.0.10: provided IP is already allocated");
  EXPECT_NE(Rejected(StrCat(kPort, R"(,"clusterIP":"nonsense")")), "accepted");
}

TEST_F(ServiceTest, HeadlessAndExternalNamesHaveNoAddress) {
  EXPECT_EQ(Made("headless", R"("clusterIP":"None")")["clusterIPs"].at(0).str(), "None");
  const api::Value external =
      Made("name", R"("type":"ExternalName","externalName":"db.example.com")");
  EXPECT_FALSE(external["clusterIP"].has_value());
  EXPECT_EQ(Rejected(R"("type":"ExternalName")"),
            "Service \"x\" is invalid: spec.externalName: Required value");
}

TEST_F(ServiceTest, NodePortsAreAllocated) {
  const api::Value spec = Made("a", R"("type":"NodePort","ports":[{"name":"a","port":80},
      {"name":"b","port":81},{"name":"u","port":80,"protocol":"UDP"}])");
  std::set<std::int64_t> ports;
  for (api::Value port : spec["ports"].elements()) {
    const std::int64_t number = port["nodePort"].integer();
    EXPECT_GE(number, 30000);
    EXPECT_LE(number, 32767);
    EXPECT_TRUE(port["protocol"].str() != "TCP" || ports.insert(number).second);
  }
  EXPECT_EQ(spec["externalTrafficPolicy"].str(), "Cluster");
  const std::int64_t taken = spec["ports"].at(0)["nodePort"].integer();
  EXPECT_EQ(Rejected(StrCat(R"("type":"NodePort","ports":[{"port":80,"nodePort":)", taken, "}]")),
            StrCat("Service \"x\" is invalid: spec.ports[0].nodePort: Invalid value: ", taken,
                   ": provided port is already allocated"));
  EXPECT_EQ(Rejected(R"("ports":[{"port":80,"nodePort":30001}])"),
            "Service \"x\" is invalid: spec.ports[0].nodePort: Forbidden: may not be used when "
            "`type` is 'ClusterIP'");
}

std::string Ports(int count) {
  std::string ports;
  for (int i = 0; i < count; ++i) {
    ports += StrCat(i == 0 ? "" : ",", R"({"name":"p)", i, R"(","port":)", i + 1, "}");
  }
  return StrCat(R"("ports":[)", ports, "]");
}

TEST_F(ServiceTest, MorePortsThanThereAreNodePortsAreRejected) {
  constexpr int kAll = ServiceStrategy::kLastNodePort - ServiceStrategy::kFirstNodePort + 1;
  EXPECT_EQ(Rejected(StrCat(R"("type":"NodePort",)", Ports(kAll + 1))),
            StrCat("Service \"x\" is invalid: spec.ports[", kAll,
                   "].nodePort: Invalid value: 0: failed to allocate a nodePort: range is full"));
  const api::Value spec = Made("all", StrCat(R"("type":"NodePort",)", Ports(kAll)));
  std::set<std::int64_t> ports;
  for (api::Value port : spec["ports"].elements()) ports.insert(port["nodePort"].integer());
  EXPECT_EQ(ports.size(), std::size_t{kAll});
  EXPECT_FALSE(ports.contains(0));
  EXPECT_EQ(Rejected(R"("type":"NodePort","ports":[{"port":80}])"),
            "Service \"x\" is invalid: spec.ports[0].nodePort: Invalid value: 0: failed to "
            "allocate a nodePort: range is full");
  EXPECT_EQ(Rejected(R"("type":"NodePort","ports":[{"port":80,"protocol":"UDP"}])"), "accepted");
}

TEST_F(ServiceTest, AnUpdateLooksAtEachOfManyPortsOnce) {
  // Comparing every port with every old one would take minutes.
  constexpr int kMany = 30'000;
  constexpr std::string_view kWithoutNodePorts =
      R"("type":"LoadBalancer","allocateLoadBalancerNodePorts":false,)";
  Made("a", Ports(kMany));
  for (const std::string_view type : {kWithoutNodePorts, std::string_view()}) {
    const Response updated = Update("a", StrCat(type, Ports(kMany)));
    EXPECT_FALSE(updated.failure) << updated.failure->message;
  }
}

TEST_F(ServiceTest, PortsAreRequiredNamedAndUnique) {
  EXPECT_EQ(Rejected(R"("selector":{"a":"b"})"),
            "Service \"x\" is invalid: spec.ports: Required value");
  EXPECT_EQ(Rejected(R"("ports":[{"port":80,"name":"a"},{"port":81}])"),
            "Service \"x\" is invalid: spec.ports[1].name: Required value");
  EXPECT_EQ(Rejected(R"("ports":[{"port":70000,"targetPort":1}])"),
            "Service \"x\" is invalid: spec.ports[0].port: Invalid value: 70000: must be between 1 "
            "and 65535, inclusive");
  EXPECT_EQ(Rejected(R"("type":"Other","ports":[{"port":80}])"),
            "Service \"x\" is invalid: spec.type: Unsupported value: \"Other\": supported values: "
            "\"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"");
}

TEST_F(ServiceTest, ExternalAddressesHaveATrafficPolicyAsLongAsThereAreSome) {
  const api::Value made = Made("a", StrCat(kPort, R"(,"externalIPs":["203.0.113.1"])"));
  EXPECT_EQ(made["externalTrafficPolicy"].str(), "Cluster");
  Response updated = Update("a", StrCat(R"("type":"NodePort","externalIPs":["203.0.113.1"],)",
                                        R"("externalTrafficPolicy":"Local",)", kPort));
  ASSERT_FALSE(updated.failure) << updated.failure->message;
  updated = Update("a", StrCat(R"("externalIPs":["203.0.113.1"],)",
                               R"("externalTrafficPolicy":"Local",)", kPort));
  ASSERT_FALSE(updated.failure) << updated.failure->message;
  EXPECT_EQ((*updated.object)["spec"]["externalTrafficPolicy"].str(), "Local");
  updated = Update("a", StrCat(R"("externalTrafficPolicy":"Local",)", kPort));
  ASSERT_FALSE(updated.failure) << updated.failure->message;
  EXPECT_FALSE((*updated.object)["spec"]["externalTrafficPolicy"].has_value());
}

TEST_F(ServiceTest, AnUpdateKeepsWhatWasAllocated) {
  const std::string address(Made("a", kPort)["clusterIP"].str());
  Response updated = Update("a", R"("ports":[{"port":90}])");
  ASSERT_FALSE(updated.failure) << updated.failure->message;
  EXPECT_EQ((*updated.object)["spec"]["clusterIP"].str(), address);
  updated = Update("a", R"("type":"NodePort","ports":[{"port":90}])");
  ASSERT_FALSE(updated.failure) << updated.failure->message;
  const std::int64_t node_port = (*updated.object)["spec"]["ports"].at(0)["nodePort"].integer();
  EXPECT_NE(node_port, 0);
  updated = Update("a", R"("type":"NodePort","ports":[{"port":90,"targetPort":"http"}])");
  EXPECT_EQ((*updated.object)["spec"]["ports"].at(0)["nodePort"].integer(), node_port);
  updated = Update("a", StrCat(kPort, R"(,"clusterIP":"10.96.0.77")"));
  ASSERT_TRUE(updated.failure);
  EXPECT_NE(updated.failure->message.find("may not change once set"), std::string::npos);
  updated = Update("a", R"("type":"ExternalName","externalName":"x.example.com")");
  ASSERT_FALSE(updated.failure) << updated.failure->message;
  EXPECT_FALSE((*updated.object)["spec"]["clusterIP"].has_value());
}

TEST_F(ServiceTest, ATypeThatIsNotExposedHasNoNodePorts) {
  constexpr std::string_view kPorts = R"("ports":[{"name":"a","port":80},{"name":"b","port":81}])";
  const api::Value exposed = Made("a", StrCat(R"("type":"LoadBalancer",)", kPorts));
  EXPECT_TRUE(exposed["allocateLoadBalancerNodePorts"].boolean());
  EXPECT_EQ(exposed["externalTrafficPolicy"].str(), "Cluster");
  const std::string address(exposed["clusterIP"].str());
  // As kubectl edit sends it: everything is there, only the type is another.
  std::string ports;
  for (api::Value port : exposed["ports"].elements()) {
    EXPECT_NE(port["nodePort"].integer(), 0);
    ports += StrCat(ports.empty() ? "" : ",", R"({"name":")", port["name"].str(), R"(","port":)",
                    port["port"].integer(), R"(,"nodePort":)", port["nodePort"].integer(), "}");
  }
  Response updated =
      Update("a", StrCat(R"("type":"ClusterIP","externalTrafficPolicy":"Cluster",)",
                         R"("allocateLoadBalancerNodePorts":true,"ports":[)", ports, "]"));
  ASSERT_FALSE(updated.failure) << updated.failure->message;
  const api::Value spec = (*updated.object)["spec"];
  EXPECT_EQ(spec["clusterIP"].str(), address);
  EXPECT_FALSE(spec["externalTrafficPolicy"].has_value());
  EXPECT_FALSE(spec["allocateLoadBalancerNodePorts"].has_value());
  EXPECT_FALSE(spec["ports"].at(0)["nodePort"].has_value());
  EXPECT_FALSE(spec["ports"].at(1)["nodePort"].has_value());
  // What the client changes itself is refused instead of dropped.
  Made("b", StrCat(R"("type":"NodePort",)", kPorts));
  updated = Update("b", StrCat(R"("type":"ClusterIP","externalTrafficPolicy":"Local",)", kPorts));
  ASSERT_TRUE(updated.failure);
  EXPECT_NE(updated.failure->message.find("may only be set for externally-accessible services"),
            std::string::npos);
  updated = Update("b", R"("type":"ClusterIP","ports":[{"port":80,"nodePort":30123}])");
  ASSERT_TRUE(updated.failure);
  EXPECT_NE(updated.failure->message.find("may not be used when `type` is 'ClusterIP'"),
            std::string::npos);
}

TEST_F(ServiceTest, ALoadBalancerMayDoWithoutNodePorts) {
  const api::Value spec =
      Made("a", StrCat(R"("type":"LoadBalancer","allocateLoadBalancerNodePorts":false,)", kPort));
  EXPECT_FALSE(spec["ports"].at(0)["nodePort"].has_value());
  const api::Value kept = Made("b", R"("type":"LoadBalancer","allocateLoadBalancerNodePorts":false,
      "externalTrafficPolicy":"Local","ports":[{"port":80,"nodePort":30777}])");
  EXPECT_EQ(kept["ports"].at(0)["nodePort"].integer(), 30'777);
  EXPECT_EQ(kept["externalTrafficPolicy"].str(), "Local");
}

TEST_F(ServiceTest, ANodePortIsGivenOncePerProtocol) {
  const auto node_port = [](std::string_view protocol) {
    return StrCat(R"("type":"NodePort","ports":[{"port":80,"nodePort":30080,"protocol":")",
                  protocol, R"("}])");
  };
  Made("tcp", node_port("TCP"));
  Made("udp", node_port("UDP"));
  for (const char* protocol : {"TCP", "UDP"}) {
    EXPECT_NE(Rejected(node_port(protocol)).find("provided port is already allocated"),
              std::string::npos);
  }
  EXPECT_EQ(Rejected(node_port("SCTP")), "accepted");
  Made("checked", StrCat(R"("type":"LoadBalancer","externalTrafficPolicy":"Local",)",
                         R"("healthCheckNodePort":30090,)", kPort));
  EXPECT_NE(Rejected(R"("type":"NodePort","ports":[{"port":80,"nodePort":30090}])")
                .find("provided port is already allocated"),
            std::string::npos);
  // Its own port is not taken by another.
  const Response again =
      Update("tcp", R"("type":"NodePort","ports":[{"port":81,"nodePort":30080}])");
  EXPECT_FALSE(again.failure) << again.failure->message;
}

TEST_F(ServiceTest, TheBoundsOfNodePortsAndPorts) {
  for (const int port : {30'000, 32'767}) {
    EXPECT_EQ(Rejected(StrCat(R"("type":"NodePort","ports":[{"port":80,"nodePort":)", port, "}]")),
              "accepted")
        << port;
    Delete("v1", "Service", "default", "x");
  }
  for (const int port : {29'999, 32'768}) {
    EXPECT_NE(Rejected(StrCat(R"("type":"NodePort","ports":[{"port":80,"nodePort":)", port, "}]"))
                  .find("The range of valid ports is 30000-32767"),
              std::string::npos)
        << port;
  }
  for (const int port : {1, 65'535}) {
    EXPECT_EQ(Rejected(StrCat(R"("ports":[{"port":)", port, R"(,"targetPort":)", port, "}]")),
              "accepted")
        << port;
    Delete("v1", "Service", "default", "x");
  }
  for (const char* ports :
       {R"({"port":0})", R"({"port":65536})", R"({"port":80,"targetPort":65536})",
        R"({"port":80,"targetPort":-1})"}) {
    EXPECT_NE(Rejected(StrCat(R"("ports":[)", ports, "]")).find("must be between 1 and 65535"),
              std::string::npos)
        << ports;
  }
}

TEST_F(ServiceTest, AddressesAreOfTheClustersNetwork) {
  const api::Value spec = Made("a", StrCat(kPort, R"(,"clusterIPs":["10.96.0.7"])"));
  EXPECT_EQ(spec["clusterIP"].str(), "10.96.0.7") << "the first of the list";
  const auto expect = [&](std::string_view fields, std::string_view error) {
    const std::string message = Rejected(StrCat(kPort, ",", fields));
    EXPECT_NE(message.find(error), std::string::npos) << message;
  };
  expect(R"("clusterIP":"2001:db8::1")", "IPv6 is not configured on this cluster");
  expect(R"("clusterIP":"10.95.255.255")",
         "failed to allocate IP 10.95.255.255: the provided network does not match the current");
  expect(R"("clusterIP":"10.96.0.1","clusterIPs":["10.96.0.2"])",
         "first value must match `clusterIP`");
  expect(R"("clusterIP":"10.96.0.5","clusterIPs":["10.96.0.5","x"])",
         "spec.clusterIPs[1]: Invalid value: \"x\": must be a valid IP address");
  expect(R"("clusterIP":"10.096.0.5")", "must not have leading 0s");
  expect(R"("ipFamilies":["IPv6"])",
         "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster");
  expect(R"("ipFamilyPolicy":"RequireDualStack")",
         "this cluster is not configured for dual-stack services");
  expect(R"("ipFamilies":["IPv4","IPv4"])", "spec.ipFamilies[1]: Duplicate value: \"IPv4\"");
  EXPECT_EQ(Rejected(StrCat(kPort, R"(,"ipFamilyPolicy":"PreferDualStack")")), "accepted");
}

TEST_F(ServiceTest, WhatBelongsToAnotherTypeIsRefused) {
  const auto expect = [&](std::string_view fields, std::string_view error) {
    EXPECT_EQ(Rejected(StrCat(kPort, ",", fields)), StrCat("Service \"x\" is invalid: ", error));
  };
  expect(R"("loadBalancerClass":"example.com/a")",
         "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'");
  expect(R"("loadBalancerSourceRanges":["10.0.0.0/8"])",
         "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is "
         "'LoadBalancer'");
  expect(R"("type":"LoadBalancer","loadBalancerSourceRanges":["10.0.0.1/8"])",
         "spec.LoadBalancerSourceRanges[0]: Invalid value: \"10.0.0.1/8\": must not have bits set "
         "beyond the prefix length");
  expect(R"("allocateLoadBalancerNodePorts":true)",
         "spec.allocateLoadBalancerNodePorts: Forbidden: may only be used when `type` is "
         "'LoadBalancer'");
  expect(R"("healthCheckNodePort":30000)",
         "spec.healthCheckNodePort: Invalid value: 30000: may only be set when `type` is "
         "'LoadBalancer' and `externalTrafficPolicy` is 'Local'");
  expect(R"("externalIPs":["169.254.1.1"],"externalTrafficPolicy":"Cluster")",
         "spec.externalIPs[0]: Invalid value: \"169.254.1.1\": may not be in the link-local range "
         "(169.254.0.0/16, fe80::/10)");
  expect(R"("trafficDistribution":"Near")",
         "spec.trafficDistribution: Unsupported value: \"Near\": supported values: "
         "\"PreferClose\", \"PreferSameNode\", \"PreferSameZone\"");
  expect(R"("sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":)"
         R"({"timeoutSeconds":86401}})",
         "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be "
         "greater than 0 and less than 86400");
  EXPECT_EQ(Rejected(R"("ports":[{"name":"a","port":80},{"name":"b","port":80}])"),
            "Service \"x\" is invalid: spec.ports[1]: Duplicate value: "
            "{\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,\"Port\":80,"
            "\"TargetPort\":0,\"NodePort\":0}");
}

TEST_F(ServiceTest, ALocalLoadBalancerHasAPortForHealthChecks) {
  constexpr std::string_view kLocal =
      R"("type":"LoadBalancer","externalTrafficPolicy":"Local","ports":[{"port":80}])";
  const std::int64_t port = Made("a", kLocal)["healthCheckNodePort"].integer();
  EXPECT_GE(port, 30'000);
  Response updated = Update("a", kLocal);
  ASSERT_FALSE(updated.failure) << updated.failure->message;
  EXPECT_EQ((*updated.object)["spec"]["healthCheckNodePort"].integer(), port);
  updated = Update("a", StrCat(kLocal, R"(,"healthCheckNodePort":30001)"));
  ASSERT_TRUE(updated.failure);
  updated = Update("a", R"("type":"NodePort","ports":[{"port":80}])");
  ASSERT_FALSE(updated.failure) << updated.failure->message;
  EXPECT_FALSE((*updated.object)["spec"]["healthCheckNodePort"].has_value());
  EXPECT_FALSE((*updated.object)["spec"]["allocateLoadBalancerNodePorts"].has_value());
}

TEST_F(ServiceTest, AHeadlessServiceIsNotExposed) {
  EXPECT_NE(Rejected(StrCat(R"("type":"NodePort","clusterIP":"None",)", kPort))
                .find("may not be set to 'None' for NodePort services"),
            std::string::npos);
  Made("one", R"("clusterIP":"None")");
  EXPECT_EQ(Rejected(R"("clusterIP":"None")"), "accepted") << "it is no address to be taken";
}

TEST_F(ServiceTest, AServiceThatBecomesInternalGetsAnAddress) {
  Made("a", R"("type":"ExternalName","externalName":"db.example.com")");
  Response updated = Update("a", kPort);
  ASSERT_FALSE(updated.failure) << updated.failure->message;
  const std::string address((*updated.object)["spec"]["clusterIP"].str());
  EXPECT_NE(address, "");
  EXPECT_EQ((*updated.object)["spec"]["ipFamilies"].size(), 1u);
  // Back again: what belonged to the address goes, unless the client wants another one.
  updated =
      Update("a", StrCat(R"("type":"ExternalName","externalName":"db.example.com",)",
                         R"("ipFamilyPolicy":"SingleStack","internalTrafficPolicy":"Cluster",)",
                         R"("clusterIP":")", address, R"(","clusterIPs":[")", address,
                         R"("],"ipFamilies":["IPv4"])"));
  ASSERT_FALSE(updated.failure) << updated.failure->message;
  for (const api::FieldName field : api::FieldNames{"clusterIP", "clusterIPs", "ipFamilies",
                                                    "ipFamilyPolicy", "internalTrafficPolicy"}) {
    EXPECT_FALSE((*updated.object)["spec"][field].has_value()) << field.view();
  }
  updated = Update("a", kPort);
  ASSERT_FALSE(updated.failure);
  updated = Update("a", R"("type":"ExternalName","externalName":"x","clusterIP":"10.96.0.9")");
  ASSERT_TRUE(updated.failure);
  EXPECT_NE(updated.failure->message.find("may not be set for ExternalName services"),
            std::string::npos);
}

TEST_F(ServiceTest, NodePortsStayWithTheirPortAndProtocol) {
  const api::Value made = Made("a", R"("type":"NodePort","ports":[{"name":"t","port":53},
      {"name":"u","port":53,"protocol":"UDP"},{"name":"w","port":80}])");
  std::vector<std::int64_t> before;
  for (api::Value port : made["ports"].elements()) before.push_back(port["nodePort"].integer());
  const Response updated = Update("a", R"("type":"NodePort","ports":[{"name":"w","port":80},
      {"name":"u","port":53,"protocol":"UDP"},{"name":"t","port":53},{"name":"n","port":81}])");
  ASSERT_FALSE(updated.failure) << updated.failure->message;
  const api::Value ports = (*updated.object)["spec"]["ports"];
  EXPECT_EQ(ports.at(0)["nodePort"].integer(), before[2]);
  EXPECT_EQ(ports.at(1)["nodePort"].integer(), before[1]);
  EXPECT_EQ(ports.at(2)["nodePort"].integer(), before[0]);
  EXPECT_NE(ports.at(3)["nodePort"].integer(), 0);
}

TEST_F(ServiceTest, AffinityLastsThreeHoursUnlessItSaysOtherwise) {
  EXPECT_EQ(
      Made("a", StrCat(kPort, R"(,"sessionAffinity":"ClientIP")"))["sessionAffinityConfig"]
                                                                  ["clientIP"]["timeoutSeconds"]
                                                                      .integer(),
      10'800);
  EXPECT_EQ(Made("b", StrCat(kPort, R"(,"sessionAffinity":"ClientIP",)",
                             R"("sessionAffinityConfig":{"clientIP":{"timeoutSeconds":5}})"))
                ["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
                    .integer(),
            5);
  EXPECT_FALSE(Made("c", StrCat(kPort, R"(,"sessionAffinity":"None",)",
                                R"("sessionAffinityConfig":{"clientIP":{"timeoutSeconds":5}})"))
                   ["sessionAffinityConfig"]
                       .has_value());
}

TEST_F(ServiceTest, OnlyTheServersOwnServiceMayChangeItsAddress) {
  Made("kubernetes", StrCat(kPort, R"(,"clusterIP":"10.96.0.1")"));
  const Response updated = Update(
      "kubernetes", StrCat(kPort, R"(,"clusterIP":"10.96.0.2",)", R"("clusterIPs":["10.96.0.2"])"));
  EXPECT_FALSE(updated.failure) << updated.failure->message;
  Create(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"kubernetes",)"
         R"("namespace":"other"},"spec":{"clusterIP":"10.96.0.3","ports":[{"port":80}]}})");
  const Response other = Handle(RequestFor(
      Verb::kUpdate,
      R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"kubernetes",)"
      R"("namespace":"other"},"spec":{"clusterIP":"10.96.0.4","clusterIPs":["10.96.0.4"],)"
      R"("ports":[{"port":80}]}})",
      AdminUser()));
  ASSERT_TRUE(other.failure);
  EXPECT_NE(other.failure->message.find("may not change once set"), std::string::npos);
}

TEST_F(ServiceTest, TheStatusDoesNotTouchTheSpec) {
  const std::string address(
      Made("a", StrCat(R"("type":"LoadBalancer",)", kPort))["clusterIP"].str());
  Request request = RequestFor(Verb::kUpdate,
                               Body("a", R"("type":"Nonsense")",
                                    R"(},"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]})"),
                               AdminUser());
  request.subresource = "status";
  const Response updated = Handle(std::move(request));
  ASSERT_FALSE(updated.failure) << updated.failure->message;
  EXPECT_EQ((*updated.object)["spec"]["clusterIP"].str(), address);
  EXPECT_EQ((*updated.object)["status"]["loadBalancer"]["ingress"].at(0)["ip"].str(), "1.2.3.4");
}

}  // namespace
}  // namespace drakkar::apiserver
