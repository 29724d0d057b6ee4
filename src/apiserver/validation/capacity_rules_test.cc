#include "apiserver/validation/capacity_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Errors(std::string_view policy, bool fractions = true,
                                std::string_view total = "10", bool several = true) {
  Findings found;
  const auto tree =
      api::ParseJson(StrCat(R"({"value":")", total, R"(","requestPolicy":)", policy, "}"));
  CheckCapacity(found, api::FieldPath("c"), (*tree)->root(), several, fractions);
  std::vector<std::string> texts;
  for (const Finding& finding : found.list()) texts.push_back(finding.error.ToString());
  return texts;
}

// "2 1 8 1": default, min, max and step; "-" leaves one out.
std::string Range(std::string_view amounts) {
  const char* names[] = {"default", "min", "max", "step"};
  std::string standard, range;
  std::size_t at = 0;
  for (const std::string_view amount : Split(amounts, ' ')) {
    const std::string_view name = names[at++];
    if (amount == "-") continue;
    std::string& text = name == "default" ? standard : range;
    text += StrCat(text.empty() ? "" : ",", "\"", name, "\":\"", amount, "\"");
  }
  return StrCat("{", standard, standard.empty() ? "" : ",", "\"validRange\":{", range, "}}");
}

std::string Values(std::string_view standard, std::string_view values) {
  std::string list;
  for (const std::string_view value : Split(values, ' ')) {
    list += StrCat(list.empty() ? "" : ",", "\"", value, "\"");
  }
  return StrCat("{", standard.empty() ? "" : StrCat("\"default\":\"", standard, "\","),
                "\"validValues\":[", list, "]}");
}

TEST(CapacityRules, OnlyDevicesForSeveralClaimsHaveARequestPolicy) {
  EXPECT_THAT(Errors(Range("1 1 - -"), true, "10", false),
              ElementsAre("c.requestPolicy: Forbidden: allowMultipleAllocations must be true"));
  Findings found;
  const auto tree = api::ParseJson(R"({"value":"10"})");
  CheckCapacity(found, api::FieldPath("c"), (*tree)->root(), false, true);
  EXPECT_TRUE(found.empty()) << "a capacity without a policy";
}

TEST(CapacityRules, APolicyIsEitherValuesOrARange) {
  EXPECT_THAT(
      Errors(R"({"default":"1","validValues":["1"],"validRange":{"min":"1"}})"),
      ElementsAre("c.requestPolicy: Forbidden: exactly one policy can be specified, cannot specify "
                  "\"validValues\" and \"validRange\" at the same time"));
  EXPECT_THAT(Errors(R"({"default":"1","validValues":[],"validRange":{"min":"1"}})"), IsEmpty());
  EXPECT_THAT(Errors(R"({"default":"100"})"), IsEmpty()) << "a default alone is not checked";
}

TEST(CapacityRules, ValuesNeedADefaultAmongThem) {
  EXPECT_THAT(
      Errors(Values("", "1 2")),
      ElementsAre("c.requestPolicy.default: Required value: required when validValues is defined"));
  EXPECT_THAT(Errors(Values("2", "1 2 10")), IsEmpty());
  EXPECT_THAT(Errors(Values("3", "1 2")),
              ElementsAre("c.requestPolicy.validValues: Invalid value: \"3\": default value is not "
                          "valid according to the requestPolicy"));
}

TEST(CapacityRules, ValuesAreSortedUniqueWithinTheCapacityAndAtMostTen) {
  EXPECT_THAT(Errors(Values("1", "2 1")),
              ElementsAre("c.requestPolicy.validValues[1]: Invalid value: \"1\": values must be "
                          "sorted in ascending order"));
  EXPECT_THAT(Errors(Values("1", "1 11")),
              ElementsAre("c.requestPolicy.validValues[1]: Invalid value: \"11\": option is larger "
                          "than capacity value: 10"));
  EXPECT_THAT(Errors(Values("1", "1 1")),
              ElementsAre("c.requestPolicy.validValues[1]: Duplicate value: \"1\""));
  EXPECT_THAT(Errors(Values("1", "1 2 3 4 5 6 7 8 9 10")), IsEmpty());
  const auto many = Errors(Values("1", "1 2 3 4 5 6 7 8 9 10 11"));
  ASSERT_EQ(many.size(), 2u) << "the values are not looked at";
  EXPECT_EQ(many[0], "c.requestPolicy.validValues: Too many: 11: must have at most 10 items");
}

TEST(CapacityRules, WithoutFractionsValuesAreComparedAsWholeNumbersRoundedUp) {
  EXPECT_THAT(Errors(Values("500m", "500m 1"), true), IsEmpty());
  EXPECT_THAT(Errors(Values("500m", "500m 1"), false),
              ElementsAre("c.requestPolicy.validValues[1]: Duplicate value: \"1\""));
}

TEST(CapacityRules, ARangeNeedsDefaultAndMin) {
  EXPECT_THAT(
      Errors(Range("- 1 - -")),
      ElementsAre("c.requestPolicy.default: Required value: required when validRange is defined"));
  EXPECT_THAT(Errors(Range("1 - - -")),
              ElementsAre("c.requestPolicy.validRange.min: Required value: required when "
                          "validRange is defined"));
  EXPECT_THAT(Errors(Range("1 1 - -")), IsEmpty());
}

TEST(CapacityRules, ARangeAndItsDefaultLieWithinTheCapacity) {
  EXPECT_THAT(Errors(Range("10 10 10 -")), IsEmpty()) << "each bound is included";
  EXPECT_THAT(Errors(Range("11 11 - -")),
              ElementsAre("c.requestPolicy.validRange.min: Invalid value: \"11\": min is larger "
                          "than capacity value: 10"));
  EXPECT_THAT(Errors(Range("1 2 - -")),
              ElementsAre("c.requestPolicy.validRange.default: Invalid value: \"1\": default is "
                          "less than min: 2"));
  EXPECT_THAT(Errors(Range("2 2 11 -")),
              ElementsAre("c.requestPolicy.validRange.max: Invalid value: \"11\": max is larger "
                          "than capacity value: 10"));
  EXPECT_THAT(Errors(Range("4 2 3 -")),
              ElementsAre("c.requestPolicy.validRange.default: Invalid value: \"4\": default is "
                          "more than max: 3"));
  EXPECT_THAT(Errors(Range("4 4 3 -")),
              ElementsAre("c.requestPolicy.validRange.max: Invalid value: \"4\": min is larger "
                          "than max: 3",
                          "c.requestPolicy.validRange.default: Invalid value: \"4\": default is "
                          "more than max: 3"));
}

TEST(CapacityRules, StepsArePositiveAndLeadToDefaultAndMax) {
  EXPECT_THAT(Errors(Range("4 2 8 2")), IsEmpty());
  EXPECT_THAT(Errors(Range("2 2 - 2")), IsEmpty());
  EXPECT_THAT(Errors(Range("4 2 8 0")), ElementsAre("c.requestPolicy.validRange.step: Invalid "
                                                    "value: \"0\": must be greater than zero"));
  EXPECT_THAT(Errors(Range("4 2 8 -1")), ElementsAre("c.requestPolicy.validRange.step: Invalid "
                                                     "value: \"-1\": must be greater than zero"));
  EXPECT_THAT(Errors(Range("3 2 8 2")),
              ElementsAre("c.requestPolicy.validRange.step: Invalid value: \"3\": value is not a "
                          "multiple of a given step (2) from (2)"));
  EXPECT_THAT(Errors(Range("4 2 7 2")),
              ElementsAre("c.requestPolicy.validRange.step: Invalid value: \"7\": value is not a "
                          "multiple of a given step (2) from (2)"));
  EXPECT_THAT(Errors(Range("2 2 - 8")), IsEmpty()) << "one step is all there is";
  EXPECT_THAT(Errors(Range("2 2 - 9")),
              ElementsAre("c.requestPolicy.validRange.step: Invalid value: \"9\": one step 11 is "
                          "larger than capacity value: 10"));
}

TEST(CapacityRules, WithStepsWholeAmountsFitAnInt64) {
  EXPECT_THAT(Errors(Range("-1 -1 - 1")),
              ElementsAre("c.requestPolicy.validRange.default: Invalid value: \"-1\": must be "
                          "greater than or equal to 0",
                          "c.requestPolicy.validRange.min: Invalid value: \"-1\": must be greater "
                          "than or equal to 0"));
  EXPECT_THAT(Errors(Range("0 0 - 1")), IsEmpty());
  EXPECT_THAT(Errors(Range("-1 -1 - -")), IsEmpty()) << "nothing is counted without a step";
  const std::string most = "9223372036854775807";
  EXPECT_THAT(Errors(Range(StrCat(most, " 0 ", most, " 1")), true, most), IsEmpty());
  EXPECT_THAT(Errors(Range("10E 0 - 10E"), true, "10E"),
              ElementsAre("c.requestPolicy.validRange.default: Invalid value: \"10E\": must not be "
                          "larger than 9223372036854775807",
                          "c.requestPolicy.validRange.step: Invalid value: \"10E\": must not be "
                          "larger than 9223372036854775807"));
}

TEST(CapacityRules, FractionsAreCountedInThousandths) {
  EXPECT_THAT(Errors(Range("500m 250m 1 250m")), IsEmpty());
  EXPECT_THAT(Errors(Range("600m 250m 1 250m")),
              ElementsAre("c.requestPolicy.validRange.step: Invalid value: \"600m\": value is not "
                          "a multiple of a given step (250m) from (250m)"));
  EXPECT_THAT(Errors(Range("1 1 2 1u")),
              ElementsAre("c.requestPolicy.validRange.step: Invalid value: \"1u\": value cannot be "
                          "represented as a milli value"));
}

TEST(CapacityRules, WithTheGateOffFractionsAreRoundedUpToWholeNumbers) {
  // 250m, 500m and 600m all count as one, so every amount is a whole number of steps away.
  EXPECT_THAT(Errors(Range("600m 250m 1 250m"), false), IsEmpty());
  EXPECT_THAT(Errors(Range("1500m 500m - 2"), false),
              ElementsAre("c.requestPolicy.validRange.step: Invalid value: \"1500m\": value is not "
                          "a multiple of a given step (2) from (500m)"));
  EXPECT_THAT(Errors(Range("2500m 500m - 2"), false), IsEmpty()) << "from 1 to 3 in one step";
}

}  // namespace
}  // namespace drakkar::apiserver
