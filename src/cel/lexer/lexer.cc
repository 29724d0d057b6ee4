#include "cel/lexer/lexer.h"

#include <array>
#include <utility>

#include "base/text/text.h"

namespace drakkar::cel {
namespace {

bool IsHexDigit(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool IsIdentifierStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool IsIdentifierPart(char c) {
  return IsIdentifierStart(c) || IsDigit(c);
}

struct Symbol {
  std::string_view text;
  TokenKind kind;
};

// Longer ones first.
constexpr std::array<Symbol, 24> kSymbols = {{
    {"==", TokenKind::kEquals},     {"!=", TokenKind::kNotEquals},
    {"<=", TokenKind::kLessEquals}, {">=", TokenKind::kGreaterEquals},
    {"&&", TokenKind::kAnd},        {"||", TokenKind::kOr},
    {"<", TokenKind::kLess},        {">", TokenKind::kGreater},
    {"[", TokenKind::kLeftBracket}, {"]", TokenKind::kRightBracket},
    {"{", TokenKind::kLeftBrace},   {"}", TokenKind::kRightBrace},
    {"(", TokenKind::kLeftParen},   {")", TokenKind::kRightParen},
    {".", TokenKind::kDot},         {",", TokenKind::kComma},
    {"-", TokenKind::kMinus},       {"!", TokenKind::kNot},
    {"?", TokenKind::kQuestion},    {":", TokenKind::kColon},
    {"+", TokenKind::kPlus},        {"*", TokenKind::kStar},
    {"/", TokenKind::kSlash},       {"%", TokenKind::kPercent},
}};

class Lexer {
 public:
  Lexer(std::string_view source, std::vector<Issue>& issues) : source_(source), issues_(issues) {}

  std::vector<Token> Run() {
    for (;;) {
      SkipSpace();
      if (at_ >= source_.size()) break;
      const std::size_t begin = at_;
      const TokenKind kind = Next();
      if (kind == TokenKind::kEnd) {
        Refuse(begin);
        continue;
      }
      tokens_.push_back(
          {kind, static_cast<std::int32_t>(begin), source_.substr(begin, at_ - begin)});
    }
    tokens_.push_back({TokenKind::kEnd, static_cast<std::int32_t>(source_.size()), "<EOF>"});
    return std::move(tokens_);
  }

 private:
  char Peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  void SkipSpace() {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f') {
        ++at_;
      } else if (source_.substr(at_, 2) == "//") {
        while (at_ < source_.size() && source_[at_] != '\n') ++at_;
      } else {
        return;
      }
    }
  }

  // The offending text extends to and includes the character that cannot continue the token.
  void Refuse(std::size_t begin) {
    if (at_ < source_.size()) {
      ++at_;
      while (at_ < source_.size() && (static_cast<unsigned char>(source_[at_]) & 0xC0) == 0x80)
        ++at_;
    }
    issues_.push_back(
        {static_cast<std::int32_t>(begin), StrCat("Syntax error: token recognition error at: '",
                                                  source_.substr(begin, at_ - begin), "'")});
  }

  // Consumes one token; kEnd if there is none, with at_ on the character that broke it.
  TokenKind Next() {
    const char c = Peek();
    if (const TokenKind text = StringOrBytes(); text != TokenKind::kEnd) return text;
    if (failed_text_) {
      failed_text_ = false;
      return TokenKind::kEnd;
    }
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) return Number();
    if (IsIdentifierStart(c)) return Word();
    if (c == '`') return EscapedIdentifier();
    for (const Symbol& symbol : kSymbols) {
      if (source_.substr(at_, symbol.text.size()) == symbol.text) {
        at_ += symbol.text.size();
        return symbol.kind;
      }
    }
    if ((c == '&' || c == '|' || c == '=') && at_ + 1 <= source_.size()) ++at_;
    return TokenKind::kEnd;
  }

  TokenKind Word() {
    const std::size_t begin = at_;
    while (IsIdentifierPart(Peek())) ++at_;
    const std::string_view word = source_.substr(begin, at_ - begin);
    if (word == "in") return TokenKind::kIn;
    if (word == "true") return TokenKind::kTrue;
    if (word == "false") return TokenKind::kFalse;
    if (word == "null") return TokenKind::kNull;
    return TokenKind::kIdentifier;
  }

  TokenKind EscapedIdentifier() {
    ++at_;
    const std::size_t begin = at_;
    while (IsIdentifierPart(Peek()) || Peek() == '.' || Peek() == '-' || Peek() == '/' ||
           Peek() == ' ')
      ++at_;
    if (at_ == begin || Peek() != '`') return TokenKind::kEnd;
    ++at_;
    return TokenKind::kEscapedIdentifier;
  }

  TokenKind Number() {
    if (Peek() == '0' && Peek(1) == 'x' && IsHexDigit(Peek(2))) {
      at_ += 2;
      while (IsHexDigit(Peek())) ++at_;
      return UintSuffix();
    }
    while (IsDigit(Peek())) ++at_;
    bool is_float = false;
    if (Peek() == '.' && IsDigit(Peek(1))) {
      is_float = true;
      ++at_;
      while (IsDigit(Peek())) ++at_;
    }
    const std::size_t sign = Peek(1) == '+' || Peek(1) == '-' ? 1 : 0;
    if ((Peek() == 'e' || Peek() == 'E') && IsDigit(Peek(1 + sign))) {
      is_float = true;
      at_ += 1 + sign;
      while (IsDigit(Peek())) ++at_;
    }
    return is_float ? TokenKind::kFloat : UintSuffix();
  }

  TokenKind UintSuffix() {
    if (Peek() != 'u' && Peek() != 'U') return TokenKind::kInt;
    ++at_;
    return TokenKind::kUint;
  }

  // [rRbB] in any order before quotes. failed_text_ tells a broken string from "not a string".
  TokenKind StringOrBytes() {
    std::size_t ahead = 0;
    bool bytes = false;
    bool raw = false;
    for (; ahead < 2; ++ahead) {
      const char c = Peek(ahead);
      if ((c == 'b' || c == 'B') && !bytes && !raw) {
        bytes = true;
      } else if ((c == 'r' || c == 'R') && !raw) {
        raw = true;
      } else {
        break;
      }
    }
    const char quote = Peek(ahead);
    if (quote != '"' && quote != '\'') return TokenKind::kEnd;
    const std::size_t begin = at_;
    at_ += ahead;
    const std::string triple(3, quote);
    const bool is_triple = source_.substr(at_, 3) == triple;
    at_ += is_triple ? 3 : 1;
    if (Body(quote, is_triple, raw)) return bytes ? TokenKind::kBytes : TokenKind::kString;
    // An unterminated """ is still an empty string followed by something.
    if (is_triple) {
      at_ = begin + ahead + 2;
      return bytes ? TokenKind::kBytes : TokenKind::kString;
    }
    failed_text_ = true;
    return TokenKind::kEnd;
  }

  bool Body(char quote, bool triple, bool raw) {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == quote && (!triple || source_.substr(at_, 3) == std::string(3, quote))) {
        at_ += triple ? 3 : 1;
        return true;
      }
      if (!triple && (c == '\n' || c == '\r')) return false;
      if (c == '\\' && !raw) {
        if (!Escape()) return false;
        continue;
      }
      ++at_;
    }
    return false;
  }

  bool Escape() {
    ++at_;
    const char c = Peek();
    std::size_t digits = 0;
    if (c == 'x' || c == 'X') digits = 2;
    if (c == 'u') digits = 4;
    if (c == 'U') digits = 8;
    if (digits > 0) {
      ++at_;
      for (std::size_t i = 0; i < digits; ++i, ++at_) {
        if (!IsHexDigit(Peek())) return false;
      }
      return true;
    }
    if (c >= '0' && c <= '3') {
      for (int i = 0; i < 3; ++i, ++at_) {
        if (Peek() < '0' || Peek() > '7') return false;
      }
      return true;
    }
    if (at_ >= source_.size() ||
        std::string_view("abfnrtv\"'\\?`").find(c) == std::string_view::npos)
      return false;
    ++at_;
    return true;
  }

  std::string_view source_;
  std::vector<Issue>& issues_;
  std::size_t at_ = 0;
  bool failed_text_ = false;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> Tokenize(std::string_view source, std::vector<Issue>& issues) {
  return Lexer(source, issues).Run();
}

std::string_view TokenKindName(TokenKind kind) {
  static constexpr std::array<std::string_view, 36> kNames = {
      "<EOF>",   "'=='",     "'!='",   "'in'",    "'<'",        "'<='",
      "'>='",    "'>'",      "'&&'",   "'||'",    "'['",        "']'",
      "'{'",     "'}'",      "'('",    "')'",     "'.'",        "','",
      "'-'",     "'!'",      "'?'",    "':'",     "'+'",        "'*'",
      "'/'",     "'%'",      "'true'", "'false'", "'null'",     "NUM_FLOAT",
      "NUM_INT", "NUM_UINT", "STRING", "BYTES",   "IDENTIFIER", "ESC_IDENTIFIER"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace drakkar::cel
