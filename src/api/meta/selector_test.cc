#include <gtest/gtest.h>

#include "api/meta/field_selector.h"
#include "api/meta/label_selector.h"
#include "api/testing/vectors.h"
#include "api/tree/draft.h"
#include "tests/support/vector_report.h"

namespace drakkar::api {
namespace {

void ExpectMatches(const LabelSelector& selector, Value test, Value label_sets) {
  for (std::size_t i = 0; i < label_sets.size(); ++i) {
    EXPECT_EQ(selector.Matches(label_sets.at(i)), test["matches"].at(i).boolean())
        << test["selector"].str() << " on set " << i;
  }
}

TEST(LabelSelector, AgreesWithTheVectors) {
  const TreePtr vectors = LoadVectors("selector/label.json");
  if (vectors == nullptr) GTEST_SKIP() << "no vectors";
  testing::VectorReport report("selector");
  for (const Value test : vectors->root()["cases"].elements()) {
    testing::VectorReport::Case scope(report);
    const std::string_view text = test["selector"].str();
    const auto selector = LabelSelector::Parse(text);
    if (test["error"].exists()) {
      ASSERT_FALSE(selector.ok()) << text;
      EXPECT_EQ(selector.error().message, test["error"].str()) << text;
      continue;
    }
    ASSERT_TRUE(selector.ok()) << text << ": " << selector.error().message;
    EXPECT_EQ(selector->ToString(), test["string"].str());
    EXPECT_EQ(selector->empty(), test["empty"].boolean());
    ASSERT_EQ(selector->requirements().size(), test["requirements"].size()) << text;
    for (std::size_t i = 0; i < test["requirements"].size(); ++i) {
      const Value wanted = test["requirements"].at(i);
      const LabelRequirement& requirement = selector->requirements()[i];
      EXPECT_EQ(requirement.key, wanted["key"].str());
      EXPECT_EQ(LabelOperatorText(requirement.op), wanted["operator"].str());
      ASSERT_EQ(requirement.values.size(), wanted["values"].size());
      for (std::size_t j = 0; j < requirement.values.size(); ++j) {
        EXPECT_EQ(requirement.values[j], wanted["values"].at(j).str());
      }
    }
    ExpectMatches(*selector, test, vectors->root()["labelSets"]);
  }
}

TEST(LabelSelector, ObjectsAgreeWithTheVectors) {
  const TreePtr vectors = LoadVectors("selector/label_selector_object.json");
  if (vectors == nullptr) GTEST_SKIP() << "no vectors";
  testing::VectorReport report("selector");
  for (const Value test : vectors->root()["cases"].elements()) {
    testing::VectorReport::Case scope(report);
    const auto selector = LabelSelector::FromObject(test["labelSelector"]);
    if (test["formatted"].exists()) {
      EXPECT_EQ(FormatLabelSelector(test["labelSelector"]), test["formatted"].str());
    }
    if (test["error"].exists()) {
      ASSERT_FALSE(selector.ok()) << test["error"].str();
      EXPECT_EQ(selector.error().message, test["error"].str());
      continue;
    }
    ASSERT_TRUE(selector.ok()) << selector.error().message;
    EXPECT_EQ(selector->ToString(), test["string"].str());
    ExpectMatches(*selector, test, vectors->root()["labelSets"]);
  }
}

TEST(FieldSelector, AgreesWithTheVectors) {
  const TreePtr vectors = LoadVectors("selector/field.json");
  if (vectors == nullptr) GTEST_SKIP() << "no vectors";
  testing::VectorReport report("selector");
  for (const Value test : vectors->root()["cases"].elements()) {
    testing::VectorReport::Case scope(report);
    const std::string_view text = test["selector"].str();
    const auto selector = FieldSelector::Parse(text);
    if (test["error"].exists()) {
      ASSERT_FALSE(selector.ok()) << text;
      EXPECT_EQ(selector.error().message, test["error"].str()) << text;
      continue;
    }
    ASSERT_TRUE(selector.ok()) << text << ": " << selector.error().message;
    EXPECT_EQ(selector->ToString(), test["string"].str());
    EXPECT_EQ(selector->empty(), test["empty"].boolean());
    ASSERT_EQ(selector->requirements().size(), test["requirements"].size());
    for (std::size_t i = 0; i < selector->requirements().size(); ++i) {
      EXPECT_EQ(selector->requirements()[i].field, test["requirements"].at(i)["field"].str());
      EXPECT_EQ(selector->requirements()[i].value, test["requirements"].at(i)["value"].str());
    }
    const Value sets = vectors->root()["fieldSets"];
    for (std::size_t i = 0; i < sets.size(); ++i) {
      EXPECT_EQ(
          selector->Matches([&](std::string_view field) { return sets.at(i).Entry(field).str(); }),
          test["matches"].at(i).boolean())
          << text << " on set " << i;
    }
  }
}

TEST(FieldSelector, TellsTheValueAFieldMustHave) {
  const auto selector = FieldSelector::Parse("spec.nodeName=n1,metadata.name!=x");
  ASSERT_TRUE(selector.ok());
  EXPECT_EQ(selector->RequiresExactMatch("spec.nodeName"), "n1");
  EXPECT_EQ(selector->RequiresExactMatch("metadata.name"), std::nullopt);
}

TEST(LabelSelector, CanonicalTextIsReadBackAsTheSame) {
  for (const char* text : {"a", "!a", "a=1", "a==1", "a!=1", "a in (1,2)", "a notin (x)", "a>1",
                           "a<2", "b,a in (),c="}) {
    const auto selector = LabelSelector::Parse(text);
    ASSERT_TRUE(selector.ok()) << text;
    EXPECT_EQ(LabelSelector::Parse(selector->ToString())->ToString(), selector->ToString());
  }
}

}  // namespace
}  // namespace drakkar::api
