#include "api/meta/quantity.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/support/mini_json.h"
#include "tests/support/vector_report.h"

namespace drakkar::api {
namespace {

using testing::Json;
using testing::ReadJsonFile;

Quantity Must(std::string_view text) {
  Result<Quantity> quantity = Quantity::Parse(text);
  EXPECT_TRUE(quantity.ok()) << text;
  return quantity.ok() ? *quantity : Quantity();
}

double ReadFloat(const std::string& text) {
  return std::strtod(text.c_str(), nullptr);
}

void CheckParsed(const Json& c) {
  const std::string& input = c["input"].text;
  SCOPED_TRACE(input);
  const Result<Quantity> parsed = Quantity::Parse(input);
  if (c.Has("error")) {
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error().message, c["error"].text);
    return;
  }
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->ToString(), c["canonical"].text);
  EXPECT_EQ(QuantityFormatName(parsed->format()), c["format"].text);
  EXPECT_EQ(parsed->ToDecimalString(), c["decimal"].text);
  EXPECT_EQ(std::to_string(parsed->Value()), c["value"].text);
  EXPECT_EQ(std::to_string(parsed->MilliValue()), c["milliValue"].text);
  EXPECT_EQ(parsed->AsInt64().has_value(), c["asInt64OK"].boolean);
  if (c.Has("asInt64") && parsed->AsInt64()) {
    EXPECT_EQ(std::to_string(*parsed->AsInt64()), c["asInt64"].text);
  }
  EXPECT_EQ(parsed->Sign(), c["sign"].AsInt());
  EXPECT_EQ(parsed->AsApproximateFloat(), ReadFloat(c["approxFloat64"].text));
  for (const int scale : {-9, -6, -3, 0, 3, 6}) {
    const Json& rounded = c["roundUp" + std::to_string(scale)];
    Quantity copy = *parsed;
    EXPECT_EQ(copy.RoundUp(scale), rounded["exact"].boolean) << scale;
    EXPECT_EQ(copy.ToString(), rounded["canonical"].text) << scale;
  }
  Quantity negated = *parsed;
  negated.Negate();
  EXPECT_EQ(negated.ToString(), c["negated"].text);
}

TEST(QuantityVectors, ParsesAndPrintsEveryVectorLikeKubernetes) {
  SKIP_WITHOUT_VECTORS(directory);
  testing::VectorReport report("quantity");
  for (const char* file : {"/quantity/parse_matrix.json", "/quantity/parse_edge.json"}) {
    for (const Json& c : ReadJsonFile(directory + file).items) {
      testing::VectorReport::Case scope(report);
      CheckParsed(c);
    }
  }
}

TEST(QuantityVectors, ComparesAddsSubtractsAndMultipliesEveryPairLikeKubernetes) {
  SKIP_WITHOUT_VECTORS(directory);
  testing::VectorReport report("quantity");
  for (const Json& c : ReadJsonFile(directory + "/quantity/pairs.json").items) {
    testing::VectorReport::Case scope(report);
    SCOPED_TRACE(c["a"].text + " and " + c["b"].text);
    const Quantity a = Must(c["a"].text);
    const Quantity b = Must(c["b"].text);
    EXPECT_EQ(a.Compare(b), c["cmp"].AsInt());
    EXPECT_EQ(a == b, c["equal"].boolean);
    Quantity sum = a;
    sum.Add(b);
    EXPECT_EQ(sum.ToString(), c["sum"].text);
    Quantity difference = a;
    difference.Subtract(b);
    EXPECT_EQ(difference.ToString(), c["difference"].text);
    if (c.Has("cmpInt64")) {
      EXPECT_EQ(a.CompareInt64(*b.AsInt64()), c["cmpInt64"].AsInt());
    }
    if (c.Has("product")) {
      Quantity product = a;
      EXPECT_EQ(product.Multiply(*b.AsInt64()), c["product"]["ok"].boolean);
      EXPECT_EQ(product.ToString(), c["product"]["value"].text);
    }
  }
}

TEST(QuantityVectors, ReadsJsonStringsAndNumbersLikeKubernetes) {
  SKIP_WITHOUT_VECTORS(directory);
  testing::VectorReport report("quantity");
  for (const Json& c : ReadJsonFile(directory + "/quantity/json.json").items) {
    testing::VectorReport::Case scope(report);
    SCOPED_TRACE(c["json"].text);
    const Result<Quantity> parsed = Quantity::ParseJson(c["json"].text);
    ASSERT_EQ(parsed.ok(), !c.Has("error"));
    if (!parsed.ok()) {
      EXPECT_EQ(parsed.error().message, c["error"].text);
      continue;
    }
    EXPECT_EQ(parsed->ToString(), c["canonical"].text);
    EXPECT_EQ(QuantityFormatName(parsed->format()), c["format"].text);
    EXPECT_EQ("\"" + parsed->ToString() + "\"", c["reencoded"].text);
  }
}

TEST(QuantityVectors, PrintsNumbersInTheFormatAskedFor) {
  SKIP_WITHOUT_VECTORS(directory);
  testing::VectorReport report("quantity");
  for (const Json& c : ReadJsonFile(directory + "/quantity/from_number.json").items) {
    testing::VectorReport::Case scope(report);
    SCOPED_TRACE(c["number"].text + " " + c["format"].text);
    const Quantity::Format format = c["format"].text == "BinarySI" ? Quantity::Format::kBinarySI
                                    : c["format"].text == "DecimalSI"
                                        ? Quantity::Format::kDecimalSI
                                        : Quantity::Format::kDecimalExponent;
    EXPECT_EQ(Quantity(c["number"].AsInt(), format).ToString(), c["canonical"].text);
    EXPECT_EQ(Quantity::FromMilli(c["number"].AsInt(), format).ToString(),
              c["milliCanonical"].text);
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
