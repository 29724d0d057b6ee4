#include "api/meta/quantity.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "api/testing/vectors.h"
#include "base/text/text.h"
#include "tests/support/vector_report.h"

namespace drakkar::api {
namespace {

Quantity Must(std::string_view text) {
  Result<Quantity> quantity = Quantity::Parse(text);
  EXPECT_TRUE(quantity.ok()) << text;
  return quantity.ok() ? *quantity : Quantity();
}

double ReadFloat(std::string_view text) {
  return std::strtod(std::string(text).c_str(), nullptr);
}

void CheckParsed(Value c) {
  const std::string input(c["input"].str());
  SCOPED_TRACE(input);
  const Result<Quantity> parsed = Quantity::Parse(input);
  if (c["error"].exists()) {
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error().message, c["error"].str());
    return;
  }
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->ToString(), c["canonical"].str());
  EXPECT_EQ(QuantityFormatName(parsed->format()), c["format"].str());
  EXPECT_EQ(parsed->ToDecimalString(), c["decimal"].str());
  EXPECT_EQ(std::to_string(parsed->Value()), c["value"].str());
  EXPECT_EQ(std::to_string(parsed->MilliValue()), c["milliValue"].str());
  EXPECT_EQ(parsed->AsInt64().has_value(), c["asInt64OK"].boolean());
  if (c["asInt64"].exists() && parsed->AsInt64()) {
    EXPECT_EQ(std::to_string(*parsed->AsInt64()), c["asInt64"].str());
  }
  EXPECT_EQ(parsed->Sign(), c["sign"].integer());
  EXPECT_EQ(parsed->AsApproximateFloat(), ReadFloat(c["approxFloat64"].str()));
  for (const int scale : {-9, -6, -3, 0, 3, 6}) {
    const Value rounded = c.Entry("roundUp" + std::to_string(scale));
    Quantity copy = *parsed;
    EXPECT_EQ(copy.RoundUp(scale), rounded["exact"].boolean()) << scale;
    EXPECT_EQ(copy.ToString(), rounded["canonical"].str()) << scale;
  }
  Quantity negated = *parsed;
  negated.Negate();
  EXPECT_EQ(negated.ToString(), c["negated"].str());
}

TEST(QuantityVectors, ParsesAndPrintsEveryVectorLikeKubernetes) {
  testing::VectorReport report("quantity");
  for (const char* file : {"quantity/parse_matrix.json", "quantity/parse_edge.json"}) {
    const TreePtr vectors = LoadVectors(file);
    if (vectors == nullptr) GTEST_SKIP() << kNoVectors;
    for (const Value c : vectors->root().elements()) {
      testing::VectorReport::Case scope(report);
      CheckParsed(c);
    }
  }
}

TEST(QuantityVectors, ComparesAddsSubtractsAndMultipliesEveryPairLikeKubernetes) {
  const TreePtr vectors = LoadVectors("quantity/pairs.json");
  if (vectors == nullptr) GTEST_SKIP() << kNoVectors;
  testing::VectorReport report("quantity");
  for (const Value c : vectors->root().elements()) {
    testing::VectorReport::Case scope(report);
    SCOPED_TRACE(StrCat(c.Entry("a").str(), " and ", c.Entry("b").str()));
    const Quantity a = Must(c.Entry("a").str());
    const Quantity b = Must(c.Entry("b").str());
    EXPECT_EQ(a.Compare(b), c["cmp"].integer());
    EXPECT_EQ(a == b, c["equal"].boolean());
    Quantity sum = a;
    sum.Add(b);
    EXPECT_EQ(sum.ToString(), c["sum"].str());
    Quantity difference = a;
    difference.Subtract(b);
    EXPECT_EQ(difference.ToString(), c["difference"].str());
    if (c["cmpInt64"].exists()) {
      EXPECT_EQ(a.CompareInt64(*b.AsInt64()), c["cmpInt64"].integer());
    }
    if (c["product"].exists()) {
      Quantity product = a;
      EXPECT_EQ(product.Multiply(*b.AsInt64()), c["product"]["ok"].boolean());
      EXPECT_EQ(product.ToString(), c["product"]["value"].str());
    }
  }
}

TEST(QuantityVectors, ReadsJsonStringsAndNumbersLikeKubernetes) {
  const TreePtr vectors = LoadVectors("quantity/json.json");
  if (vectors == nullptr) GTEST_SKIP() << kNoVectors;
  testing::VectorReport report("quantity");
  for (const Value c : vectors->root().elements()) {
    testing::VectorReport::Case scope(report);
    SCOPED_TRACE(c["json"].str());
    const Result<Quantity> parsed = Quantity::ParseJson(c["json"].str());
    ASSERT_EQ(parsed.ok(), !c["error"].exists());
    if (!parsed.ok()) {
      EXPECT_EQ(parsed.error().message, c["error"].str());
      continue;
    }
    EXPECT_EQ(parsed->ToString(), c["canonical"].str());
    EXPECT_EQ(QuantityFormatName(parsed->format()), c["format"].str());
    EXPECT_EQ("\"" + parsed->ToString() + "\"", c["reencoded"].str());
  }
}

TEST(QuantityVectors, PrintsNumbersInTheFormatAskedFor) {
  const TreePtr vectors = LoadVectors("quantity/from_number.json");
  if (vectors == nullptr) GTEST_SKIP() << kNoVectors;
  testing::VectorReport report("quantity");
  for (const Value c : vectors->root().elements()) {
    testing::VectorReport::Case scope(report);
    SCOPED_TRACE(StrCat(c["number"].str(), " ", c["format"].str()));
    const Quantity::Format format = c["format"].str() == "BinarySI" ? Quantity::Format::kBinarySI
                                    : c["format"].str() == "DecimalSI"
                                        ? Quantity::Format::kDecimalSI
                                        : Quantity::Format::kDecimalExponent;
    EXPECT_EQ(Quantity(*ParseInt64(c["number"].str()), format).ToString(), c["canonical"].str());
    EXPECT_EQ(Quantity::FromMilli(*ParseInt64(c["number"].str()), format).ToString(),
              c["milliCanonical"].str());
  }
}

TEST(Quantity, ComparesNumbersOfVeryDifferentSizeWithoutExpandingThem) {
  EXPECT_LT(Must("1"), Must("1e2000000000"));
  EXPECT_GT(Must("1"), Must("-1e2000000000"));
  EXPECT_EQ(Must("1e2000000000"), Must("10e1999999999"));
}

TEST(Quantity, RefusesWhatWouldNeedMoreDigitsThanTheBound) {
  EXPECT_FALSE(Quantity::Parse(std::string(5'000, '9')).ok());
  EXPECT_FALSE(Quantity::Parse("1234567890123456789e2000000000").ok());
  EXPECT_EQ(Must("1e-2147483648"), Must("1n"));
}

TEST(Quantity, AddingNumbersFartherApartThanTheBoundKeepsTheLarger) {
  Quantity sum = Must("1e100000");
  sum.Add(Must("1"));
  EXPECT_EQ(sum, Must("1e100000"));
}

TEST(Quantity, KeepsItsTextUntilItIsChanged) {
  Quantity quantity = Must("+1");
  EXPECT_EQ(quantity.ToString(), "+1");
  quantity.Add(Must("0"));
  EXPECT_EQ(quantity.ToString(), "1");
  EXPECT_EQ(Must("+1"), Must("1"));
}

}  // namespace
}  // namespace drakkar::api
