#include "cel/parser/parser.h"

#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "base/text/text.h"
#include "cel/lexer/lexer.h"
#include "cel/parser/builder.h"
#include "cel/parser/literals.h"

namespace drakkar::cel {
namespace {

using Kind = TokenKind;
using KindSet = std::set<TokenKind>;

const KindSet& ExpressionStart() {
  static const KindSet kSet = {Kind::kLeftBracket, Kind::kLeftBrace, Kind::kLeftParen, Kind::kDot,
                               Kind::kMinus,       Kind::kNot,       Kind::kTrue,      Kind::kFalse,
                               Kind::kNull,        Kind::kFloat,     Kind::kInt,       Kind::kUint,
                               Kind::kString,      Kind::kBytes,     Kind::kIdentifier};
  return kSet;
}

// Tokens that can follow a complete expression anywhere: where error recovery may resume.
const KindSet& Follow() {
  static const KindSet kSet = {
      Kind::kEnd,         Kind::kEquals,        Kind::kNotEquals,  Kind::kIn,         Kind::kLess,
      Kind::kLessEquals,  Kind::kGreaterEquals, Kind::kGreater,    Kind::kAnd,        Kind::kOr,
      Kind::kLeftBracket, Kind::kRightBracket,  Kind::kRightBrace, Kind::kRightParen, Kind::kDot,
      Kind::kComma,       Kind::kMinus,         Kind::kQuestion,   Kind::kColon,      Kind::kPlus,
      Kind::kStar,        Kind::kSlash,         Kind::kPercent};
  return kSet;
}

std::string Describe(const KindSet& kinds) {
  if (kinds.size() == 1) return std::string(TokenKindName(*kinds.begin()));
  std::vector<std::string_view> names;
  for (const Kind kind : kinds) names.push_back(TokenKindName(kind));
  return StrCat("{", Join(names, ", "), "}");
}

bool IsReserved(std::string_view name) {
  static constexpr std::array<std::string_view, 20> kReserved = {
      "as",        "break", "const",  "continue", "else", "false", "for",
      "function",  "if",    "import", "in",       "let",  "loop",  "package",
      "namespace", "null",  "return", "true",     "var",  "void"};
  for (const std::string_view reserved : kReserved) {
    if (name == reserved) return true;
  }
  return name == "while";
}

class Parser {
 public:
  Parser(std::string_view source, const ParserOptions& options) : options_(options) {
    tokens_ = Tokenize(source, builder_.issues());
  }

  Ast Run(std::vector<Issue>& issues) {
    ExprPtr root = Expression();
    if (!fatal_) Expect(Kind::kEnd, {});
    Ast ast;
    issues = std::move(builder_.issues());
    if (issues.empty()) ast.root = std::move(root);
    ast.offsets = std::move(builder_.offsets());
    return ast;
  }

 private:
  // Counts nesting; beyond the limit the parser reports once and unwinds.
  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kMaxParseDepth) {
        parser_.Fail(StrCat("expression recursion limit exceeded: ", kMaxParseDepth));
      }
    }
    ~Nesting() { --parser_.depth_; }

   private:
    Parser& parser_;
  };

  const Token& Current() const { return tokens_[at_]; }
  const Token& Ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool At(Kind kind) const { return Current().kind == kind && !fatal_; }
  std::int32_t Advance() {
    const std::int32_t offset = Current().offset;
    if (Current().kind != Kind::kEnd) ++at_;
    recovering_ = false;
    return offset;
  }
  bool Accept(Kind kind) {
    if (!At(kind)) return false;
    Advance();
    return true;
  }

  void Fail(std::string message) {
    if (!fatal_) builder_.Report(Current().offset, std::move(message));
    fatal_ = true;
  }

  void ReportSyntax(const std::string& message) {
    if (!recovering_ && !fatal_) builder_.Report(Current().offset, "Syntax error: " + message);
    recovering_ = true;
  }

  // Matches one token. A superfluous token before it is skipped, a missing one is inserted if what
  // follows fits; the error is reported either way.
  void Expect(Kind kind, const KindSet& others) {
    if (Accept(kind) || fatal_) return;
    KindSet expected = others;
    expected.insert(kind);
    const std::string text(Current().text);
    if (others.empty() && Ahead().kind == kind && Current().kind != Kind::kEnd) {
      ReportSyntax(StrCat("extraneous input '", text, "' expecting ", Describe(expected)));
      Advance();
      Advance();
      return;
    }
    if (others.empty() && kind != Kind::kEnd && Follow().contains(Current().kind)) {
      ReportSyntax(StrCat("missing ", TokenKindName(kind), " at '", text, "'"));
      return;
    }
    ReportSyntax(StrCat("mismatched input '", text, "' expecting ", Describe(expected)));
    fatal_ = kind == Kind::kEnd;
  }

  // True if an expression can start here, possibly after skipping one bad token.
  bool SyncToExpression(const KindSet& also) {
    if (fatal_) return false;
    const auto starts = [&](const Token& token) {
      return ExpressionStart().contains(token.kind) || also.contains(token.kind);
    };
    if (starts(Current())) return true;
    KindSet expected = ExpressionStart();
    expected.insert(also.begin(), also.end());
    if (Current().kind != Kind::kEnd && starts(Ahead())) {
      ReportSyntax(
          StrCat("extraneous input '", Current().text, "' expecting ", Describe(expected)));
      Advance();
      return true;
    }
    ReportSyntax(StrCat("mismatched input '", Current().text, "' expecting ", Describe(expected)));
    while (!Follow().contains(Current().kind)) ++at_;
    return false;
  }

  ExprPtr Missing() { return builder_.New(ExprKind::kUnspecified, Current().offset); }

  ExprPtr Expression() {
    Nesting nesting(*this);
    if (fatal_) return Missing();
    ExprPtr condition = Or();
    if (!At(Kind::kQuestion)) return condition;
    const std::int32_t offset = Advance();
    ExprPtr then = Or();
    Expect(Kind::kColon, {});
    ExprPtr otherwise = Expression();
    return builder_.NewCall(names::kConditional, offset, std::move(condition), std::move(then),
                            std::move(otherwise));
  }

  // Long chains of && and || become balanced trees, so that they do not nest deeply.
  ExprPtr Balance(const char* function, std::vector<ExprPtr>& terms,
                  const std::vector<std::int32_t>& operators, std::size_t low, std::size_t high) {
    const std::size_t middle = (low + high + 1) / 2;
    ExprPtr left = middle == low ? std::move(terms[middle])
                                 : Balance(function, terms, operators, low, middle - 1);
    ExprPtr right = middle == high ? std::move(terms[middle + 1])
                                   : Balance(function, terms, operators, middle + 1, high);
    return builder_.NewCall(function, operators[middle], std::move(left), std::move(right));
  }

  template <typename Term>
  ExprPtr Logical(Kind kind, const char* function, const Term& term) {
    std::vector<ExprPtr> terms;
    std::vector<std::int32_t> operators;
    terms.push_back(term());
    while (At(kind)) {
      operators.push_back(Advance());
      terms.push_back(term());
    }
    if (operators.empty()) return std::move(terms[0]);
    return Balance(function, terms, operators, 0, operators.size() - 1);
  }

  ExprPtr Or() {
    return Logical(Kind::kOr, names::kOr, [this] { return And(); });
  }
  ExprPtr And() {
    return Logical(Kind::kAnd, names::kAnd, [this] { return Relation(); });
  }

  template <typename Operand>
  ExprPtr LeftChain(const Operand& operand, const char* (*function_of)(Kind)) {
    ExprPtr left = operand();
    int length = 0;
    while (!fatal_) {
      const char* function = function_of(Current().kind);
      if (!function) break;
      if (++length > kMaxChainDepth)
        Fail(StrCat("expression recursion limit exceeded: ", kMaxChainDepth));
      const std::int32_t offset = Advance();
      ExprPtr right = operand();
      left = builder_.NewCall(function, offset, std::move(left), std::move(right));
    }
    return left;
  }

  ExprPtr Relation() {
    return LeftChain([this] { return Sum(); },
                     [](Kind kind) -> const char* {
                       switch (kind) {
                         case Kind::kEquals:
                           return names::kEquals;
                         case Kind::kNotEquals:
                           return names::kNotEquals;
                         case Kind::kIn:
                           return names::kIn;
                         case Kind::kLess:
                           return "_<_";
                         case Kind::kLessEquals:
                           return "_<=_";
                         case Kind::kGreaterEquals:
                           return "_>=_";
                         case Kind::kGreater:
                           return "_>_";
                         default:
                           return nullptr;
                       }
                     });
  }
  ExprPtr Sum() {
    return LeftChain([this] { return Product(); },
                     [](Kind kind) -> const char* {
                       return kind == Kind::kPlus ? "_+_" : kind == Kind::kMinus ? "_-_" : nullptr;
                     });
  }
  ExprPtr Product() {
    return LeftChain([this] { return Unary(); },
                     [](Kind kind) -> const char* {
                       return kind == Kind::kStar      ? "_*_"
                              : kind == Kind::kSlash   ? "_/_"
                              : kind == Kind::kPercent ? "_%_"
                                                       : nullptr;
                     });
  }

  ExprPtr Unary() {
    if (!SyncToExpression({})) return Missing();
    if (At(Kind::kNot) ||
        (At(Kind::kMinus) && !(Ahead().kind == Kind::kInt || Ahead().kind == Kind::kFloat))) {
      const Kind kind = Current().kind;
      const std::int32_t offset = Current().offset;
      int count = 0;
      while (At(kind)) {
        // -(-1) is written with parentheses, --1 negates twice: the sign is not part of a literal
        // there.
        Advance();
        ++count;
      }
      if (!fatal_ && !ExpressionStart().contains(Current().kind)) {
        ReportSyntax(StrCat("extraneous input '", Current().text, "' expecting ",
                            Describe(ExpressionStart())));
        while (!Follow().contains(Current().kind)) ++at_;
        return Missing();
      }
      ExprPtr operand = Member(false);
      if (count % 2 == 0) return operand;
      return builder_.NewCall(kind == Kind::kNot ? names::kNot : names::kNegate, offset,
                              std::move(operand));
    }
    return Member(true);
  }

  ExprPtr Member(bool sign_allowed) {
    ExprPtr expr = Primary(sign_allowed);
    int length = 0;
    while (!fatal_) {
      if (++length > kMaxChainDepth)
        Fail(StrCat("expression recursion limit exceeded: ", kMaxChainDepth));
      if (At(Kind::kDot)) {
        expr = SelectOrCall(std::move(expr));
      } else if (At(Kind::kLeftBracket)) {
        expr = Index(std::move(expr));
      } else {
        break;
      }
    }
    return expr;
  }

  // A name after a dot: keywords of other languages are allowed there, and `quoted` names.
  std::string FieldName() {
    if (At(Kind::kEscapedIdentifier)) {
      const std::string_view text = Current().text;
      if (!options_.escaped_identifiers) {
        builder_.Report(Current().offset, "unsupported syntax: '`'");
      }
      Advance();
      return std::string(text.substr(1, text.size() - 2));
    }
    if (!At(Kind::kIdentifier)) {
      ReportSyntax(
          StrCat(Ahead().kind == Kind::kIdentifier && Current().kind != Kind::kEnd
                     ? "extraneous input '"
                     : "no viable alternative at input '",
                 Ahead().kind == Kind::kIdentifier && Current().kind != Kind::kEnd
                     ? StrCat(Current().text, "' expecting {IDENTIFIER, ESC_IDENTIFIER}")
                     : StrCat(".", Current().kind == Kind::kEnd ? "" : Current().text, "'")));
      fatal_ = true;
      return "";
    }
    std::string name(Current().text);
    Advance();
    return name;
  }

  ExprPtr SelectOrCall(ExprPtr operand) {
    const std::int32_t dot = Advance();
    const bool optional = At(Kind::kQuestion);
    if (optional) {
      if (!options_.optional_syntax) builder_.Report(dot, "unsupported syntax '.?'");
      Advance();
    }
    const std::int32_t name_offset = Current().offset;
    std::string name = FieldName();
    if (!optional && At(Kind::kLeftParen)) {
      const std::int32_t paren = Advance();
      std::vector<ExprPtr> args = Arguments();
      return CallOrMacro(std::move(name), paren, std::move(operand), std::move(args));
    }
    if (optional) {
      return builder_.NewCall(names::kOptSelect, dot, std::move(operand),
                              builder_.NewLiteral(std::move(name), name_offset));
    }
    ExprPtr select = builder_.New(ExprKind::kSelect, dot);
    select->operand = std::move(operand);
    select->name = std::move(name);
    return select;
  }

  ExprPtr Index(ExprPtr operand) {
    const std::int32_t bracket = Advance();
    const bool optional = At(Kind::kQuestion);
    if (optional) {
      if (!options_.optional_syntax) builder_.Report(bracket, "unsupported syntax '[?'");
      Advance();
    }
    ExprPtr index = Expression();
    Expect(Kind::kRightBracket, {});
    return builder_.NewCall(optional ? names::kOptIndex : names::kIndex, bracket,
                            std::move(operand), std::move(index));
  }

  // After "(", up to and including ")".
  std::vector<ExprPtr> Arguments() {
    std::vector<ExprPtr> args;
    if (Accept(Kind::kRightParen)) return args;
    if (!SyncToExpression({Kind::kRightParen})) {
      Accept(Kind::kRightParen);
      return args;
    }
    for (;;) {
      args.push_back(Expression());
      if (!Accept(Kind::kComma)) break;
    }
    Expect(Kind::kRightParen, At(Kind::kRightParen) ? KindSet{} : KindSet{Kind::kComma});
    return args;
  }

  ExprPtr CallOrMacro(std::string name, std::int32_t offset, ExprPtr target,
                      std::vector<ExprPtr> args) {
    if (const Macro* macro = FindMacro(options_.macros, name, args.size(), target != nullptr)) {
      const std::size_t before = builder_.issues().size();
      if (ExprPtr expanded = macro->expand(builder_, offset, target, args)) return expanded;
      if (builder_.issues().size() != before) return builder_.New(ExprKind::kUnspecified, offset);
    }
    ExprPtr call = builder_.New(ExprKind::kCall, offset);
    call->name = std::move(name);
    call->operand = std::move(target);
    call->args = std::move(args);
    return call;
  }

  ExprPtr Primary(bool sign_allowed) {
    switch (fatal_ ? Kind::kEnd : Current().kind) {
      case Kind::kDot:
      case Kind::kIdentifier:
        return Name();
      case Kind::kLeftParen: {
        Advance();
        ExprPtr inner = Expression();
        Expect(Kind::kRightParen, {});
        return inner;
      }
      case Kind::kLeftBracket:
        return List();
      case Kind::kLeftBrace:
        return Map();
      case Kind::kMinus:
        if (sign_allowed && (Ahead().kind == Kind::kInt || Ahead().kind == Kind::kFloat)) {
          const std::int32_t offset = Advance();
          return Number(offset, "-");
        }
        break;
      case Kind::kInt:
      case Kind::kUint:
      case Kind::kFloat:
        return Number(Current().offset, "");
      case Kind::kString:
      case Kind::kBytes:
        return Text();
      case Kind::kTrue:
        return builder_.NewLiteral(true, Advance());
      case Kind::kFalse:
        return builder_.NewLiteral(false, Advance());
      case Kind::kNull:
        return builder_.NewLiteral(std::monostate(), Advance());
      default:
        break;
    }
    SyncToExpression({});
    return Missing();
  }

  ExprPtr Name() {
    std::string name;
    const std::int32_t begin = Current().offset;
    if (Accept(Kind::kDot)) name = ".";
    const std::int32_t offset = name.empty() ? begin : Current().offset;
    if (!At(Kind::kIdentifier)) {
      ReportSyntax(StrCat("no viable alternative at input '.",
                          Current().kind == Kind::kEnd ? "" : Current().text, "'"));
      fatal_ = true;
      return Missing();
    }
    const std::string word(Current().text);
    name += word;
    Advance();
    if (At(Kind::kLeftParen)) {
      const std::int32_t paren = Advance();
      std::vector<ExprPtr> args = Arguments();
      return CallOrMacro(std::move(name), paren, nullptr, std::move(args));
    }
    if (StartsMessage()) return Message(std::move(name));
    if (IsReserved(word)) {
      builder_.Report(offset, StrCat("reserved identifier: ", word));
    }
    return builder_.NewIdent(std::move(name), begin);
  }

  // a.b.C{ ... }: identifiers and dots up to a brace.
  bool StartsMessage() const {
    std::size_t i = at_;
    while (tokens_[i].kind == Kind::kDot && tokens_[i + 1].kind == Kind::kIdentifier) i += 2;
    return tokens_[i].kind == Kind::kLeftBrace;
  }

  ExprPtr Message(std::string name) {
    while (Accept(Kind::kDot)) {
      name += StrCat(".", Current().text);
      Advance();
    }
    const std::int32_t brace = Advance();
    ExprPtr message = builder_.New(ExprKind::kStruct, brace);
    message->name = std::move(name);
    while (!fatal_ && !At(Kind::kRightBrace)) {
      StructField field;
      if (At(Kind::kQuestion)) {
        if (!options_.optional_syntax) builder_.Report(Current().offset, "unsupported syntax '?'");
        Advance();
        field.optional = true;
      }
      if (!At(Kind::kIdentifier) && !At(Kind::kEscapedIdentifier)) {
        ReportSyntax(StrCat("mismatched input '", Current().text,
                            "' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"));
        fatal_ = true;
        break;
      }
      field.name = FieldName();
      field.id = builder_.NewId(Current().offset);
      Expect(Kind::kColon, {});
      field.value = Expression();
      message->fields.push_back(std::move(field));
      if (!Accept(Kind::kComma)) break;
    }
    Expect(Kind::kRightBrace, At(Kind::kRightBrace) ? KindSet{} : KindSet{Kind::kComma});
    return message;
  }

  ExprPtr List() {
    ExprPtr list = builder_.New(ExprKind::kList, Advance());
    while (!fatal_ && !At(Kind::kRightBracket)) {
      if (At(Kind::kQuestion)) {
        if (!options_.optional_syntax) builder_.Report(Current().offset, "unsupported syntax '?'");
        Advance();
        list->optional_indices.push_back(list->args.size());
      }
      if (list->args.empty() && Accept(Kind::kComma)) break;
      list->args.push_back(Expression());
      if (!Accept(Kind::kComma)) break;
    }
    Expect(Kind::kRightBracket, At(Kind::kRightBracket) ? KindSet{} : KindSet{Kind::kComma});
    return list;
  }

  ExprPtr Map() {
    ExprPtr map = builder_.New(ExprKind::kMap, Advance());
    while (!fatal_ && !At(Kind::kRightBrace)) {
      MapEntry entry;
      if (At(Kind::kQuestion)) {
        if (!options_.optional_syntax) builder_.Report(Current().offset, "unsupported syntax '?'");
        Advance();
        entry.optional = true;
      }
      if (map->entries.empty() && Accept(Kind::kComma)) break;
      entry.key = Expression();
      Expect(Kind::kColon, {});
      entry.value = Expression();
      map->entries.push_back(std::move(entry));
      if (!Accept(Kind::kComma)) break;
    }
    Expect(Kind::kRightBrace, At(Kind::kRightBrace) ? KindSet{} : KindSet{Kind::kComma});
    return map;
  }

  ExprPtr Number(std::int32_t offset, std::string_view sign) {
    const Kind kind = Current().kind;
    std::string text = StrCat(sign, Current().text);
    Advance();
    if (kind == Kind::kFloat) {
      double value = 0;
      const char* begin = text.data();
      const auto [end, error] = std::from_chars(begin, begin + text.size(), value);
      if (error == std::errc::result_out_of_range) {
        // Underflow gives zero; overflow is an error.
        value = std::strtod(begin, nullptr);
        if (std::isinf(value)) builder_.Report(offset, "invalid double literal");
      }
      return builder_.NewLiteral(value, offset);
    }
    if (kind == Kind::kUint) text.pop_back();
    const bool negative = text[0] == '-';
    std::string_view digits = text;
    if (negative) digits.remove_prefix(1);
    const int base = digits.starts_with("0x") ? 16 : 10;
    if (base == 16) digits.remove_prefix(2);
    std::uint64_t magnitude = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
    if (kind == Kind::kUint) {
      if (error != std::errc()) builder_.Report(offset, "invalid uint literal");
      return builder_.NewLiteral(magnitude, offset);
    }
    const std::uint64_t limit = negative ? std::uint64_t{1} << 63 : (std::uint64_t{1} << 63) - 1;
    if (error != std::errc() || magnitude > limit) builder_.Report(offset, "invalid int literal");
    return builder_.NewLiteral(static_cast<std::int64_t>(negative ? ~magnitude + 1 : magnitude),
                               offset);
  }

  ExprPtr Text() {
    const bool is_bytes = Current().kind == Kind::kBytes;
    Result<std::string> value = UnescapeText(Current().text, is_bytes);
    const std::int32_t offset = Advance();
    if (!value.ok()) {
      builder_.Report(offset, value.error().message);
      return Missing();
    }
    if (is_bytes) return builder_.NewLiteral(BytesLiteral{*std::move(value)}, offset);
    return builder_.NewLiteral(*std::move(value), offset);
  }

  const ParserOptions& options_;
  Builder builder_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool recovering_ = false;  // until a token matches, further syntax errors only echo the first
  bool fatal_ = false;
};

}  // namespace

Ast Parse(std::string_view source, const ParserOptions& options, std::vector<Issue>& issues) {
  if (source.size() > options.max_source_bytes) {
    issues.push_back({0, StrCat("expression code point size exceeds limit: size: ", source.size(),
                                ", limit ", options.max_source_bytes)});
    return {};
  }
  if (!IsValidUtf8(source)) {
    issues.push_back({0, "expression is not valid UTF-8"});
    return {};
  }
  return Parser(source, options).Run(issues);
}

}  // namespace drakkar::cel
