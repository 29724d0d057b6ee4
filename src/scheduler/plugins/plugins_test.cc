// Tables of rules for single plugins.
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/text/text.h"
#include "scheduler/cache/taints.h"
#include "scheduler/framework/diagnosis.h"
#include "scheduler/framework/framework.h"
#include "scheduler/plugins/node_affinity/node_affinity.h"
#include "scheduler/plugins/node_resources/node_resources_fit.h"
#include "scheduler/plugins/unsupported_fields/unsupported_fields.h"
#include "scheduler/testing/test_context.h"

namespace drakkar::scheduler {
namespace {

api::ObjectPtr Parse(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return std::make_shared<const api::Object>(*tree);
}

TEST(Taints, AreToleratedAsInKubernetes) {
  struct Case {
    const char* tolerations;
    bool tolerated;
  };
  const NodeTaint taint{"k", "v", "NoSchedule"};
  const Case cases[] = {
      {R"([])", false},
      {R"([{"key":"k","operator":"Equal","value":"v","effect":"NoSchedule"}])", true},
      {R"([{"key":"k","value":"v"}])", true},
      {R"([{"key":"k","value":"other"}])", false},
      {R"([{"key":"k","operator":"Exists"}])", true},
      {R"([{"key":"other","operator":"Exists"}])", false},
      {R"([{"operator":"Exists"}])", true},
      {R"([{"operator":"Exists","effect":"NoExecute"}])", false},
      {R"([{"key":"k","operator":"Sometimes","value":"v"}])", false},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ToleratesTaint(Parse(c.tolerations)->root(), taint, Comparisons::kIgnored),
              c.tolerated)
        << c.tolerations;
  }
}

TEST(NodeSelector, MatchesLabelsAndNamesAsInKubernetes) {
  struct Case {
    const char* spec;
    bool matches;
  };
  const api::ObjectPtr node =
      Parse(R"({"metadata":{"name":"n1","labels":{"zone":"a","cores":"16","empty":""}}})");
  const auto term = [](std::string inside) {
    return StrCat(
        R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[)",
        inside, "]}}}}");
  };
  const std::pair<std::string, bool> cases[] = {
      {R"({"nodeSelector":{"zone":"a"}})", true},
      {R"({"nodeSelector":{"zone":"a","cores":"8"}})", false},
      {R"({"nodeSelector":{"missing":""}})", false},
      {term(R"({"matchExpressions":[{"key":"zone","operator":"In","values":["b","a"]}]})"), true},
      {term(R"({"matchExpressions":[{"key":"zone","operator":"NotIn","values":["a"]}]})"), false},
      {term(R"({"matchExpressions":[{"key":"missing","operator":"NotIn","values":["a"]}]})"), true},
      {term(R"({"matchExpressions":[{"key":"empty","operator":"Exists"}]})"), true},
      {term(R"({"matchExpressions":[{"key":"zone","operator":"DoesNotExist"}]})"), false},
      {term(R"({"matchExpressions":[{"key":"cores","operator":"Gt","values":["8"]}]})"), true},
      {term(R"({"matchExpressions":[{"key":"cores","operator":"Lt","values":["8"]}]})"), false},
      {term(R"({"matchExpressions":[{"key":"zone","operator":"Gt","values":["8"]}]})"), false},
      {term(R"({"matchExpressions":[{"key":"zone","operator":"Near","values":["a"]}]})"), false},
      {term(R"({"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]})"), true},
      {term(R"({"matchFields":[{"key":"metadata.uid","operator":"In","values":["n1"]}]})"), false},
      {term("{}"), false},
      {term(""), false},
      {term(R"({},{"matchExpressions":[{"key":"zone","operator":"Exists"}]})"), true},
  };
  for (const auto& [spec, matches] : cases) {
    EXPECT_EQ(NodeCondition::Read(Parse(spec)->root()).Matches(node->root()), matches) << spec;
  }
}

TEST(UnsupportedFields, AreNamedByTheirPath) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", ""},
      {R"({"topologySpreadConstraints":[{"whenUnsatisfiable":"DoNotSchedule"}]})", ""},
      {R"({"volumes":[{"emptyDir":{}},{"persistentVolumeClaim":{"claimName":"x"}}]})",
       "spec.volumes[1].persistentVolumeClaim"},
      {R"({"volumes":[{"gcePersistentDisk":{"pdName":"x"}}]})",
       "spec.volumes[0].gcePersistentDisk"},
      {R"({"volumes":[{"awsElasticBlockStore":{"volumeID":"x"}}]})",
       "spec.volumes[0].awsElasticBlockStore"},
      {R"({"volumes":[{"iscsi":{"lun":0}}]})", "spec.volumes[0].iscsi"},
      {R"({"volumes":[{"rbd":{"image":"x"}}]})", "spec.volumes[0].rbd"},
  };
  for (const auto& [spec, field] : cases) {
    const PodInfoPtr pod =
        MakePodInfo(Parse(StrCat(R"({"metadata":{"name":"p"},"spec":)", spec, "}")));
    EXPECT_EQ(FindUnsupportedField(*pod), field) << spec;
  }
}

TEST(UnsupportedFields, ListsThatTakeTooLongToCompareAreRejected) {
  const auto many = [](std::size_t count, std::string_view entry) {
    std::string list(entry);
    for (std::size_t i = 1; i < count; ++i) list += StrCat(",", entry);
    return list;
  };
  const auto found = [](const std::string& spec) {
    return FindOversizedField(
        *MakePodInfo(Parse(StrCat(R"({"metadata":{"name":"p"},"spec":)", spec, "}"))));
  };
  const auto tolerations = [&](std::size_t count) {
    return StrCat(R"({"tolerations":[)", many(count, R"({"key":"k"})"), "]}");
  };
  EXPECT_EQ(found(tolerations(1'000)), "");
  EXPECT_EQ(found(tolerations(1'001)),
            "spec.tolerations with more than 1000 entries (it has 1001)");
  const auto constraints = [&](std::size_t count) {
    return StrCat(R"({"topologySpreadConstraints":[)", many(count, R"({"topologyKey":"z"})"), "]}");
  };
  EXPECT_EQ(found(constraints(64)), "");
  EXPECT_EQ(found(constraints(65)),
            "spec.topologySpreadConstraints with more than 64 entries (it has 65)");
  const auto terms = [&](std::size_t count, const std::string& values) {
    return StrCat(
        R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{)",
        R"("nodeSelectorTerms":[)",
        many(count, StrCat(R"({"matchExpressions":[{"key":"k","operator":"In","values":[)", values,
                           "]}]}")),
        "]}}}}");
  };
  EXPECT_EQ(found(terms(500, R"("v")")), "");
  EXPECT_EQ(found(terms(501, R"("v")")),
            "spec.affinity.nodeAffinity with more than 1000 entries (it has 1002)");
  EXPECT_EQ(found(terms(2, many(5'001, R"("v")"))),
            "spec.affinity.nodeAffinity with more than 10000 entries (it has 10002)");
}

TEST(NodeAffinity, CachesMatchesAndReevaluatesOnlyChangedNodes) {
  TestContext world;
  NodeTable& nodes = world.nodes;
  NodeAffinity plugin(world.context);
  nodes.SetNode(Parse(R"({"metadata":{"name":"a","labels":{"x":"1"}}})"));
  nodes.SetNode(Parse(R"({"metadata":{"name":"b"}})"));
  Cycle cycle;
  cycle.pod = MakePodInfo(Parse(R"({"metadata":{"name":"p"},"spec":{"nodeSelector":{"x":"1"}}})"));
  const auto matching = [&] {
    NodeSet left = nodes.known();
    EXPECT_TRUE(plugin.Filter(cycle, left).ok());
    std::string names;
    left.ForEach([&](NodeIndex node) { names += nodes.name(node); });
    return names;
  };
  EXPECT_EQ(matching(), "a");
  nodes.SetNode(Parse(R"({"metadata":{"name":"b","labels":{"x":"1"}}})"));
  EXPECT_EQ(matching(), "ab");
  nodes.RemoveNode("a");
  EXPECT_EQ(matching(), "b");
  nodes.SetNode(Parse(R"({"metadata":{"name":"c"}})"));  // reuses the index of "a"
  EXPECT_EQ(matching(), "b");
}

TEST(NodeResourcesFit, LeavesRoomForNominatedPodsOfEqualOrHigherPriority) {
  TestContext world;
  NodeTable& nodes = world.nodes;
  NodeResourcesFit plugin(world.context);
  const NodeIndex node = nodes.SetNode(
      Parse(R"({"metadata":{"name":"a"},"status":{"allocatable":{"cpu":"4","pods":"10"}}})"));
  const auto pod = [](std::string uid, int priority) {
    return MakePodInfo(
        Parse(StrCat(R"({"metadata":{"name":"p","uid":")", uid, R"("},"spec":{"priority":)",
                     priority, R"(,"containers":[{"resources":{"requests":{"cpu":"3"}}}]}})")));
  };
  nodes.AddNominated(node, pod("expected", 5));
  for (const auto& [uid, priority, fits] :
       std::initializer_list<std::tuple<const char*, int, bool>>{
           {"lower", 1, false}, {"equal", 5, false}, {"higher", 9, true}, {"expected", 5, true}}) {
    Cycle cycle;
    cycle.pod = pod(uid, priority);
    NodeSet left = nodes.known();
    ASSERT_TRUE(plugin.Filter(cycle, left).ok());
    EXPECT_EQ(left.Contains(node), fits) << uid;
  }
}

TEST(Diagnosis, CountsReasonsAndSortsThemAsText) {
  Diagnosis diagnosis;
  diagnosis.Count("Insufficient cpu", 3);
  diagnosis.Count("Too many pods", 12);
  EXPECT_EQ(diagnosis.Message(15),
            "0/15 nodes are available: 12 Too many pods, 3 Insufficient cpu.");
  diagnosis.SetPostFilterMessage("deallocation of ResourceClaim completed");
  EXPECT_EQ(diagnosis.Message(15),
            "0/15 nodes are available: 12 Too many pods, 3 Insufficient cpu. deallocation of "
            "ResourceClaim completed");
}

TEST(Framework, ScoresAShareOfManyNodes) {
  EXPECT_EQ(Framework::NodesToScore(10), 10u);
  EXPECT_EQ(Framework::NodesToScore(100), 100u);
  EXPECT_EQ(Framework::NodesToScore(500), 230u);
  EXPECT_EQ(Framework::NodesToScore(5000), 500u);
  EXPECT_EQ(Framework::NodesToScore(100000), 5000u);
}

}  // namespace
}  // namespace drakkar::scheduler
