#include "api/meta/field_error.h"

#include <gtest/gtest.h>

#include "api/tree/draft.h"
#include "base/exec/work_budget.h"

namespace drakkar::api {
namespace {

TEST(FieldPath, IsBuiltFromNamesIndicesAndKeys) {
  EXPECT_EQ(FieldPath("spec").Child("devices").Index(2).Child("attributes").Key("a/b").text(),
            "spec.devices[2].attributes[a/b]");
  EXPECT_EQ(FieldPath().Child("spec").text(), "spec");
}

TEST(FieldPath, MayBeOfAnyLength) {
  FieldPath path;
  std::string text;
  for (int i = 0; i < 100; ++i) {
    const FieldPath before = path;
    EXPECT_EQ(before, path);
    path = path.Child("field").Index(static_cast<std::size_t>(i));
    text += (i == 0 ? "field[" : ".field[") + std::to_string(i) + "]";
    ASSERT_EQ(path.text(), text);
    ASSERT_FALSE(path == before);
  }
  path = FieldPath("short");
  EXPECT_EQ(path.text(), "short");
}

TEST(FieldError, IsRenderedAsKubernetesRendersIt) {
  const FieldPath path("spec.x");
  EXPECT_EQ(FieldError::Required(path, "").ToString(), "spec.x: Required value");
  EXPECT_EQ(FieldError::Required(path, "name it").ToString(), "spec.x: Required value: name it");
  EXPECT_EQ(FieldError::Invalid(path, "a\"b", "no").ToString(),
            R"(spec.x: Invalid value: "a\"b": no)");
  EXPECT_EQ(FieldError::Invalid(path, 5, "no").ToString(), "spec.x: Invalid value: 5: no");
  EXPECT_EQ(FieldError::Invalid(path, nullptr, "no").ToString(), "spec.x: Invalid value: null: no");
  EXPECT_EQ(FieldError::Invalid(path, BadValue::Omitted(), "no").ToString(),
            "spec.x: Invalid value: no");
  EXPECT_EQ(FieldError::Duplicate(path, "a").ToString(), R"(spec.x: Duplicate value: "a")");
  EXPECT_EQ(FieldError::NotSupported(path, "c", {"b", "a"}).ToString(),
            R"(spec.x: Unsupported value: "c": supported values: "a", "b")");
  EXPECT_EQ(FieldError::Forbidden(path, "why").ToString(), "spec.x: Forbidden: why");
  EXPECT_EQ(FieldError::TooLong(path, 63).ToString(),
            "spec.x: Too long: may not be more than 63 bytes");
  EXPECT_EQ(FieldError::TooMany(path, 9, 8).ToString(),
            "spec.x: Too many: 9: must have at most 8 items");
  EXPECT_EQ(FieldError::NotFound(path, "n").ToString(), R"(spec.x: Not found: "n")");
  EXPECT_EQ(FieldError::Internal(path, "oops").ToString(), "spec.x: Internal error: oops");
  const TreePtr tree = Draft::Map({{"a", 1}}).Freeze();
  EXPECT_EQ(FieldError::Invalid(path, tree->root(), "no").ToString(),
            R"(spec.x: Invalid value: {"a":1}: no)");
}

TEST(FieldError, SeveralAreJoinedAndRepeatedOnesShownOnce) {
  const FieldError a = FieldError::Required(FieldPath("a"), "");
  const FieldError b = FieldError::Forbidden(FieldPath("b"), "x");
  EXPECT_EQ(JoinFieldErrors({a}), "a: Required value");
  EXPECT_EQ(JoinFieldErrors({a, b, a}), "[a: Required value, b: Forbidden: x]");
  EXPECT_EQ(JoinFieldErrors({a, a}), "a: Required value");
}

TEST(FieldError, PastAHundredOnlyTheirNumberIsTold) {
  FieldErrors errors;
  for (std::size_t i = 0; i < 300'000; ++i) {
    errors.push_back(FieldError::Required(FieldPath("a").Index(i), ""));
  }
  const std::string text = JoinFieldErrors(errors);
  EXPECT_TRUE(text.ends_with(", a[99]: Required value, and 299900 more errors]"))
      << text.substr(text.size() - 80);
}

TEST(FieldError, OnlySomeAreKeptAndTheOthersCounted) {
  FieldErrors errors;
  for (std::size_t i = 0; i < 10'000; ++i) {
    errors.push_back(FieldError::Required(FieldPath("a").Index(i), ""));
  }
  EXPECT_EQ(errors.size(), 10'000u);
  EXPECT_EQ(errors.dropped(), 10'000u - FieldErrors::kMaxKept);
  FieldErrors more = {errors[0]};
  more.Append(errors);
  EXPECT_EQ(more.size(), 10'001u);
  EXPECT_EQ(more.dropped(), 10'001u - FieldErrors::kMaxKept);
}

TEST(FieldError, LargeValuesAreCut) {
  const std::string large(1 << 20, 'x');
  EXPECT_EQ(BadValue(large).text, large.substr(0, BadValue::kMaxBytes) + "...");
  Draft list = Draft::Array();
  for (int i = 0; i < 10'000; ++i) list.Append("aaaa");
  EXPECT_EQ(BadValue(list.Freeze()->root()).text.size(), BadValue::kMaxBytes + 3);
  FieldErrors errors;
  for (std::size_t i = 0; i < 300; ++i) {
    errors.push_back(FieldError::Invalid(FieldPath("a").Index(i), large, "no"));
  }
  EXPECT_LT(JoinFieldErrors(errors).size(), 128u * 1024);
}

TEST(FieldError, ErrorsPastTheWorkBudgetAreOnlyCounted) {
  const WorkBudget budget(5 * static_cast<std::int64_t>(FieldErrors::kStepsPerError));
  FieldErrors errors;
  for (std::size_t i = 0; i < 20; ++i) {
    errors.push_back(FieldError::Invalid(FieldPath("a").Index(i), "x", "no"));
  }
  EXPECT_EQ(errors.size(), 20u);
  EXPECT_EQ(errors.dropped(), 15u);
  EXPECT_EQ(BadValue("large").text, "");
}

}  // namespace
}  // namespace drakkar::api
