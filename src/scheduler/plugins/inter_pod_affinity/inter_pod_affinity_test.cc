#include "scheduler/plugins/inter_pod_affinity/inter_pod_affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/text/text.h"
#include "scheduler/testing/test_context.h"

namespace drakkar::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kWeb[] = R"({"app":"web"})";
constexpr char kDb[] = R"({"app":"db"})";

api::ObjectPtr Parse(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return std::make_shared<const api::Object>(*tree);
}

// A term about pods with app=`app`; `more` adds members, each preceded by a comma.
std::string Term(std::string_view app, std::string_view key = "zone", std::string_view more = "") {
  return StrCat(R"({"topologyKey":")", key, R"(","labelSelector":{"matchLabels":{"app":")", app,
                R"("}})", more, "}");
}
std::string Require(std::string_view kind, std::vector<std::string> terms) {
  return StrCat(R"("affinity":{")", kind,
                R"(":{"requiredDuringSchedulingIgnoredDuringExecution":[)", Join(terms, ","),
                "]}}");
}
std::string With(std::vector<std::string> terms) {
  return Require("podAffinity", std::move(terms));
}
std::string Without(std::vector<std::string> terms) {
  return Require("podAntiAffinity", std::move(terms));
}

PodInfoPtr Pod(std::string name, std::string labels, std::string spec, std::string ns = "ns") {
  return MakePodInfo(
      Parse(StrCat(R"({"metadata":{"namespace":")", ns, R"(","name":")", name, R"(","uid":")", name,
                   R"(","labels":)", labels, R"(},"spec":{)", spec, "}}")));
}

class InterPodAffinityTest : public ::testing::Test {
 protected:
  InterPodAffinityTest() {
    plugin_.Register({.name = "InterPodAffinity", .points = 0xffff});
    AddNode("a1", R"({"zone":"a","host":"a1"})");
    AddNode("a2", R"({"zone":"a","host":"a2"})");
    AddNode("b1", R"({"zone":"b","host":"b1"})");
    AddNode("bare", "{}");
  }
  void AddNode(std::string name, std::string labels) {
    world_.AddNode(Parse(StrCat(R"({"metadata":{"name":")", name, R"(","labels":)", labels, "}}")));
  }
  // Puts a pod on a node. `spec` holds more members of its spec, each preceded by a comma.
  void Place(std::string name, std::string node, std::string labels, std::string spec = "",
             std::string ns = "ns") {
    world_.placements.Confirm(Pod(std::move(name), std::move(labels),
                                  StrCat(R"("nodeName":")", node, "\"", spec), std::move(ns)));
  }
  std::vector<std::string> Fits(PodInfoPtr pod) {
    cycle_ = {};
    cycle_.pod = std::move(pod);
    NodeSet left = world_.nodes.known();
    const Status status = plugin_.PreFilter(cycle_);
    if (!status.IsSkip()) {
      EXPECT_TRUE(plugin_.Filter(cycle_, left).ok());
    }
    std::vector<std::string> names;
    left.ForEach([&](NodeIndex node) { names.push_back(world_.nodes.name(node)); });
    return names;
  }
  // Why Fits found no other nodes.
  std::map<std::string, std::size_t, std::less<>> Reasons() {
    NodeSet left = world_.nodes.known();
    EXPECT_TRUE(plugin_.Filter(cycle_, left).ok());
    NodeSet rejected = world_.nodes.known();
    rejected.RemoveAll(left);
    Diagnosis diagnosis;
    plugin_.Explain(cycle_, rejected, diagnosis);
    return diagnosis.reasons();
  }

  TestContext world_;
  InterPodAffinity plugin_{world_.context};
  Cycle cycle_;
};

TEST_F(InterPodAffinityTest, SkipsPodsThatNoRuleConcerns) {
  Place("db", "a1", kDb);
  cycle_.pod = Pod("p", kWeb, "");
  EXPECT_TRUE(plugin_.PreFilter(cycle_).IsSkip());
}

TEST_F(InterPodAffinityTest, AffinityWantsADomainWithAMatchingPod) {
  Place("db", "a1", kDb);
  EXPECT_THAT(Fits(Pod("p", kWeb, With({Term("db")}))), ElementsAre("a1", "a2"));
  EXPECT_THAT(Fits(Pod("p", kWeb, With({Term("db", "host")}))), ElementsAre("a1"));
  EXPECT_THAT(Fits(Pod("p", kWeb, With({Term("cache")}))), IsEmpty());
  EXPECT_THAT(Reasons(),
              ElementsAre(::testing::Pair("node(s) didn't match pod affinity rules", 4)));
}

TEST_F(InterPodAffinityTest, OnlyAPodThatMatchesAllTermsIsCompany) {
  Place("db", "a1", R"({"app":"db","tier":"1"})");
  Place("other", "b1", R"({"app":"web","tier":"1"})");
  const std::string tier = R"({"topologyKey":"host","labelSelector":{"matchLabels":{"tier":"1"}}})";
  EXPECT_THAT(Fits(Pod("p", kWeb, With({Term("db"), tier}))), ElementsAre("a1"));
}

TEST_F(InterPodAffinityTest, TheFirstPodOfAGroupStartsWhereTheNodesHaveTheLabel) {
  EXPECT_THAT(Fits(Pod("p", kWeb, With({Term("web")}))), ElementsAre("a1", "a2", "b1"));
  Place("first", "b1", kWeb);
  EXPECT_THAT(Fits(Pod("p", kWeb, With({Term("web")}))), ElementsAre("b1"));
}

TEST_F(InterPodAffinityTest, AntiAffinityAvoidsTheDomainsOfMatchingPods) {
  Place("db", "a1", kDb);
  EXPECT_THAT(Fits(Pod("p", kWeb, Without({Term("db")}))), ElementsAre("b1", "bare"));
  EXPECT_THAT(Reasons(),
              ElementsAre(::testing::Pair("node(s) didn't match pod anti-affinity rules", 2)));
  EXPECT_THAT(Fits(Pod("p", kWeb, Without({Term("db", "host")}))), ElementsAre("a2", "b1", "bare"));
}

TEST_F(InterPodAffinityTest, ARunningPodsAntiAffinityCountsToo) {
  Place("shy", "a1", kDb, "," + Without({Term("web")}));
  EXPECT_THAT(Fits(Pod("p", kWeb, "")), ElementsAre("b1", "bare"));
  EXPECT_THAT(Reasons(), ElementsAre(::testing::Pair(
                             "node(s) didn't satisfy existing pods anti-affinity rules", 2)));
  EXPECT_THAT(Fits(Pod("p", kDb, "")), ElementsAre("a1", "a2", "b1", "bare"));
}

TEST_F(InterPodAffinityTest, APodThatIsGoneOrWhoseNodeIsGoneRepelsNobody) {
  Place("shy", "a1", kDb, "," + Without({Term("web")}));
  world_.placements.Remove("shy");
  EXPECT_THAT(Fits(Pod("p", kWeb, "")), ElementsAre("a1", "a2", "b1", "bare"));
  Place("shy", "b1", kDb, "," + Without({Term("web")}));
  EXPECT_THAT(Fits(Pod("p", kWeb, "")), ElementsAre("a1", "a2", "bare"));
  world_.placements.RemoveNode("b1");
  EXPECT_THAT(Fits(Pod("p", kWeb, "")), ElementsAre("a1", "a2", "bare"));
  AddNode("b1", R"({"zone":"b"})");  // the pod is still bound to it
  EXPECT_THAT(Fits(Pod("p", kWeb, "")), ElementsAre("a1", "a2", "bare"));
}

TEST_F(InterPodAffinityTest, TermsConcernTheirNamespaces) {
  Place("db", "a1", kDb, "", "elsewhere");
  EXPECT_THAT(Fits(Pod("p", kWeb, Without({Term("db")}))), ElementsAre("a1", "a2", "b1", "bare"));
  EXPECT_THAT(Fits(Pod("p", kWeb, Without({Term("db", "zone", R"(,"namespaces":["elsewhere"])")}))),
              ElementsAre("b1", "bare"));
  EXPECT_THAT(Fits(Pod("p", kWeb, Without({Term("db", "zone", R"(,"namespaceSelector":{})")}))),
              ElementsAre("b1", "bare"));
}

TEST_F(InterPodAffinityTest, LabelKeysNarrowATermToThePodsOwnValues) {
  Place("old", "a1", R"({"app":"web","version":"1"})");
  Place("new", "b1", R"({"app":"web","version":"2"})");
  const auto with = [&](std::string_view keys) {
    return Fits(Pod("p", R"({"app":"web","version":"2"})",
                    Without({Term("web", "zone", StrCat(R"(,")", keys, R"(":["version"])"))})));
  };
  EXPECT_THAT(with("matchLabelKeys"), ElementsAre("a1", "a2", "bare"));
  EXPECT_THAT(with("mismatchLabelKeys"), ElementsAre("b1", "bare"));
}

TEST_F(InterPodAffinityTest, OnlyEventsThatCanChangeTheAnswerHelp) {
  const PodInfoPtr wants_db = Pod("p", kWeb, With({Term("db")}));
  const PodInfoPtr avoids_db = Pod("q", kWeb, Without({Term("db")}));
  const api::ObjectPtr db = Pod("db", kDb, "")->pod;
  const api::ObjectPtr web = Pod("web", kWeb, "")->pod;
  const api::ObjectPtr shy = Pod("shy", kDb, Without({Term("web")}))->pod;
  EXPECT_TRUE(plugin_.MayHelp(*wants_db, {EventKind::kBoundPodAdd, nullptr, db, {}}));
  EXPECT_FALSE(plugin_.MayHelp(*wants_db, {EventKind::kBoundPodAdd, nullptr, web, {}}));
  EXPECT_TRUE(plugin_.MayHelp(*avoids_db, {EventKind::kBoundPodRemove, db, nullptr, {}}));
  EXPECT_FALSE(plugin_.MayHelp(*avoids_db, {EventKind::kBoundPodRemove, web, nullptr, {}}));
  EXPECT_TRUE(plugin_.MayHelp(*wants_db, {EventKind::kBoundPodRemove, shy, nullptr, {}}));
  EXPECT_TRUE(plugin_.MayHelp(*wants_db, {EventKind::kBoundPodLabel, web, db, {}}));
  EXPECT_TRUE(plugin_.MayHelp(*avoids_db, {EventKind::kBoundPodLabel, db, web, {}}));
  EXPECT_FALSE(plugin_.MayHelp(*avoids_db, {EventKind::kBoundPodLabel, web, web, {}}));
  EXPECT_TRUE(plugin_.MayHelp(*wants_db, {EventKind::kNodeAdd, nullptr, nullptr, {}}));
}

}  // namespace
}  // namespace drakkar::scheduler
