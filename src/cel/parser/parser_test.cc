#include "cel/parser/parser.h"

#include <gtest/gtest.h>

#include "base/text/text.h"

namespace drakkar::cel {
namespace {

std::string LiteralText(const Literal& literal) {
  if (const auto* b = std::get_if<bool>(&literal)) return *b ? "true" : "false";
  if (const auto* i = std::get_if<std::int64_t>(&literal)) return std::to_string(*i);
  if (const auto* u = std::get_if<std::uint64_t>(&literal)) return StrCat(std::to_string(*u), "u");
  if (const auto* s = std::get_if<std::string>(&literal)) return StrCat("'", *s, "'");
  return "?";
}

// The tree as nested calls: what was parsed, not how it was written.
std::string Print(const Expr& expr) {
  std::vector<std::string> parts;
  switch (expr.kind) {
    case ExprKind::kLiteral:
      return LiteralText(expr.literal);
    case ExprKind::kIdent:
      return expr.name;
    case ExprKind::kSelect:
      return StrCat(expr.test_only ? "has(" : "(", Print(*expr.operand), ".", expr.name, ")");
    case ExprKind::kCall:
      if (expr.operand) parts.push_back(Print(*expr.operand));
      for (const ExprPtr& arg : expr.args) parts.push_back(Print(*arg));
      return StrCat(expr.name, "(", Join(parts, ", "), ")");
    case ExprKind::kList:
      for (const ExprPtr& arg : expr.args) parts.push_back(Print(*arg));
      return StrCat("[", Join(parts, ", "), "]");
    case ExprKind::kMap:
      for (const MapEntry& entry : expr.entries)
        parts.push_back(StrCat(Print(*entry.key), ": ", Print(*entry.value)));
      return StrCat("{", Join(parts, ", "), "}");
    case ExprKind::kComprehension: {
      const Comprehension& fold = *expr.comprehension;
      return StrCat("fold(", fold.iter_var, " in ", Print(*fold.iter_range), "; ",
                    Print(*fold.accu_init), "; while ", Print(*fold.loop_condition), "; ",
                    Print(*fold.loop_step), "; ", Print(*fold.result), ")");
    }
    default:
      return "?";
  }
}

std::string Parsed(std::string_view source) {
  std::vector<Issue> issues;
  const Ast ast = Parse(source, {}, issues);
  if (!ast.root) return StrCat("error: ", FormatIssues(source, issues));
  return Print(*ast.root);
}

TEST(Parser, MultiplicationBindsTighterThanAdditionAndComparison) {
  EXPECT_EQ(Parsed("1 + 2 * 3 < 4"), "_<_(_+_(1, _*_(2, 3)), 4)");
}

TEST(Parser, OperatorsOfOneKindGroupToTheLeft) {
  EXPECT_EQ(Parsed("1 - 2 - 3"), "_-_(_-_(1, 2), 3)");
}

TEST(Parser, ConditionalsGroupToTheRight) {
  EXPECT_EQ(Parsed("a ? b : c ? d : e"), "_?_:_(a, b, _?_:_(c, d, e))");
}

TEST(Parser, LongChainsOfAndAreBalancedAsInCel) {
  EXPECT_EQ(Parsed("a && b && c && d"), "_&&_(_&&_(a, b), _&&_(c, d))");
}

TEST(Parser, ANegativeNumberIsALiteralUpToTheSmallestOne) {
  EXPECT_EQ(Parsed("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(Parsed("-x"), "-_(x)");
}

TEST(Parser, HasBecomesATestOfPresence) {
  EXPECT_EQ(Parsed("has(a.b.c)"), "has((a.b).c)");
}

TEST(Parser, MacrosBecomeFolds) {
  EXPECT_EQ(Parsed("l.exists(x, x > 1)"),
            "fold(x in l; false; while @not_strictly_false(!_(@result)); _||_(@result, _>_(x, 1)); "
            "@result)");
}

TEST(Parser, EscapesInTextAreRead) {
  EXPECT_EQ(Parsed(R"('a\x41\101\u00e9')"), "'aAA\xc3\xa9'");
}

TEST(Parser, SaysWhatItExpectedAndShowsTheSpot) {
  const std::string error = Parsed("1 +");
  EXPECT_NE(error.find("ERROR: <input>:1:4: Syntax error:"), std::string::npos) << error;
  EXPECT_NE(error.find("\n | 1 +\n | ...^"), std::string::npos) << error;
}

TEST(Parser, ReservedWordsAreNoNames) {
  EXPECT_NE(Parsed("for").find("reserved identifier: for"), std::string::npos) << Parsed("for");
}

TEST(Parser, NestingIsBoundedSoThatNoStackOverflows) {
  std::string deep(5'000, '(');
  deep += "1";
  deep.append(5'000, ')');
  EXPECT_EQ(Parsed(deep).substr(0, 6), "error:");
  std::string chain = "a";
  for (int i = 0; i < 3 * kMaxChainDepth; ++i) chain += ".b";
  EXPECT_EQ(Parsed(chain).substr(0, 6), "error:");
}

}  // namespace
}  // namespace drakkar::cel
