#include "scheduler/plugins/inter_pod_affinity/inter_pod_affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "api/json/reader.h"
#include "base/text/text.h"
#include "scheduler/testing/cluster.h"
#include "scheduler/testing/test_context.h"

namespace drakkar::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kWeb[] = R"({"app":"web"})";

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

std::string Required(std::string_view kind, const std::vector<std::string>& terms) {
  return StrCat("\"", kind, R"(":{"requiredDuringSchedulingIgnoredDuringExecution":[)",
                Join(terms, ","), "]}");
}

std::string Preferred(std::string_view kind, std::string_view term, int weight) {
  return StrCat("\"", kind, R"(":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":)",
                weight, R"(,"podAffinityTerm":)", term, "}]}");
}

std::string Affinity(const std::vector<std::string>& terms) {
  return Required("podAffinity", terms);
}
std::string AntiAffinity(const std::vector<std::string>& terms) {
  return Required("podAntiAffinity", terms);
}

class InterPodAffinityTest : public ::testing::Test {
 protected:
  InterPodAffinityTest() {
    plugin_.Register({.name = "InterPodAffinity", .points = 0xffff});
    AddNode("a1", R"({"zone":"a","host":"a1"})");
    AddNode("a2", R"({"zone":"a","host":"a2"})");
    AddNode("b1", R"({"zone":"b","host":"b1"})");
    AddNode("none", "{}");
  }

  void AddNode(std::string name, std::string labels) {
    world_.AddNode(Parse(StrCat(R"({"metadata":{"name":")", name, R"(","labels":)", labels, "}}")));
  }
  void AddNamespace(std::string name, std::string labels) {
    world_.namespaces.Set(
        Parse(StrCat(R"({"metadata":{"name":")", name, R"(","labels":)", labels, "}}")));
  }
  // `affinity` has the members of spec.affinity.
  static PodInfoPtr Pod(std::string name, std::string labels, std::string affinity = "",
                        std::string node = "", std::string ns = "ns") {
    return MakePodInfo(
        Parse(StrCat(R"({"metadata":{"namespace":")", ns, R"(","name":")", name, R"(","uid":")", ns,
                     name, R"(","labels":)", labels, R"(},"spec":{"nodeName":")", node,
                     R"(","affinity":{)", affinity, "}}}")));
  }
  // Puts a pod on a node and returns its uid.
  std::string Place(const std::string& node, std::string labels = kWeb, std::string affinity = "",
                    std::string ns = "ns") {
    const PodInfoPtr pod =
        Pod(StrCat("placed-", ++placed_), std::move(labels), std::move(affinity), node, ns);
    world_.placements.Confirm(pod);
    return pod->uid;
  }
  static PodInfoPtr Wanted(std::string affinity, std::string labels = kWeb) {
    return Pod("wanted", std::move(labels), std::move(affinity));
  }
  // The names of the nodes that fit.
  std::vector<std::string> Fits(PodInfoPtr pod) {
    cycle_ = {};
    cycle_.pod = std::move(pod);
    NodeSet left = world_.nodes.known();
    const Status status = plugin_.PreFilter(cycle_);
    if (!status.IsSkip()) {
      EXPECT_TRUE(status.ok()) << status.Message();
      EXPECT_TRUE(plugin_.Filter(cycle_, left).ok());
    }
    std::vector<std::string> names;
    left.ForEach([&](NodeIndex node) { names.push_back(world_.nodes.name(node)); });
    return names;
  }
  // Scores of all nodes, by name; empty if all are equal.
  std::map<std::string, std::int64_t> Scores(PodInfoPtr pod) {
    cycle_ = {};
    cycle_.pod = std::move(pod);
    std::vector<NodeIndex> nodes;
    world_.nodes.known().ForEach([&](NodeIndex node) { nodes.push_back(node); });
    std::vector<std::int64_t> scores(nodes.size(), -1);
    std::map<std::string, std::int64_t> named;
    if (!plugin_.Score(cycle_, nodes, scores)) return named;
    for (std::size_t i = 0; i < nodes.size(); ++i) named[world_.nodes.name(nodes[i])] = scores[i];
    return named;
  }
  std::string Explain(PodInfoPtr pod) {
    const std::vector<std::string> fit = Fits(std::move(pod));
    NodeSet rejected = world_.nodes.known();
    for (const std::string& name : fit) rejected.Remove(world_.nodes.Find(name));
    Diagnosis diagnosis;
    plugin_.Explain(cycle_, rejected, diagnosis);
    return diagnosis.Message(world_.nodes.node_count());
  }
  bool MayHelp(const PodInfoPtr& pod, EventKind kind, const PodInfoPtr& before,
               const PodInfoPtr& after) {
    return plugin_.MayHelp(*pod, {kind,
                                  before == nullptr ? nullptr : before->pod,
                                  after == nullptr ? nullptr : after->pod,
                                  {}});
  }

  TestContext world_;
  InterPodAffinity plugin_{world_.context};
  Cycle cycle_;
  int placed_ = 0;
};

TEST_F(InterPodAffinityTest, APodThatNoTermConcernsIsSkipped) {
  cycle_.pod = Wanted("");
  EXPECT_TRUE(plugin_.PreFilter(cycle_).IsSkip());
  Place("a1", kWeb, AntiAffinity({Term("other")}));
  EXPECT_TRUE(plugin_.PreFilter(cycle_).IsSkip());
}

TEST_F(InterPodAffinityTest, AffinityKeepsAPodInTheDomainsOfThePodsItWantsToBeNear) {
  Place("a1", R"({"app":"db"})");
  EXPECT_THAT(Fits(Wanted(Affinity({Term("db")}))), ElementsAre("a1", "a2"));
  EXPECT_THAT(Fits(Wanted(Affinity({Term("db", "host")}))), ElementsAre("a1"));
}

TEST_F(InterPodAffinityTest, OnePodMustMatchAllAffinityTerms) {
  Place("a1", R"({"app":"db"})");
  Place("a1", R"({"app":"cache"})");
  EXPECT_THAT(Fits(Wanted(Affinity({Term("db"), Term("cache")}))), IsEmpty());
  EXPECT_THAT(Fits(Wanted(Affinity({Term("db"), Term("db", "host")}))), ElementsAre("a1"));
}

TEST_F(InterPodAffinityTest, TheFirstPodOfAGroupStartsOnAnyNodeThatHasTheLabel) {
  const PodInfoPtr pod = Wanted(Affinity({Term("web")}));
  EXPECT_THAT(Fits(pod), ElementsAre("a1", "a2", "b1"));
  EXPECT_THAT(Fits(Wanted(Affinity({Term("web")}), R"({"app":"other"})")), IsEmpty());
  Place("b1");
  EXPECT_THAT(Fits(pod), ElementsAre("b1"));
}

TEST_F(InterPodAffinityTest, AntiAffinityKeepsAPodOutOfTheDomainsOfOthers) {
  Place("a1");
  EXPECT_THAT(Fits(Wanted(AntiAffinity({Term("web")}))), ElementsAre("b1", "none"));
  EXPECT_THAT(Fits(Wanted(AntiAffinity({Term("web", "host")}))), ElementsAre("a2", "b1", "none"));
  EXPECT_THAT(Fits(Wanted(AntiAffinity({Term("web", "host"), Term("web")}))),
              ElementsAre("b1", "none"));
}

TEST_F(InterPodAffinityTest, TheAntiAffinityOfPlacedPodsKeepsNewPodsAway) {
  const std::string uid = Place("a1", R"({"app":"lonely"})", AntiAffinity({Term("web")}));
  EXPECT_THAT(Fits(Wanted("")), ElementsAre("b1", "none"));
  EXPECT_THAT(Fits(Wanted("", R"({"app":"other"})")), ElementsAre("a1", "a2", "b1", "none"));
  Place("b1", R"({"app":"lonely"})", AntiAffinity({Term("web")}));
  EXPECT_THAT(Fits(Wanted("")), ElementsAre("none"));
  world_.placements.Remove(uid);
  EXPECT_THAT(Fits(Wanted("")), ElementsAre("a1", "a2", "none"));
}

TEST_F(InterPodAffinityTest, RequiredAffinityOfPlacedPodsDoesNotRestrictNewPods) {
  Place("a1", R"({"app":"friend"})", Affinity({Term("web")}));
  EXPECT_THAT(Fits(Wanted("")), ElementsAre("a1", "a2", "b1", "none"));
}

TEST_F(InterPodAffinityTest, ATermIsAboutItsOwnNamespaceUnlessItNamesOrSelectsOthers) {
  Place("a1", kWeb, "", "elsewhere");
  AddNamespace("elsewhere", R"({"team":"x"})");
  const auto fits = [&](std::string_view more) {
    return Fits(Wanted(AntiAffinity({Term("web", "zone", more)})));
  };
  EXPECT_THAT(fits(""), ElementsAre("a1", "a2", "b1", "none"));
  EXPECT_THAT(fits(R"(,"namespaces":["elsewhere"])"), ElementsAre("b1", "none"));
  EXPECT_THAT(fits(R"(,"namespaces":["third"])"), ElementsAre("a1", "a2", "b1", "none"));
  EXPECT_THAT(fits(R"(,"namespaceSelector":{})"), ElementsAre("b1", "none"));
  EXPECT_THAT(fits(R"(,"namespaceSelector":{"matchLabels":{"team":"x"}})"),
              ElementsAre("b1", "none"));
  EXPECT_THAT(fits(R"(,"namespaceSelector":{"matchLabels":{"team":"y"}})"),
              ElementsAre("a1", "a2", "b1", "none"));
  EXPECT_THAT(
      fits(R"(,"namespaces":["elsewhere"],"namespaceSelector":{"matchLabels":{"team":"y"}})"),
      ElementsAre("b1", "none"));
  AddNamespace("elsewhere", R"({"team":"y"})");
  EXPECT_THAT(fits(R"(,"namespaceSelector":{"matchLabels":{"team":"y"}})"),
              ElementsAre("b1", "none"));
}

TEST_F(InterPodAffinityTest, ThePlacedPodsTermsMaySelectNamespacesToo) {
  AddNamespace("ns", R"({"team":"x"})");
  Place("a1", "{}",
        AntiAffinity({Term("web", "zone", R"(,"namespaceSelector":{"matchLabels":{"team":"x"}})")}),
        "elsewhere");
  EXPECT_THAT(Fits(Wanted("")), ElementsAre("b1", "none"));
  AddNamespace("ns", "{}");
  EXPECT_THAT(Fits(Wanted("")), ElementsAre("a1", "a2", "b1", "none"));
}

TEST_F(InterPodAffinityTest, ATermWithoutASelectorMatchesNoPod) {
  Place("a1");
  EXPECT_THAT(Fits(Wanted(AntiAffinity({R"({"topologyKey":"zone"})"}))),
              ElementsAre("a1", "a2", "b1", "none"));
}

TEST_F(InterPodAffinityTest, TheReasonTellsWhoseTermsRejectANode) {
  EXPECT_THAT(Explain(Wanted(Affinity({Term("db")}))),
              HasSubstr("4 node(s) didn't match pod affinity rules"));
  Place("a1");
  EXPECT_THAT(Explain(Wanted(AntiAffinity({Term("web")}))),
              HasSubstr("2 node(s) didn't match pod anti-affinity rules"));
  Place("b1", "{}", AntiAffinity({Term("web")}));
  EXPECT_THAT(Explain(Wanted("")),
              HasSubstr("1 node(s) didn't satisfy existing pods anti-affinity rules"));
}

TEST_F(InterPodAffinityTest, PreferredTermsRankDomainsByTheNumberOfPods) {
  EXPECT_THAT(Scores(Wanted(Preferred("podAffinity", Term("db"), 10))), IsEmpty());
  Place("a1", R"({"app":"db"})");
  Place("a2", R"({"app":"db"})");
  Place("b1", R"({"app":"db"})");
  EXPECT_THAT(
      Scores(Wanted(Preferred("podAffinity", Term("db"), 10))),
      UnorderedElementsAre(Pair("a1", 100), Pair("a2", 100), Pair("b1", 50), Pair("none", 0)));
  EXPECT_THAT(
      Scores(Wanted(Preferred("podAntiAffinity", Term("db"), 10))),
      UnorderedElementsAre(Pair("a1", 0), Pair("a2", 0), Pair("b1", 50), Pair("none", 100)));
}

TEST_F(InterPodAffinityTest, TermsOfPlacedPodsRankNodesForNewPods) {
  Place("a1", "{}", Preferred("podAffinity", Term("web"), 4));
  Place("b1", "{}", Affinity({Term("web")}));  // counts as weight 1
  EXPECT_THAT(Scores(Wanted("")), UnorderedElementsAre(Pair("a1", 100), Pair("a2", 100),
                                                       Pair("b1", 25), Pair("none", 0)));
  Place("a1", "{}", Preferred("podAntiAffinity", Term("web"), 4));
  EXPECT_THAT(Scores(Wanted("")),
              UnorderedElementsAre(Pair("a1", 0), Pair("a2", 0), Pair("b1", 100), Pair("none", 0)));
  EXPECT_THAT(Scores(Wanted("", R"({"app":"other"})")), IsEmpty());
}

TEST_F(InterPodAffinityTest, OnlyAPodThatMatchesWakesAPodThatWantsToBeNearIt) {
  const PodInfoPtr pod = Wanted(Affinity({Term("db")}));
  const PodInfoPtr match = Pod("other", R"({"app":"db"})", "", "a1");
  const PodInfoPtr stranger = Pod("other", kWeb, "", "a1");
  EXPECT_TRUE(MayHelp(pod, EventKind::kBoundPodAdd, nullptr, match));
  EXPECT_FALSE(MayHelp(pod, EventKind::kBoundPodAdd, nullptr, stranger));
  EXPECT_TRUE(MayHelp(pod, EventKind::kBoundPodLabel, stranger, match));
  EXPECT_FALSE(MayHelp(pod, EventKind::kBoundPodLabel, match, match));
  EXPECT_FALSE(MayHelp(pod, EventKind::kBoundPodRemove, stranger, nullptr));
}

TEST_F(InterPodAffinityTest, TheEndOfAPodThatKeptOthersAwayWakesThem) {
  const PodInfoPtr pod = Wanted(AntiAffinity({Term("db")}));
  const PodInfoPtr avoided = Pod("other", R"({"app":"db"})", "", "a1");
  const PodInfoPtr avoiding = Pod("other", "{}", AntiAffinity({Term("web")}), "a1");
  const PodInfoPtr stranger = Pod("other", "{}", "", "a1");
  EXPECT_TRUE(MayHelp(pod, EventKind::kBoundPodRemove, avoided, nullptr));
  EXPECT_TRUE(MayHelp(pod, EventKind::kBoundPodRemove, avoiding, nullptr));
  EXPECT_FALSE(MayHelp(pod, EventKind::kBoundPodRemove, stranger, nullptr));
  EXPECT_TRUE(MayHelp(pod, EventKind::kBoundPodLabel, avoided, stranger));
  EXPECT_FALSE(MayHelp(pod, EventKind::kBoundPodLabel, stranger, avoided));
  EXPECT_FALSE(MayHelp(pod, EventKind::kBoundPodAdd, nullptr, avoided));
}

// The caches agree with a count from scratch while pods come, change and go.
TEST_F(InterPodAffinityTest, CachesAgreeWithAFreshPluginAfterRandomChanges) {
  std::mt19937 random(7);
  const std::vector<std::string> nodes = {"a1", "a2", "b1", "none"};
  const std::vector<std::string> affinities = {
      "", AntiAffinity({Term("web")}), AntiAffinity({Term("web", "host"), Term("db")}),
      Affinity({Term("db")}), Preferred("podAffinity", Term("web"), 3)};
  const std::vector<std::string> labels = {kWeb, R"({"app":"db"})", "{}"};
  std::vector<std::string> uids;
  for (int step = 0; step < 200; ++step) {
    if (uids.size() > 6 || (!uids.empty() && random() % 3 == 0)) {
      const std::size_t at = random() % uids.size();
      world_.placements.Remove(uids[at]);
      uids.erase(uids.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      uids.push_back(Place(nodes[random() % nodes.size()], labels[random() % labels.size()],
                           affinities[random() % affinities.size()]));
    }
    if (step % 40 == 20) {
      world_.placements.RemoveNode("a2");
    } else if (step % 40 == 30) {
      AddNode("a2", R"({"zone":"b","host":"a2"})");
    }
    const PodInfoPtr pod =
        Wanted(affinities[random() % affinities.size()], labels[random() % labels.size()]);
    InterPodAffinity fresh(world_.context);
    fresh.Register({.name = "InterPodAffinity", .points = 0xffff});
    Cycle cycle;
    cycle.pod = pod;
    NodeSet expected = world_.nodes.known();
    if (!fresh.PreFilter(cycle).IsSkip()) {
      EXPECT_TRUE(fresh.Filter(cycle, expected).ok());
    }
    std::vector<std::string> names;
    expected.ForEach([&](NodeIndex node) { names.push_back(world_.nodes.name(node)); });
    ASSERT_EQ(Fits(pod), names) << "step " << step;
  }
}

TEST(InterPodAffinityScheduling, ReplicasThatAvoidEachOtherGetANodeEachAndTheNextOneWaits) {
  TestCluster cluster;
  cluster.CreateNode("n1", R"({"host":"n1"})");
  cluster.CreateNode("n2", R"({"host":"n2"})");
  cluster.StartScheduler();
  const auto create = [&](std::string name) {
    cluster.Create("Pod", StrCat(R"({"metadata":{"name":")", name, R"(","labels":)", kWeb,
                                 R"(},"spec":{"containers":[{"name":"c","image":"i"}],)",
                                 R"("affinity":{)", AntiAffinity({Term("web", "host")}), "}}}"));
  };
  create("one");
  create("two");
  create("three");
  cluster.Settle();
  EXPECT_NE(cluster.NodeOf("one"), "");
  EXPECT_NE(cluster.NodeOf("two"), "");
  EXPECT_NE(cluster.NodeOf("one"), cluster.NodeOf("two"));
  EXPECT_EQ(cluster.NodeOf("three"), "");
  EXPECT_THAT(cluster.Events("three", "FailedScheduling"),
              ElementsAre("0/2 nodes are available: 2 node(s) didn't match pod anti-affinity "
                          "rules."));
  const std::string freed = cluster.NodeOf("one");
  cluster.Delete("Pod", "one");
  cluster.LetPauseEnd();
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("three"), freed);
}

TEST(InterPodAffinityScheduling, ALabelOnANamespaceWakesAPodWhoseTermSelectsIt) {
  TestCluster cluster;
  cluster.CreateNode("n1", R"({"zone":"a"})");
  cluster.StartScheduler();
  cluster.Create("Pod", R"({"metadata":{"name":"db","labels":{"app":"db"}},
      "spec":{"containers":[{"name":"c","image":"i"}]}})");
  cluster.Create(
      "Pod",
      StrCat(R"({"metadata":{"name":"wanted"},"spec":{"containers":[{"name":"c","image":)",
             R"("i"}],"affinity":{)",
             Affinity({Term("db", "zone", R"(,"namespaceSelector":{"matchLabels":{"team":"x"}})")}),
             "}}}"));
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("wanted"), "");
  cluster.Update("Namespace", "default", "",
                 [](api::Draft& ns) { ns["metadata"]["labels"].Entry("team") = "x"; });
  cluster.LetPauseEnd();
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("wanted"), "n1");
}

TEST_F(InterPodAffinityTest, TopologyKeysThatNoNodeHasBlockNothing) {
  AddNamespace("ns", "{}");
  for (int i = 0; i < 300; ++i) {
    Place("b1", R"({"app":"lonely"})",
          AntiAffinity({Term("web", StrCat("made-up-", i), R"(,"namespaceSelector":{})")}));
  }
  EXPECT_THAT(Fits(Wanted("")), ElementsAre("a1", "a2", "b1", "none"));
  Place("b1", R"({"app":"lonely"})", AntiAffinity({Term("web", "zone")}));
  Place("a2", R"({"app":"lonely"})", AntiAffinity({Term("web", "host")}));
  EXPECT_THAT(Fits(Wanted("")), ElementsAre("a1", "none"));
}

TEST(AffinityTerms, APodCannotHaveAnyNumberOfThem) {
  const auto pod = [](std::size_t count) {
    return MakePodInfo(
        Parse(StrCat(R"({"metadata":{"namespace":"ns","name":"p","uid":"u"},"spec":{"affinity":{)",
                     AntiAffinity(std::vector<std::string>(count, Term("web"))), "}}}")));
  };
  EXPECT_TRUE(ReadAffinityTerms(*pod(kMaxAffinityTerms)).ok());
  const auto terms = ReadAffinityTerms(*pod(kMaxAffinityTerms + 1));
  ASSERT_FALSE(terms.ok());
  EXPECT_EQ(terms.error().message,
            "the pod has 65 terms; at most 64 are supported by this scheduler");
}

}  // namespace
}  // namespace drakkar::scheduler
