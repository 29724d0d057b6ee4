// Every kind of resource, in every operation.
#include "scheduler/cache/resources.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/meta/object.h"
#include "scheduler/cache/pod_info.h"

namespace drakkar::scheduler {
namespace {

api::ObjectPtr Parse(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return std::make_shared<const api::Object>(*tree);
}

ResourceAmounts Amounts(std::string_view json) {
  return ReadResourceList(Parse(json)->root());
}

TEST(ResourceAmounts, AreReadInTheSchedulersUnits) {
  const ResourceAmounts amounts = Amounts(
      R"({"cpu":"1500m","memory":"1Ki","ephemeral-storage":"2k","pods":"7","example.com/b":"2",
          "example.com/a":"3","hugepages-2Mi":4194304,"example.com/none":"0","bad":"x"})");
  EXPECT_EQ(amounts.milli_cpu, 1500);
  EXPECT_EQ(amounts.memory, 1024);
  EXPECT_EQ(amounts.ephemeral_storage, 2000);
  const std::vector<std::pair<std::string, std::int64_t>> others = {
      {"example.com/a", 3}, {"example.com/b", 2}, {"hugepages-2Mi", 4194304}};
  EXPECT_EQ(amounts.others, others) << "sorted, without zeros and pods";
}

TEST(ResourceAmounts, AreFoundAndSetByName) {
  ResourceAmounts amounts;
  std::int64_t value = 10;
  const char* const names[] = {"cpu",           "memory",        "ephemeral-storage",
                               "example.com/b", "example.com/a", "example.com/c"};
  for (const char* name : names) amounts.Set(name, ++value);
  value = 10;
  for (const char* name : names) EXPECT_EQ(amounts.Get(name), ++value) << name;
  amounts.Set("example.com/b", 99);
  EXPECT_EQ(amounts.Other("example.com/b"), 99);
  EXPECT_EQ(amounts.others.size(), 3u);
  amounts.Set("example.com/b", 0);
  amounts.Set("example.com/never", 0);
  EXPECT_EQ(amounts.others.size(), 2u);
  EXPECT_EQ(amounts.Other("example.com/b"), 0);
  EXPECT_EQ(amounts.Get("example.com/bb"), 0);
  EXPECT_EQ(amounts.Get("example.com/d"), 0);
}

TEST(ResourceAmounts, AreAddedAndRaisedEachOnItsOwn) {
  const char* const names[] = {"cpu", "memory", "ephemeral-storage", "example.com/a"};
  for (const char* name : names) {
    ResourceAmounts sum, most;
    for (const char* each : names) {
      sum.Set(each, 5);
      most.Set(each, 5);
    }
    ResourceAmounts more;
    more.Set(name, 7);
    sum.Add(more);
    most.RaiseTo(more);
    for (const char* each : names) {
      EXPECT_EQ(sum.Get(each), each == name ? 12 : 5) << name << " " << each;
      EXPECT_EQ(most.Get(each), each == name ? 7 : 5) << name << " " << each;
    }
    more.Set(name, 3);
    most.RaiseTo(more);
    EXPECT_EQ(most.Get(name), 7) << name;
  }
}

TEST(PodRequests, CountEveryResourceOfEveryContainer) {
  const api::ObjectPtr spec = Parse(R"({"containers":[
      {"resources":{"requests":{"cpu":"1","ephemeral-storage":"10","example.com/x":"1"}}},
      {"resources":{"requests":{"memory":"5","ephemeral-storage":"20","example.com/x":"2"}}}],
      "initContainers":[{"resources":{"requests":{"ephemeral-storage":"25","example.com/y":"4"}}},
                        {"resources":{"requests":{"example.com/x":"9"}}}],
      "overhead":{"ephemeral-storage":"3"}})");
  const ResourceAmounts requests = PodRequests(spec->root());
  EXPECT_EQ(requests.ephemeral_storage, 33);
  EXPECT_EQ(requests.Other("example.com/x"), 9);
  EXPECT_EQ(requests.Other("example.com/y"), 4);
}

TEST(PodRequests, SidecarsAddUpAndCountBesideEachLaterInitContainer) {
  const api::ObjectPtr spec = Parse(R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],
      "initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}},
                        {"restartPolicy":"Always","resources":{"requests":{"cpu":"3"}}},
                        {"resources":{"requests":{"cpu":"4"}}},
                        {"restartPolicy":"OnFailure","resources":{"requests":{"cpu":"5"}}}]})");
  EXPECT_EQ(PodRequests(spec->root()).milli_cpu, 10000) << "2 + 3 + 5 in the init phase";
  const api::ObjectPtr sidecars = Parse(R"({"containers":[{}],
      "initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}},
                        {"restartPolicy":"Always","resources":{"requests":{"cpu":"3"}}}]})");
  EXPECT_EQ(PodRequests(sidecars->root()).milli_cpu, 5000);
}

TEST(PodRequests, OfThePodReplaceOnlyWhatAPodMayRequest) {
  const api::ObjectPtr spec = Parse(R"({"containers":[{"resources":{"requests":{"cpu":"1",
      "memory":"10","hugepages-2Mi":"2Mi","ephemeral-storage":"5","example.com/x":"1"}}}],
      "resources":{"requests":{"cpu":"2","memory":"20","hugepages-2Mi":"4Mi",
      "ephemeral-storage":"50","example.com/x":"10"}}})");
  const ResourceAmounts requests = PodRequests(spec->root());
  EXPECT_EQ(requests.milli_cpu, 2000);
  EXPECT_EQ(requests.memory, 20);
  EXPECT_EQ(requests.Other("hugepages-2Mi"), 4 * 1024 * 1024);
  EXPECT_EQ(requests.ephemeral_storage, 5);
  EXPECT_EQ(requests.Other("example.com/x"), 1);
}

TEST(PodRequests, ForScoringAssumeAMinimumPerContainer) {
  constexpr std::int64_t kMemory = 200LL * 1024 * 1024;
  const api::ObjectPtr spec = Parse(R"({"containers":[{},{"resources":{"requests":{"cpu":"1",
      "ephemeral-storage":"5","example.com/x":"1"}}},{"resources":{"requests":{"memory":"7"}}}]})");
  const ResourceAmounts scored = PodRequestsForScoring(spec->root());
  EXPECT_EQ(scored.milli_cpu, 100 + 1000 + 100);
  EXPECT_EQ(scored.memory, kMemory + kMemory + 7);
  EXPECT_EQ(scored.ephemeral_storage, 0);
  EXPECT_TRUE(scored.others.empty());
}

TEST(PodRequests, OfABoundPodCountEachContainerWithItsOwnStatus) {
  const api::ObjectPtr spec = Parse(R"({"containers":[
      {"name":"a","resources":{"requests":{"cpu":"1"}}},
      {"name":"b","resources":{"requests":{"cpu":"2"}}}]})");
  const api::ObjectPtr status = Parse(R"({"containerStatuses":[
      {"name":"b","resources":{"requests":{"cpu":"5"}}},
      {"name":"a","allocatedResources":{"cpu":"4"},"resources":{}}]})");
  EXPECT_EQ(PodRequests(spec->root(), status->root()).milli_cpu, 9000);
}

TEST(PodRequests, AnInfeasibleResizeIsThatOfTheRightConditionWhileItIsTrue) {
  const api::ObjectPtr spec =
      Parse(R"({"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]})");
  const auto requests = [&](std::string conditions) {
    return PodRequests(spec->root(),
                       Parse(R"({"conditions":[)" + conditions +
                             R"(],"containerStatuses":[{"name":"c","resources":{"requests":
                             {"cpu":"1"}}}]})")
                           ->root())
        .milli_cpu;
  };
  EXPECT_EQ(requests(R"({"type":"Ready","status":"True"},{"type":"PodResizePending",
      "status":"True","reason":"Infeasible"})"),
            1000);
  EXPECT_EQ(requests(R"({"type":"PodResizePending","status":"False","reason":"Infeasible"})"),
            2000);
  EXPECT_EQ(requests(R"({"type":"Other","status":"True","reason":"Infeasible"})"), 2000);
}

TEST(PodStatus, DiffersInResourcesIfAnyContainerDoes) {
  const auto same = [](std::string_view a, std::string_view b) {
    return HaveSameResources(Parse(a)->root(), Parse(b)->root()) &&
           HaveSameResources(Parse(b)->root(), Parse(a)->root());
  };
  constexpr char kTwo[] = R"({"containerStatuses":[{"name":"a","allocatedResources":{"cpu":"1"}},
      {"name":"b","resources":{"requests":{"cpu":"2"}}}]})";
  EXPECT_TRUE(same(kTwo, kTwo));
  EXPECT_FALSE(same(kTwo, R"({"containerStatuses":[{"name":"a","allocatedResources":{"cpu":"1"}},
      {"name":"b","resources":{"requests":{"cpu":"3"}}}]})"));
  EXPECT_FALSE(same(kTwo, R"({"containerStatuses":[{"name":"a","allocatedResources":{"cpu":"9"}},
      {"name":"b","resources":{"requests":{"cpu":"2"}}}]})"));
  EXPECT_FALSE(
      same(kTwo, R"({"containerStatuses":[{"name":"a","allocatedResources":{"cpu":"1"}}]})"));
  EXPECT_FALSE(same(R"({"initContainerStatuses":[{"resources":{"requests":{"cpu":"1"}}}]})", "{}"));
}

TEST(PodInfo, HasEndedInEitherFinalPhase) {
  const auto ended = [](std::string phase) {
    return MakePodInfo(Parse(R"({"metadata":{"name":"p"},"status":{"phase":")" + phase + R"("}})"))
        ->HasEnded();
  };
  EXPECT_TRUE(ended("Succeeded"));
  EXPECT_TRUE(ended("Failed"));
  EXPECT_FALSE(ended("Running"));
  EXPECT_FALSE(ended(""));
}

TEST(HostPorts, OfEveryContainerAndSidecarCount) {
  const PodInfoPtr pod = MakePodInfo(Parse(R"({"metadata":{"name":"p"},"spec":{
      "containers":[{"ports":[{"hostPort":1},{"hostPort":2,"protocol":"UDP"}]},
                    {"ports":[{"hostPort":3,"hostIP":"10.0.0.1"},{"containerPort":4}]}],
      "initContainers":[{"ports":[{"hostPort":5}]},
                        {"restartPolicy":"Always","ports":[{"hostPort":6}]}]}})"));
  std::vector<std::string> ports;
  for (const HostPort& port : pod->host_ports) {
    ports.push_back(port.ip + "/" + port.protocol + "/" + std::to_string(port.port));
  }
  EXPECT_EQ(ports, (std::vector<std::string>{"/TCP/1", "/UDP/2", "10.0.0.1/TCP/3", "/TCP/6"}));
  const PodInfoPtr on_host = MakePodInfo(Parse(R"({"metadata":{"name":"p"},"spec":{
      "hostNetwork":true,"containers":[{"ports":[{"containerPort":4},{"hostPort":8,
      "containerPort":9}]}]}})"));
  ASSERT_EQ(on_host->host_ports.size(), 2u);
  EXPECT_EQ(on_host->host_ports[0].port, 4);
  EXPECT_EQ(on_host->host_ports[1].port, 8);
}

TEST(HostPorts, ConflictOnTheSamePortProtocolAndAddress) {
  const HostPort port{"10.0.0.1", "TCP", 80};
  EXPECT_TRUE(port.ConflictsWith({"10.0.0.1", "TCP", 80}));
  EXPECT_FALSE(port.ConflictsWith({"10.0.0.2", "TCP", 80}));
  EXPECT_FALSE(port.ConflictsWith({"10.0.0.1", "UDP", 80}));
  EXPECT_FALSE(port.ConflictsWith({"10.0.0.1", "TCP", 81}));
  for (const char* any : {"", "0.0.0.0"}) {
    EXPECT_TRUE(port.ConflictsWith({any, "TCP", 80})) << any;
    EXPECT_TRUE((HostPort{any, "TCP", 80}).ConflictsWith(port)) << any;
  }
}

}  // namespace
}  // namespace drakkar::scheduler
