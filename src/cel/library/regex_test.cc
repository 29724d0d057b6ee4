#include "cel/library/regex.h"

#include <gtest/gtest.h>

#include <string>

#include "base/exec/work_budget.h"
#include "cel/library/pattern.h"

namespace drakkar::cel::library {
namespace {

constexpr std::int64_t kSteps = 20'000'000;
// The states of this pattern do not fit the memory it gets: a byte takes ten microseconds.
constexpr char kManyStates[] = "(a|b)*a(a|b){900}c";

std::string Letters(std::size_t count) {
  std::string text;
  unsigned random = 1;
  for (std::size_t i = 0; i < count; ++i) {
    random = random * 1103515245 + 12345;
    text += (random >> 16) % 2 == 0 ? 'a' : 'b';
  }
  return text;
}

Value Find(std::string_view text, std::string_view pattern, Arena& arena) {
  CallContext context{arena};
  const Value args[] = {NewString(arena, text), NewString(arena, pattern)};
  return MatchesRegex(context, args);
}

TEST(Regex, OrdinaryPatternsCostLittle) {
  const WorkBudget budget(kSteps);
  const auto pattern = Pattern::Compile("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$");
  ASSERT_NE(pattern, nullptr);
  EXPECT_EQ(pattern->Matches("a-name"), true);
  EXPECT_EQ(pattern->Matches("A"), false);
  EXPECT_EQ(pattern->Matches(std::string(1'000'000, 'a')), true);
  EXPECT_LT(budget.used(), 2'500'000);
}

TEST(Regex, ATextThatWouldTakeSecondsIsRefused) {
  const auto pattern = Pattern::Compile(kManyStates);
  ASSERT_NE(pattern, nullptr);
  const WorkBudget budget(kSteps);
  EXPECT_EQ(pattern->Matches(Letters(100'000)), std::nullopt);
  EXPECT_TRUE(WorkBudget::IsExceeded());
}

TEST(Regex, SlowMatchesUseUpTheBudget) {
  const auto pattern = Pattern::Compile(kManyStates);
  ASSERT_NE(pattern, nullptr);
  const std::string text = Letters(3'000);
  const WorkBudget budget(kSteps);
  int matched = 0;
  while (matched < 100 && pattern->Matches(text).has_value()) ++matched;
  EXPECT_GT(matched, 0);
  EXPECT_LT(matched, 5);
}

TEST(Regex, CompilingUsesUpTheBudget) {
  const WorkBudget budget(kSteps);
  int compiled = 0;
  std::string why;
  while (compiled < 100 && Pattern::Compile("\\pL{10}", &why) != nullptr) ++compiled;
  EXPECT_GT(compiled, 1);
  EXPECT_LT(compiled, 10);
  EXPECT_EQ(why, "regular expression takes too long");
}

TEST(Regex, PatternsThatAreTooLargeUseUpTheBudget) {
  const WorkBudget budget(kSteps);
  int refused = 0;
  while (refused < 100 && !WorkBudget::IsExceeded()) {
    EXPECT_EQ(Pattern::Compile("\\pL{100}"), nullptr);
    ++refused;
  }
  EXPECT_LT(refused, 10);
}

TEST(Regex, APatternThatAnExpressionComputesIsCharged) {
  const WorkBudget budget(kSteps);
  Arena arena;
  int evaluated = 0;
  Value last;
  do {
    last = Find("x", "\\pL{10}", arena);
  } while (!last.IsError() && ++evaluated < 100);
  EXPECT_LT(evaluated, 10);
  ASSERT_TRUE(last.IsError());
  EXPECT_EQ(last.error->message, "regular expression takes too long");
}

TEST(Regex, WithoutABudgetOnlyTheWorkOfOneMatchIsLimited) {
  const auto pattern = Pattern::Compile(kManyStates);
  ASSERT_NE(pattern, nullptr);
  EXPECT_EQ(pattern->Matches(Letters(2'000)), false);
  EXPECT_EQ(pattern->Matches(Letters(100'000)), std::nullopt);
  EXPECT_EQ(pattern->Matches(Letters(2'000)), false);
}

}  // namespace
}  // namespace drakkar::cel::library
