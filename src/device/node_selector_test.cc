#include "device/node_selector.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/text/text.h"
#include "device/from_api.h"
#include "device/to_api.h"

namespace drakkar::device {
namespace {

api::TreePtr Json(std::string_view text) {
  auto tree = api::ParseJson(text);
  EXPECT_TRUE(tree.ok()) << text;
  return *tree;
}

const Node kNode{"worker-0", {{"zone", "a"}, {"cores", "8"}, {"text", "x"}}, {}};

bool Matches(NodeSelectorRequirement requirement) {
  NodeSelector selector;
  selector.terms.push_back({{std::move(requirement)}, {}});
  const Result<bool> matches = device::Matches(selector, kNode);
  EXPECT_TRUE(matches.ok());
  return *matches;
}

TEST(NodeSelector, AnEmptyTermAndNoTermsMatchNothing) {
  EXPECT_FALSE(*Matches(NodeSelector(), kNode));
  NodeSelector selector;
  selector.terms.emplace_back();
  EXPECT_FALSE(*Matches(selector, kNode));
}

TEST(NodeSelector, OperatorsCompareLabels) {
  EXPECT_TRUE(Matches({"zone", "In", {"b", "a"}}));
  EXPECT_FALSE(Matches({"zone", "In", {"b"}}));
  EXPECT_FALSE(Matches({"absent", "In", {"a"}}));
  EXPECT_FALSE(Matches({"absent", "In", {""}})) << "an absent label is not an empty one";
  EXPECT_TRUE(Matches({"absent", "NotIn", {""}}));
  EXPECT_TRUE(Matches({"absent", "NotIn", {"a"}}));
  EXPECT_FALSE(Matches({"zone", "NotIn", {"a"}}));
  EXPECT_TRUE(Matches({"zone", "Exists", {}}));
  EXPECT_TRUE(Matches({"absent", "DoesNotExist", {}}));
  EXPECT_TRUE(Matches({"cores", "Gt", {"7"}}));
  EXPECT_FALSE(Matches({"cores", "Gt", {"8"}}));
  EXPECT_FALSE(Matches({"cores", "Lt", {"8"}}));
  EXPECT_TRUE(Matches({"cores", "Lt", {"9"}}));
  EXPECT_FALSE(Matches({"absent", "Exists", {}}));
  EXPECT_FALSE(Matches({"zone", "DoesNotExist", {}}));
  EXPECT_FALSE(Matches({"text", "Gt", {"1"}}));
  EXPECT_FALSE(Matches({"absent", "Lt", {"1"}}));
}

TEST(NodeSelector, TermsAreAlternativesAndRequirementsAreNot) {
  NodeSelector selector;
  selector.terms.push_back({{{"zone", "In", {"b"}}}, {}});
  selector.terms.push_back({{{"zone", "In", {"a"}}, {"cores", "Exists", {}}}, {}});
  EXPECT_TRUE(*Matches(selector, kNode));
  selector.terms[1].match_fields.push_back({"metadata.name", "NotIn", {"worker-0"}});
  EXPECT_FALSE(*Matches(selector, kNode));
  selector.terms[1].match_fields = {{"metadata.name", "In", {"worker-1"}},
                                    {"metadata.name", "In", {"worker-0"}}};
  EXPECT_FALSE(*Matches(selector, kNode)) << "the second field alone would match";
  selector.terms[1] = {{{"zone", "In", {"b"}}, {"cores", "Exists", {}}}, {}};
  EXPECT_FALSE(*Matches(selector, kNode)) << "the second label alone would match";
  selector.terms[1] = {{}, {{"metadata.name", "NotIn", {"worker-1"}}}};
  EXPECT_TRUE(*Matches(selector, kNode));
}

TEST(NodeSelector, SelectsOneNodeByName) {
  EXPECT_TRUE(*Matches(SelectNode("worker-0"), kNode));
  EXPECT_FALSE(*Matches(SelectNode("worker-1"), kNode));
}

TEST(NodeSelector, ARequirementThatMakesNoSenseIsAnErrorUnlessAnotherTermMatches) {
  for (const NodeSelectorRequirement& bad :
       {NodeSelectorRequirement{"zone", "Like", {"a"}}, NodeSelectorRequirement{"zone", "In", {}},
        NodeSelectorRequirement{"cores", "Gt", {"many"}},
        NodeSelectorRequirement{"cores", "Gt", {"1", "2"}},
        NodeSelectorRequirement{"zone", "Exists", {"a"}}}) {
    NodeSelector selector;
    selector.terms.push_back({{bad}, {}});
    EXPECT_FALSE(Matches(selector, kNode).ok()) << bad.op;
    selector.terms.push_back({{{"zone", "Exists", {}}}, {}});
    EXPECT_TRUE(*Matches(selector, kNode)) << bad.op;
  }
  for (const NodeSelectorRequirement& bad :
       {NodeSelectorRequirement{"metadata.uid", "In", {"x"}},
        NodeSelectorRequirement{"metadata.name", "In", {"x", "worker-0"}},
        NodeSelectorRequirement{"metadata.name", "Exists", {"worker-0"}}}) {
    NodeSelector selector;
    selector.terms.push_back({{}, {bad}});
    EXPECT_FALSE(Matches(selector, kNode).ok()) << bad.key;
  }
  NodeSelector selector;
  selector.terms.push_back({{{"first", "In", {}}}, {}});
  selector.terms.push_back({{{"second", "In", {}}}, {}});
  EXPECT_EQ(Matches(selector, kNode).error().message,
            "node selector requirement \"first\": needs at least one value");
}

TEST(NodeSelector, ANodeObjectMatchesAsTheParsedNodeDoes) {
  const api::TreePtr node = Json(R"({"metadata":{"name":"worker-0","labels":{"zone":"a"}}})");
  NodeSelector selector;
  selector.terms.push_back({{{"zone", "In", {"a"}}}, {{"metadata.name", "In", {"worker-0"}}}});
  EXPECT_TRUE(*Matches(selector, node->root()));
  EXPECT_TRUE(*Matches(selector.terms[0], node->root()));
  selector.terms[0].match_expressions[0].values = {"b"};
  EXPECT_FALSE(*Matches(selector, node->root()));
  EXPECT_FALSE(*Matches(selector.terms[0], node->root()));
  selector.terms[0].match_expressions[0] = {"absent", "NotIn", {"b"}};
  EXPECT_TRUE(*Matches(selector, node->root()));
  selector.terms[0].match_fields[0].values = {"worker-1"};
  EXPECT_FALSE(*Matches(selector, node->root()));
}

TEST(NodeSelector, FindsTheOnlyNodeThatCanMatch) {
  EXPECT_EQ(FindOnlyNode(SelectNode("worker-0")), "worker-0");
  EXPECT_EQ(FindOnlyNode(NodeSelector()), "");
  NodeSelector selector = SelectNode("worker-0");
  selector.terms[0].match_expressions.push_back({"zone", "Exists", {}});
  EXPECT_EQ(FindOnlyNode(selector), "worker-0");
  selector.terms[0].match_fields[0].op = "NotIn";
  EXPECT_EQ(FindOnlyNode(selector), "");
  selector = SelectNode("worker-0");
  selector.terms.push_back(SelectNode("worker-1").terms[0]);
  EXPECT_EQ(FindOnlyNode(selector), "");
  EXPECT_EQ(FindOnlyNode(NodeSelectorToApi(selector).Freeze()->root()), "");
  selector = SelectNode("worker-0");
  auto& fields = selector.terms[0].match_fields;
  fields.insert(fields.begin(), {"metadata.name", "NotIn", {"worker-1"}});
  EXPECT_EQ(FindOnlyNode(selector), "worker-0");
  EXPECT_EQ(FindOnlyNode(NodeSelectorToApi(selector).Freeze()->root()), "worker-0");
  for (const char* field :
       {R"("key":"metadata.name","operator":"In","values":["worker-0"])",
        R"("key":"metadata.name","operator":"In","values":["worker-0","worker-1"])",
        R"("key":"metadata.name","operator":"NotIn","values":["worker-0"])",
        R"("key":"metadata.uid","operator":"In","values":["worker-0"])"}) {
    const api::TreePtr object =
        Json(StrCat(R"({"nodeSelectorTerms":[{"matchFields":[{)", field, "}]}]}"));
    EXPECT_EQ(FindOnlyNode(object->root()), FindOnlyNode(*NodeSelectorFromApi(object->root())))
        << field;
  }
  EXPECT_EQ(FindOnlyNode(api::Value()), "");
  EXPECT_EQ(FindOnlyNode(NodeSelectorToApi(SelectNode("worker-0")).Freeze()->root()), "worker-0");
}

}  // namespace
}  // namespace drakkar::device
