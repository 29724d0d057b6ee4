#include "apiserver/validation/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drakkar::apiserver {
namespace {

using api::FieldError;
using api::FieldPath;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Texts(const api::FieldErrors& errors) {
  std::vector<std::string> texts;
  for (const FieldError& error : errors) texts.push_back(error.ToString());
  return texts;
}
FieldError Long(const std::string& field) {
  return FieldError::TooLong(FieldPath(field), 5);
}
FieldError Bad(const std::string& field, const std::string& why) {
  return FieldError::Invalid(FieldPath(field), "x", why);
}

TEST(Findings, ADeclaredRuleReplacesTheHandWrittenErrorItCovers) {
  Findings handwritten, declared;
  handwritten.Add(Bad("a", "by hand"), "format=x", Covered::kYes);
  declared.AddDeclared(Bad("a", "declared"), "format=x", true);
  EXPECT_THAT(Texts(MergeFindings(handwritten, declared, true)),
              ElementsAre("a: Invalid value: \"x\": declared"));
}

TEST(Findings, OtherErrorsAreNotReplaced) {
  const auto merged = [](FieldError by_hand, std::string_view origin, Covered covered, bool beta) {
    Findings handwritten, declared;
    handwritten.Add(std::move(by_hand), origin, covered);
    declared.AddDeclared(Bad("a", "declared"), "format=x", beta);
    return MergeFindings(handwritten, declared, true).size();
  };
  EXPECT_EQ(merged(Bad("a", "by hand"), "format=x", Covered::kYes, true), 1u);
  EXPECT_EQ(merged(Bad("a", "by hand"), "format=x", Covered::kNo, true), 2u) << "not covered";
  EXPECT_EQ(merged(Bad("b", "by hand"), "format=x", Covered::kYes, true), 2u) << "another field";
  EXPECT_EQ(merged(Bad("a", "by hand"), "format=y", Covered::kYes, true), 2u) << "another rule";
  EXPECT_EQ(merged(Bad("a", "by hand"), "", Covered::kYes, true), 2u) << "no rule";
  EXPECT_EQ(merged(Long("a"), "format=x", Covered::kYes, true), 2u) << "another type of error";
  EXPECT_EQ(merged(Bad("a", "by hand"), "format=x", Covered::kYes, false), 2u) << "not beta";
}

TEST(Findings, ErrorsOtherThanInvalidNeedNoRuleToBeTheSame) {
  Findings handwritten, declared;
  handwritten.Add(FieldError::Required(FieldPath("a"), "by hand"), {}, Covered::kYes);
  declared.AddDeclared(FieldError::Required(FieldPath("a"), "declared"), {}, true);
  EXPECT_THAT(Texts(MergeFindings(handwritten, declared, true)),
              ElementsAre("a: Required value: declared"));
}

TEST(Findings, DeclaredRulesOfTheBetaLevelCanBeOff) {
  Findings handwritten, declared;
  handwritten.Add(Bad("a", "by hand"), "format=x", Covered::kYes);
  declared.AddDeclared(Bad("a", "declared"), "format=x", true);
  declared.AddDeclared(Bad("b", "always"), "format=x", false);
  EXPECT_THAT(Texts(MergeFindings(handwritten, declared, false)),
              ElementsAre("a: Invalid value: \"x\": by hand", "b: Invalid value: \"x\": always"));
}

TEST(Findings, OnlyDeclaredErrorsHaveThePathsOfTheClientsVersion) {
  Findings handwritten, declared;
  handwritten.Add(Bad("spec.devices.requests[0].exactly.count", "by hand"));
  declared.AddDeclared(Bad("spec.devices.requests[1].exactly.count", "declared"), "x", false);
  EXPECT_THAT(Texts(MergeFindings(handwritten, declared, true, "v1beta1")),
              ElementsAre("spec.devices.requests[0].exactly.count: Invalid value: \"x\": by hand",
                          "spec.devices.requests[1].count: Invalid value: \"x\": declared"));
  EXPECT_THAT(
      Texts(MergeFindings({}, declared, true, "v1beta2")),
      ElementsAre("spec.devices.requests[1].exactly.count: Invalid value: \"x\": declared"));
}

TEST(Findings, PathsInV1beta1HaveNoExactlyAndBasicDevices) {
  const std::pair<const char*, const char*> paths[] = {
      {"spec.devices.requests[12].exactly.count", "spec.devices.requests[12].count"},
      {"spec.devices.requests[0].exactly", "spec.devices.requests[0]"},
      {"spec.spec.devices.requests[0].exactly.count", "spec.spec.devices.requests[0].count"},
      {"spec.devices.requests[0].name", "spec.devices.requests[0].name"},
      {"spec.devices.requests[x].exactly", "spec.devices.requests[x].exactly"},
      {"spec.devices.requests[].exactly", "spec.devices.requests[].exactly"},
      {"spec.devices.requests[0", "spec.devices.requests[0"},
      {"spec.devices.requests", "spec.devices.requests"},
      {"spec.devices[3].attributes", "spec.devices[3].basic.attributes"},
      {"spec.devices[3].name", "spec.devices[3].name"},
      {"spec.devices[3].names", "spec.devices[3].basic.names"},
      {"spec.devices[3]", "spec.devices[3]"},
      {"spec.devices", "spec.devices"},
      {"spec.pool.devices[3].x", "spec.pool.devices[3].x"},
  };
  for (const auto& [path, expected] : paths) EXPECT_EQ(PathInV1beta1(path), expected);
}

TEST(Findings, BeyondTheLimitErrorsAreOnlyCounted) {
  Findings found;
  for (std::size_t i = 0; i < Findings::kMaxKept + 3; ++i) found.Add(Long("a"));
  EXPECT_EQ(found.list().size(), Findings::kMaxKept);
  EXPECT_EQ(found.dropped(), 3u);
  EXPECT_EQ(PlainErrors(found).size(), Findings::kMaxKept + 3);
  EXPECT_EQ(MergeFindings(found, found, true).size(), 2 * (Findings::kMaxKept + 3));
  Findings all;
  all.Append(found);
  EXPECT_EQ(all.dropped(), 3u);
  EXPECT_FALSE(all.empty());
  EXPECT_THAT(Texts(PlainErrors({})), IsEmpty());
}

}  // namespace
}  // namespace drakkar::apiserver
