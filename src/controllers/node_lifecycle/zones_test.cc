#include "controllers/node_lifecycle/zones.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/text/text.h"

namespace drakkar::controllers {
namespace {

api::Object Node(std::string_view zone, std::string_view ready) {
  return api::Object(*api::ParseJson(
      StrCat(R"({"metadata":{"name":"n","labels":{"topology.kubernetes.io/zone":")", zone,
             R"("}},"status":{"conditions":[{"type":"Ready","status":")", ready, R"("}]}})")));
}

Zones::Change Count(Zones& zones, std::string_view zone, int ready, int not_ready) {
  zones.Begin();
  for (int i = 0; i < ready; ++i) zones.Count(Node(zone, "True"));
  for (int i = 0; i < not_ready; ++i) zones.Count(Node(zone, "Unknown"));
  return zones.End();
}

constexpr MonotonicTime kNow{std::chrono::hours(1)};

TEST(Zones, NodesAreEvictedOneAfterTheOther) {
  Zones zones;
  Count(zones, "a", 5, 2);
  const api::Object node = Node("a", "Unknown");
  EXPECT_EQ(zones.UntilEviction(node, kNow), Duration::zero());
  zones.Evicted(node, kNow);
  EXPECT_EQ(zones.UntilEviction(node, kNow), std::chrono::seconds(10));
  EXPECT_EQ(zones.UntilEviction(Node("b", "Unknown"), kNow), Duration::zero()) << "another zone";
  EXPECT_EQ(zones.UntilEviction(node, kNow + std::chrono::seconds(10)), Duration::zero());
}

TEST(Zones, ASmallZoneThatIsMostlyDownIsNotEvicted) {
  Zones zones;
  Count(zones, "a", 2, 3);
  EXPECT_EQ(zones.UntilEviction(Node("a", "Unknown"), kNow), Duration::max());
  Count(zones, "a", 3, 3);
  EXPECT_EQ(zones.UntilEviction(Node("a", "Unknown"), kNow), Duration::zero()) << "half is fine";
}

TEST(Zones, ALargeZoneThatIsMostlyDownIsEvictedSlowly) {
  Zones zones;
  Count(zones, "a", 20, 40);
  const api::Object node = Node("a", "Unknown");
  zones.Evicted(node, kNow);
  EXPECT_EQ(zones.UntilEviction(node, kNow), std::chrono::seconds(100));
}

TEST(Zones, NothingIsEvictedWhileEveryNodeIsDown) {
  Zones zones;
  EXPECT_FALSE(Count(zones, "a", 1, 0).all_down);
  const Zones::Change down = Count(zones, "a", 0, 1);
  EXPECT_TRUE(down.all_down);
  EXPECT_FALSE(down.were_all_down);
  EXPECT_EQ(zones.UntilEviction(Node("a", "Unknown"), kNow), Duration::max());
  const Zones::Change up = Count(zones, "a", 1, 0);
  EXPECT_FALSE(up.all_down);
  EXPECT_TRUE(up.were_all_down);
}

}  // namespace
}  // namespace drakkar::controllers
