// Probes and hooks over the network, as pods see them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/text.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct ProbedNode : NodeHarness {
  ProbedNode() { StartAgent(); }
  // One container with a port named "web" and these members.
  void Create(const std::string& members) {
    CreatePod("p", StrCat(R"("containers":[{"name":"a","image":"busybox:1",)",
                          R"("ports":[{"name":"web","containerPort":8080}],)", members, "}]"));
  }
  api::Value Status(api::FieldName field) {
    pod_ = Pod("p");
    return (*pod_)["status"]["containerStatuses"].at(0)[field];
  }

 private:
  api::ObjectPtr pod_;
};

TEST(NetworkProbes, AnHttpProbeSucceedsDependingOnTheStatus) {
  ProbedNode node;
  int status = 503;
  node.prober.endpoints[8080].http = [&](const HttpProbe&) { return HttpAnswer{status, "b"}; };
  node.Create(R"("readinessProbe":{"periodSeconds":1,"httpGet":{"port":"web","path":"/ready?x=1",
    "scheme":"HTTPS","httpHeaders":[{"name":"X-A","value":"b"}]}})");
  EXPECT_THAT(node.Events("UnsupportedFields"), IsEmpty());
  node.Advance(seconds(1));
  EXPECT_FALSE(node.Status("ready").boolean());
  EXPECT_EQ(node.Events("Unhealthy").at(0),
            "Readiness probe failed: HTTP probe failed with statuscode: 503");
  const HttpProbe& sent = node.prober.requests.at(0);
  EXPECT_EQ(sent.scheme, "HTTPS");
  EXPECT_EQ(sent.host, std::string((*node.Pod("p"))["status"]["podIP"].str()));
  EXPECT_EQ(sent.port, 8080);
  EXPECT_EQ(sent.path, "/ready?x=1");
  EXPECT_THAT(sent.headers, ElementsAre(std::make_pair("X-A", "b")));
  status = 399;
  node.Advance(seconds(1));
  EXPECT_TRUE(node.Status("ready").boolean());
  EXPECT_EQ(node.Events("ProbeWarning").at(0),
            "Readiness probe warning: Probe terminated redirects, Response body: b");
  status = 400;
  node.Advance(seconds(3));
  EXPECT_FALSE(node.Status("ready").boolean());
}

TEST(NetworkProbes, ATcpProbeSucceedsIfItConnects) {
  ProbedNode node;
  node.Create(
      R"("startupProbe":{"periodSeconds":1,"failureThreshold":30,"tcpSocket":{"port":"web"}},
    "livenessProbe":{"periodSeconds":1,"failureThreshold":2,"terminationGracePeriodSeconds":1,
    "tcpSocket":{"port":8080,"host":"127.0.0.9"}})");
  node.Advance(seconds(3));
  EXPECT_FALSE(node.Status("started").boolean());
  EXPECT_THAT(node.Events("Unhealthy").at(0), HasSubstr("Startup probe failed: connect to "));
  node.prober.endpoints[8080];
  node.Advance(seconds(2));
  EXPECT_TRUE(node.Status("started").boolean());
  node.prober.endpoints.clear();
  node.Advance(seconds(4));
  EXPECT_EQ(node.Status("restartCount").integer(), 1);
  EXPECT_THAT(node.Events("Unhealthy"),
              Contains("Liveness probe failed: connect to 127.0.0.9:8080: connection refused"));
}

TEST(NetworkProbes, AFailedProbeKillsWithItsOwnGracePeriod) {
  for (const int grace : {0, 20}) {
    ProbedNode node;
    node.machine.program_of = [](const ContainerConfig&) {
      return HollowProgram{.ignores_stop_signal = true};
    };
    node.Create(StrCat(R"("livenessProbe":{"periodSeconds":1,"failureThreshold":1,)",
                       R"("terminationGracePeriodSeconds":)", grace == 0 ? 1 : grace,
                       R"(,"tcpSocket":{"port":1}})"));
    node.Advance(seconds(5));
    EXPECT_EQ(node.Status("restartCount").integer() > 0, grace == 0);
  }
}

TEST(NetworkProbes, AGrpcProbeChecksTheHealthOfAService) {
  ProbedNode node;
  node.Create(R"("readinessProbe":{"periodSeconds":1,"grpc":{"port":9000,"service":"s"}})");
  node.Advance(seconds(1));
  EXPECT_THAT(node.Events("Unhealthy").at(0),
              StartsWith("Readiness probe failed: error: health rpc probe failed: "));
  node.prober.endpoints[9000].grpc = {{"s", "NOT_SERVING"}};
  node.Advance(seconds(1));
  EXPECT_FALSE(node.Status("ready").boolean());
  EXPECT_THAT(
      node.Events("Unhealthy"),
      Contains("Readiness probe failed: service unhealthy (responded with \"NOT_SERVING\")"));
  node.prober.endpoints[9000].grpc = {{"s", "SERVING"}};
  node.Advance(seconds(1));
  EXPECT_TRUE(node.Status("ready").boolean());
  node.prober.endpoints[9000] = {.silent = true, .http = nullptr, .grpc = {}};
  node.Advance(seconds(7));
  EXPECT_FALSE(node.Status("ready").boolean());
  EXPECT_THAT(node.Events("Unhealthy"), Contains(HasSubstr("Readiness probe failed: timeout: ")));
  node.prober.endpoints[9000] = {};
  node.Advance(seconds(2));
  EXPECT_THAT(node.Events("Unhealthy"),
              Contains(HasSubstr("does not implement the grpc health protocol")));
}

TEST(NetworkProbes, AnUnknownPortNameIsAFailure) {
  ProbedNode node;
  node.Create(R"("readinessProbe":{"periodSeconds":1,"httpGet":{"port":"wbe"}})");
  node.Advance(seconds(1));
  EXPECT_EQ(node.Events("Unhealthy").at(0),
            "Readiness probe failed: container a has no port named \"wbe\"");
}

TEST(NetworkHooks, AnyResponseToAnHttpHookCountsAsSuccess) {
  ProbedNode node;
  node.prober.endpoints[8080].http = [&](const HttpProbe&) { return HttpAnswer{500, ""}; };
  node.Create(R"("lifecycle":{"postStart":{"httpGet":{"port":"web","path":"/up"}},
    "preStop":{"httpGet":{"port":"web","path":"/down","host":"127.0.0.9"}}})");
  node.Advance(seconds(1));
  EXPECT_TRUE(node.Status("ready").boolean());
  ASSERT_EQ(node.prober.requests.size(), 1u);
  EXPECT_EQ(node.prober.requests[0].path, "/up");
  EXPECT_EQ(node.prober.requests[0].user_agent, "kube-lifecycle");
  node.DeletePod("p");
  node.Advance(seconds(1));
  ASSERT_EQ(node.prober.requests.size(), 2u);
  EXPECT_EQ(node.prober.requests[1].path, "/down");
  EXPECT_EQ(node.prober.requests[1].host, "127.0.0.9");
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(NetworkHooks, AHookThatCannotConnectStopsTheContainer) {
  ProbedNode node;
  node.Create(R"("lifecycle":{"postStart":{"httpGet":{"port":"web"}}})");
  node.Advance(seconds(1));
  EXPECT_THAT(node.Events("FailedPostStartHook").at(0), HasSubstr("connection refused"));
  EXPECT_GT(node.Status("restartCount").integer(), 0);
}

TEST(NetworkHooks, ATcpHookFailsWhenItRuns) {
  ProbedNode node;
  node.prober.endpoints[8080];
  node.Create(R"("lifecycle":{"postStart":{"tcpSocket":{"port":"web"}}})");
  node.Advance(seconds(1));
  EXPECT_THAT(node.Events("FailedPostStartHook").at(0),
              HasSubstr("lifecycle hooks cannot use tcpSocket"));
}

}  // namespace
}  // namespace drakkar::node
