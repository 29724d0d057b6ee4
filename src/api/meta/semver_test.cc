#include "api/meta/semver.h"

#include <gtest/gtest.h>

#include "tests/support/mini_json.h"
#include "tests/support/vector_report.h"

namespace drakkar::api {
namespace {

using testing::Json;
using testing::ReadJsonFile;

void CheckParse(const Result<Semver>& parsed, const Json& expected) {
  if (expected.Has("error")) {
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error().message, expected["error"].text);
    return;
  }
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->ToString(), expected["string"].text);
  EXPECT_EQ(std::to_string(parsed->major), expected["major"].text);
  EXPECT_EQ(std::to_string(parsed->minor), expected["minor"].text);
  EXPECT_EQ(std::to_string(parsed->patch), expected["patch"].text);
}

TEST(SemverVectors, ParsesStrictlyAndNormalizedLikeKubernetes) {
  SKIP_WITHOUT_VECTORS(directory);
  testing::VectorReport report("semver");
  for (const Json& c : ReadJsonFile(directory + "/semver/parse.json").items) {
    testing::VectorReport::Case scope(report);
    SCOPED_TRACE(c["input"].text);
    CheckParse(Semver::Parse(c["input"].text), c["strict"]);
    CheckParse(Semver::ParseNormalized(c["input"].text), c["normalized"]);
  }
}

TEST(SemverVectors, ComparesEveryPairLikeKubernetes) {
  SKIP_WITHOUT_VECTORS(directory);
  testing::VectorReport report("semver");
  for (const Json& c : ReadJsonFile(directory + "/semver/compare.json").items) {
    testing::VectorReport::Case scope(report);
    SCOPED_TRACE(c["a"].text + " and " + c["b"].text);
    const Result<Semver> a = Semver::Parse(c["a"].text);
    const Result<Semver> b = Semver::Parse(c["b"].text);
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(a->Compare(*b), c["compare"].AsInt());
    EXPECT_EQ(*a == *b, c["equal"].boolean);
    EXPECT_EQ(a->Compare(*b) < 0, c["less"].boolean);
    EXPECT_EQ(a->Compare(*b) > 0, c["greater"].boolean);
  }
}

TEST(Semver, BuildMetadataDoesNotOrder) {
  EXPECT_EQ(*Semver::Parse("1.0.0+a"), *Semver::Parse("1.0.0+b"));
}

}  // namespace
}  // namespace drakkar::api
