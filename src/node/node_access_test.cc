#include "node/node_access.h"

#include <gtest/gtest.h>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

// "get pods proxy": the verb, then the subresources of which one is enough.
std::string Needs(std::string path, net::Method method = net::Method::kGet) {
  net::ServerRequest request;
  request.method = method;
  request.path = std::move(path);
  std::string text;
  for (const auto& each : RequiredAccess(request, "n1")) {
    EXPECT_EQ(each.node, "n1");
    EXPECT_EQ(each.path, "");
    if (text.empty()) text = each.verb;
    text += StrCat(" ", each.subresource);
  }
  return text;
}

TEST(NodeAccess, MapsPathsToSubresourcesLikeTheKubelet) {
  EXPECT_EQ(Needs("/metrics"), "get metrics");
  EXPECT_EQ(Needs("/metrics/cadvisor"), "get metrics");
  EXPECT_EQ(Needs("/stats/summary"), "get stats");
  EXPECT_EQ(Needs("/logs/syslog"), "get log");
  EXPECT_EQ(Needs("/checkpoint/default/p/c", net::Method::kPost), "create checkpoint");
  EXPECT_EQ(Needs("/healthz"), "get healthz proxy");
  EXPECT_EQ(Needs("/healthz/ping"), "get healthz proxy");
  EXPECT_EQ(Needs("/configz"), "get configz proxy");
  EXPECT_EQ(Needs("/pods"), "get pods proxy");
  EXPECT_EQ(Needs("/pods/"), "get pods proxy");
  EXPECT_EQ(Needs("/runningpods/"), "get pods proxy");
}

TEST(NodeAccess, AllOtherPathsNeedNodesProxy) {
  EXPECT_EQ(Needs("/containerLogs/default/p/c"), "get proxy");
  EXPECT_EQ(Needs("/devices"), "get proxy");
  EXPECT_EQ(Needs("/metricsx"), "get proxy");
  EXPECT_EQ(Needs("/podsx"), "get proxy");
  EXPECT_EQ(Needs("//metrics"), "get proxy");
  EXPECT_EQ(Needs(""), "get proxy");
  EXPECT_EQ(Needs("/nothing", net::Method::kDelete), "delete proxy");
}

TEST(NodeAccess, RunningACommandNeedsCreate) {
  EXPECT_EQ(Needs("/exec/default/p/c"), "create proxy");
  EXPECT_EQ(Needs("/attach/default/p/c"), "create proxy");
  EXPECT_EQ(Needs("/run/default/p/c"), "create proxy");
  EXPECT_EQ(Needs("/portForward/default/p"), "create proxy");
  EXPECT_EQ(Needs("/exec/default/p/c", net::Method::kPost), "create proxy");
}

}  // namespace
}  // namespace drakkar::node
