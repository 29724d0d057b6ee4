#include "device/node_selector.h"

#include <gtest/gtest.h>

namespace drakkar::device {
namespace {

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
  EXPECT_TRUE(Matches({"absent", "NotIn", {"a"}}));
  EXPECT_FALSE(Matches({"zone", "NotIn", {"a"}}));
  EXPECT_TRUE(Matches({"zone", "Exists", {}}));
  EXPECT_TRUE(Matches({"absent", "DoesNotExist", {}}));
  EXPECT_TRUE(Matches({"cores", "Gt", {"7"}}));
  EXPECT_FALSE(Matches({"cores", "Gt", {"8"}}));
  EXPECT_TRUE(Matches({"cores", "Lt", {"9"}}));
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
  NodeSelector selector;
  selector.terms.push_back({{}, {{"metadata.uid", "In", {"x"}}}});
  EXPECT_FALSE(Matches(selector, kNode).ok());
}

}  // namespace
}  // namespace drakkar::device
