#include <gtest/gtest.h>

#include "base/text/text.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;

// A node whose driver gpu.example.com has published a slice before.
struct SliceNode : NodeHarness {
  SliceNode() : driver(*this, "gpu.example.com", "gpu.sock") {
    Publish("gpu", "gpu.example.com", "node-1");
  }
  void Publish(const std::string& name, const std::string& of, const std::string& node) {
    ASSERT_NE(
        api.Create(StrCat(
            R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":")",
            name, R"("},"spec":{"driver":")", of, R"(","nodeName":")", node,
            R"(","pool":{"name":")", name,
            R"(","generation":1,"resourceSliceCount":1},"devices":[{"name":"d"}]}})")),
        nullptr);
  }
  bool Has(const std::string& slice) { return api.Get("ResourceSlice", slice) != nullptr; }
  FakeDriver driver;
};

TEST(SliceWiper, ARestartOfTheAgentKeepsTheSlicesOfDriversThatStillRun) {
  SliceNode node;
  node.driver.Start();
  node.StartAgent();
  node.Advance(seconds(60));
  EXPECT_TRUE(node.Has("gpu"));
  node.KillAgent();
  node.StartAgent();
  node.Advance(seconds(60));
  EXPECT_TRUE(node.Has("gpu"));
}

TEST(SliceWiper, SlicesOfADriverWithoutASocketAreDeletedAtStartup) {
  SliceNode node;
  node.Publish("ghost", "ghost.example.com", "node-1");
  node.Publish("elsewhere", "ghost.example.com", "node-2");
  node.driver.Start();
  node.StartAgent();
  node.Advance(seconds(1));
  EXPECT_FALSE(node.Has("ghost"));
  EXPECT_TRUE(node.Has("gpu"));
  EXPECT_TRUE(node.Has("elsewhere")) << "it belongs to another node";
}

TEST(SliceWiper, ADriverWhoseSocketDoesNotAnswerHasHalfAMinuteToReconnect) {
  for (const bool comes_back : {true, false}) {
    SliceNode node;
    node.driver.Start();
    node.driver.Kill();  // leaves its socket behind
    node.StartAgent();
    node.Advance(seconds(29));
    EXPECT_TRUE(node.Has("gpu"));
    if (comes_back) node.driver.Start();
    node.Advance(seconds(60));
    EXPECT_EQ(node.Has("gpu"), comes_back);
  }
}

TEST(SliceWiper, SlicesAreDeletedHalfAMinuteAfterTheirDriverDisconnects) {
  SliceNode node;
  node.StartAgent();
  node.driver.Start();
  node.Publish("late", "gpu.example.com", "node-1");
  node.driver.Stop();
  node.Advance(seconds(29));
  EXPECT_TRUE(node.Has("late"));
  node.Advance(seconds(2));
  EXPECT_FALSE(node.Has("late"));
}

TEST(SliceWiper, AFailedListIsRetried) {
  SliceNode node;
  node.Publish("ghost", "ghost.example.com", "node-1");
  node.driver.Start();
  int lists = 0;
  node.api_fault = [&](const std::string& what) -> std::optional<Error> {
    if (what != "list resourceslices" || ++lists > 2) return std::nullopt;
    return Unavailable("starting");
  };
  node.StartAgent();
  EXPECT_TRUE(node.Has("ghost"));
  node.Advance(seconds(5));
  EXPECT_EQ(lists, 3);
  EXPECT_FALSE(node.Has("ghost"));
  EXPECT_TRUE(node.Has("gpu"));
}

}  // namespace
}  // namespace drakkar::node
