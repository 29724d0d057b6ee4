#include "api/meta/semver.h"

#include <gtest/gtest.h>

#include "api/testing/vectors.h"
#include "base/text/text.h"
#include "tests/support/vector_report.h"

namespace drakkar::api {
namespace {

void CheckParse(const Result<Semver>& parsed, Value expected) {
  if (expected["error"].exists()) {
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error().message, expected["error"].str());
    return;
  }
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->ToString(), expected["string"].str());
  EXPECT_EQ(static_cast<double>(parsed->major), expected["major"].number(-1));
  EXPECT_EQ(static_cast<double>(parsed->minor), expected["minor"].number(-1));
  EXPECT_EQ(static_cast<double>(parsed->patch), expected["patch"].number(-1));
}

TEST(SemverVectors, ParsesStrictlyAndNormalizedLikeKubernetes) {
  const TreePtr vectors = LoadVectors("semver/parse.json");
  if (vectors == nullptr) GTEST_SKIP() << kNoVectors;
  testing::VectorReport report("semver");
  for (const Value c : vectors->root().elements()) {
    testing::VectorReport::Case scope(report);
    SCOPED_TRACE(c["input"].str());
    CheckParse(Semver::Parse(c["input"].str()), c["strict"]);
    CheckParse(Semver::ParseNormalized(c["input"].str()), c["normalized"]);
  }
}

TEST(SemverVectors, ComparesEveryPairLikeKubernetes) {
  const TreePtr vectors = LoadVectors("semver/compare.json");
  if (vectors == nullptr) GTEST_SKIP() << kNoVectors;
  testing::VectorReport report("semver");
  for (const Value c : vectors->root().elements()) {
    testing::VectorReport::Case scope(report);
    SCOPED_TRACE(StrCat(c.Entry("a").str(), " and ", c.Entry("b").str()));
    const Result<Semver> a = Semver::Parse(c.Entry("a").str());
    const Result<Semver> b = Semver::Parse(c.Entry("b").str());
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(a->Compare(*b), c["compare"].integer());
    EXPECT_EQ(*a == *b, c["equal"].boolean());
    EXPECT_EQ(a->Compare(*b) < 0, c["less"].boolean());
    EXPECT_EQ(a->Compare(*b) > 0, c["greater"].boolean());
  }
}

TEST(Semver, BuildMetadataDoesNotOrder) {
  EXPECT_EQ(*Semver::Parse("1.0.0+a"), *Semver::Parse("1.0.0+b"));
}

}  // namespace
}  // namespace drakkar::api
