#include "cel/lexer/lexer.h"

#include <gtest/gtest.h>

namespace drakkar::cel {
namespace {

std::vector<TokenKind> Kinds(std::string_view source) {
  std::vector<Issue> issues;
  std::vector<TokenKind> kinds;
  for (const Token& token : Tokenize(source, issues)) kinds.push_back(token.kind);
  EXPECT_TRUE(issues.empty()) << issues[0].message;
  return kinds;
}

using enum TokenKind;

TEST(Lexer, TellsOperatorsThatShareTheirFirstCharacterApart) {
  EXPECT_EQ(Kinds("< <= > >= == != ! && ||"),
            (std::vector{kLess, kLessEquals, kGreater, kGreaterEquals, kEquals, kNotEquals, kNot,
                         kAnd, kOr, kEnd}));
}

TEST(Lexer, TellsKindsOfNumbersByTheirForm) {
  EXPECT_EQ(Kinds("1 0x1F 1u 0xFFu 1.5 1e3 .5"),
            (std::vector{kInt, kInt, kUint, kUint, kFloat, kFloat, kFloat, kEnd}));
}

TEST(Lexer, ADotAfterANumberWithoutDigitsSelects) {
  EXPECT_EQ(Kinds("1.size()"),
            (std::vector{kInt, kDot, kIdentifier, kLeftParen, kRightParen, kEnd}));
}

TEST(Lexer, KeywordsAreNotPrefixesOfNames) {
  EXPECT_EQ(Kinds("in inside true truely null nullable"),
            (std::vector{kIn, kIdentifier, kTrue, kIdentifier, kNull, kIdentifier, kEnd}));
}

TEST(Lexer, ReadsEveryFormOfQuotedText) {
  EXPECT_EQ(Kinds(R"('a' "b" r'\d' b"x" br'x' '''it's''' """two
lines""")"),
            (std::vector{kString, kString, kString, kBytes, kBytes, kString, kString, kEnd}));
}

TEST(Lexer, TokensKnowWhereTheyStand) {
  std::vector<Issue> issues;
  const std::vector<Token> tokens = Tokenize("a  // comment\n  + b", issues);
  ASSERT_EQ(tokens.size(), 4u);
  EXPECT_EQ(tokens[1].offset, 16);
  EXPECT_EQ(tokens[2].text, "b");
}

TEST(Lexer, ReportsWhatIsNoTokenAndGoesOn) {
  std::vector<Issue> issues;
  const std::vector<Token> tokens = Tokenize("a # b", issues);
  ASSERT_EQ(issues.size(), 1u);
  EXPECT_EQ(issues[0].offset, 2);
  EXPECT_NE(issues[0].message.find("token recognition error at: '#"), std::string::npos)
      << issues[0].message;
  EXPECT_EQ(tokens.back().kind, kEnd);
}

TEST(Lexer, AnUnfinishedStringIsReportedOnceAndEnds) {
  std::vector<Issue> issues;
  Tokenize("'abc", issues);
  EXPECT_FALSE(issues.empty());
}

}  // namespace
}  // namespace drakkar::cel
