#include "controllers/replica_set/planner.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::controllers {
namespace {

const WallTime kNow = *api::ParseTime("2026-06-01T12:00:00Z");

struct PodSpec {
  std::string_view name;
  std::string_view node = "n";
  std::string_view phase = "Running";
  std::string_view ready_since = "2026-06-01T10:00:00Z";  // empty: not ready
  int restarts = 0;
  std::string_view cost = "";
  std::string_view created = "2026-06-01T09:00:00Z";
};

api::ObjectPtr Pod(const PodSpec& spec) {
  const std::string json =
      StrCat(R"({"metadata":{"name":")", spec.name, R"(","namespace":"default","uid":"uid-)",
             spec.name, R"(","creationTimestamp":")", spec.created, R"(","annotations":{)",
             spec.cost.empty()
                 ? ""
                 : StrCat(R"("controller.kubernetes.io/pod-deletion-cost":")", spec.cost, "\""),
             R"(}},"spec":{"nodeName":")", spec.node, R"("},"status":{"phase":")", spec.phase,
             R"(","containerStatuses":[{"restartCount":)", spec.restarts, R"(}],"conditions":[{)",
             R"("type":"Ready","status":")", spec.ready_since.empty() ? "False" : "True",
             R"(","lastTransitionTime":")", spec.ready_since, R"("}]}})");
  return std::make_shared<const api::Object>(*api::ParseJson(json));
}

std::string FirstToGo(const PodSpec& a, const PodSpec& b,
                      const std::map<std::string, int, std::less<>>& related = {}) {
  const std::string forward(InOrderOfDeletion({Pod(a), Pod(b)}, related, kNow)[0]->name());
  const std::string backward(InOrderOfDeletion({Pod(b), Pod(a)}, related, kNow)[0]->name());
  EXPECT_EQ(forward, backward) << "the order they come in does not count";
  return forward;
}

TEST(InOrderOfDeletion, WhatMattersLeastGoesFirst) {
  EXPECT_EQ(FirstToGo({.name = "a"}, {.name = "b", .node = ""}), "b") << "not assigned";
  EXPECT_EQ(FirstToGo({.name = "a"}, {.name = "b", .phase = "Pending"}), "b");
  EXPECT_EQ(FirstToGo({.name = "a"}, {.name = "b", .ready_since = ""}), "b") << "not ready";
  EXPECT_EQ(FirstToGo({.name = "a", .cost = "5"}, {.name = "b", .cost = "-1"}), "b");
  EXPECT_EQ(FirstToGo({.name = "a", .node = "x"}, {.name = "b", .node = "y"}, {{"x", 1}, {"y", 3}}),
            "b")
      << "more neighbours";
  EXPECT_EQ(FirstToGo({.name = "a"}, {.name = "b", .ready_since = "2026-06-01T11:59:00Z"}), "b")
      << "ready since a moment";
  EXPECT_EQ(FirstToGo({.name = "a"}, {.name = "b", .restarts = 3}), "b");
  EXPECT_EQ(FirstToGo({.name = "a"}, {.name = "b", .created = "2026-06-01T11:59:00Z"}), "b")
      << "younger";
}

TEST(InOrderOfDeletion, AgesOfTheSamePowerOfTwoAreEqual) {
  EXPECT_EQ(FirstToGo({.name = "b", .ready_since = "2026-06-01T10:00:00Z"},
                      {.name = "a", .ready_since = "2026-06-01T10:00:10Z"}),
            "a")
      << "then the uid decides";
}

TEST(PlanReplicas, NoMoreThanABurstAtATime) {
  EXPECT_EQ(PlanReplicas(3, {}, {}, kNow).create, 3u);
  EXPECT_EQ(PlanReplicas(100'000, {}, {}, kNow).create, kMaxReplicaBurst);
  const std::vector<api::ObjectPtr> pods = {Pod({.name = "a"}), Pod({.name = "b"})};
  EXPECT_EQ(PlanReplicas(2, pods, {}, kNow).remove.size(), 0u);
  EXPECT_EQ(PlanReplicas(1, pods, {}, kNow).remove.size(), 1u);
  EXPECT_EQ(PlanReplicas(0, pods, {}, kNow).remove.size(), 2u);
}

}  // namespace
}  // namespace drakkar::controllers
