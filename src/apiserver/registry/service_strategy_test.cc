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
            "Service \"x\" is invalid: spec.clusterIPs[0]: Invalid value: \"10.96.0.10\": failed "
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

}  // namespace
}  // namespace drakkar::apiserver
