#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cel/ast/source.h"

namespace drakkar::cel {

// In the order of CEL's grammar: lists of expected tokens are printed in it.
enum class TokenKind {
  kEnd,
  kEquals,
  kNotEquals,
  kIn,
  kLess,
  kLessEquals,
  kGreaterEquals,
  kGreater,
  kAnd,
  kOr,
  kLeftBracket,
  kRightBracket,
  kLeftBrace,
  kRightBrace,
  kLeftParen,
  kRightParen,
  kDot,
  kComma,
  kMinus,
  kNot,
  kQuestion,
  kColon,
  kPlus,
  kStar,
  kSlash,
  kPercent,
  kTrue,
  kFalse,
  kNull,
  kFloat,
  kInt,
  kUint,
  kString,
  kBytes,
  kIdentifier,
  kEscapedIdentifier,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::int32_t offset = 0;
  std::string_view text;  // as written, with quotes
};

// Splits `source` into tokens, the last one kEnd. Invalid text is reported and skipped.
std::vector<Token> Tokenize(std::string_view source, std::vector<Issue>& issues);

// How messages name a kind of token: "'['", "IDENTIFIER".
std::string_view TokenKindName(TokenKind kind);

}  // namespace drakkar::cel
