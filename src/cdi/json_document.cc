#include <algorithm>
#include <cstdint>

#include "base/text/text.h"
#include "cdi/document.h"

namespace drakkar::cdi {
namespace {

// Recursive descent; recursion is bounded by kMaxDocumentDepth.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Document> ParseAll() {
    SkipSpace();
    ASSIGN_OR_RETURN(Document document, ParseValue(0));
    SkipSpace();
    if (position_ != text_.size()) return Failure("text after the end of the document");
    return document;
  }

 private:
  Error Failure(std::string_view reason) const {
    const std::string_view before = text_.substr(0, position_);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t newline = before.rfind('\n');
    const std::size_t column =
        newline == std::string_view::npos ? before.size() + 1 : before.size() - newline;
    return InvalidArgument(StrCat("line ", line, ", column ", column, ": ", reason));
  }

  bool AtEnd() const { return position_ == text_.size(); }
  char Peek() const { return AtEnd() ? '\0' : text_[position_]; }
  bool Take(char c) {
    if (AtEnd() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  bool TakeWord(std::string_view word) {
    if (!text_.substr(position_).starts_with(word)) return false;
    position_ += word.size();
    return true;
  }
  void SkipSpace() {
    while (!AtEnd() && std::string_view(" \t\r\n").find(Peek()) != std::string_view::npos) {
      ++position_;
    }
  }

  Result<Document> ParseValue(int depth) {
    if (depth >= kMaxDocumentDepth) {
      return Failure(StrCat("nested deeper than ", kMaxDocumentDepth, " levels"));
    }
    Document document;
    switch (Peek()) {
      case '{':
        return ParseObject(depth);
      case '[':
        return ParseArray(depth);
      case '"': {
        document.kind = Document::Kind::kString;
        ASSIGN_OR_RETURN(document.text, ParseString());
        return document;
      }
      default:
        break;
    }
    if (TakeWord("null")) return document;
    if (TakeWord("true") || TakeWord("false")) {
      document.kind = Document::Kind::kBool;
      document.boolean = text_[position_ - 2] == 'u';
      return document;
    }
    return ParseNumber();
  }

  Result<Document> ParseObject(int depth) {
    Document document;
    document.kind = Document::Kind::kObject;
    ++position_;
    SkipSpace();
    if (Take('}')) return document;
    while (true) {
      SkipSpace();
      if (Peek() != '"') return Failure("expected a key in double quotes");
      ASSIGN_OR_RETURN(std::string key, ParseString());
      for (const auto& [other, value] : document.members) {
        if (other == key) return Failure(StrCat("duplicate key ", Quote(key)));
      }
      SkipSpace();
      if (!Take(':')) return Failure("expected ':' after a key");
      SkipSpace();
      ASSIGN_OR_RETURN(Document value, ParseValue(depth + 1));
      document.members.emplace_back(std::move(key), std::move(value));
      if (document.members.size() > kMaxMembers) {
        return Failure(StrCat("an object has more than ", kMaxMembers, " keys"));
      }
      SkipSpace();
      if (Take('}')) return document;
      if (!Take(',')) return Failure("expected ',' or '}' in an object");
    }
  }

  Result<Document> ParseArray(int depth) {
    Document document;
    document.kind = Document::Kind::kArray;
    ++position_;
    SkipSpace();
    if (Take(']')) return document;
    while (true) {
      SkipSpace();
      ASSIGN_OR_RETURN(Document value, ParseValue(depth + 1));
      document.items.push_back(std::move(value));
      SkipSpace();
      if (Take(']')) return document;
      if (!Take(',')) return Failure("expected ',' or ']' in an array");
    }
  }

  Result<Document> ParseNumber() {
    const std::size_t start = position_;
    Take('-');
    if (!Take('0') && !TakeDigits()) {
      position_ = start;
      return Failure("expected a value");
    }
    if (Take('.') && !TakeDigits()) return Failure("expected a digit after '.'");
    if (Take('e') || Take('E')) {
      if (!Take('+')) Take('-');
      if (!TakeDigits()) return Failure("expected a digit in the exponent");
    }
    Document document;
    document.kind = Document::Kind::kNumber;
    document.text = std::string(text_.substr(start, position_ - start));
    return document;
  }

  bool TakeDigits() {
    const std::size_t start = position_;
    while (Peek() >= '0' && Peek() <= '9') ++position_;
    return position_ > start;
  }

  Result<std::string> ParseString() {
    std::string value;
    ++position_;
    while (true) {
      if (AtEnd()) return Failure("the string does not end");
      const char c = text_[position_];
      if (static_cast<unsigned char>(c) < 0x20) return Failure("control character in a string");
      ++position_;
      if (c == '"') return value;
      if (c != '\\') {
        value += c;
        continue;
      }
      RETURN_IF_ERROR(ParseEscape(&value));
    }
  }

  Result<void> ParseEscape(std::string* value) {
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const std::size_t index = AtEnd() ? std::string_view::npos : kEscapes.find(Peek());
    if (index != std::string_view::npos) {
      *value += kMeanings[index];
      ++position_;
      return Ok();
    }
    if (!Take('u')) return Failure("unknown escape in a string");
    ASSIGN_OR_RETURN(std::uint32_t code, ParseHex4());
    if (code >= 0xD800 && code < 0xDC00) {
      if (!TakeWord("\\u")) return Failure("half of a surrogate pair");
      ASSIGN_OR_RETURN(const std::uint32_t low, ParseHex4());
      if (low < 0xDC00 || low > 0xDFFF) return Failure("half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code <= 0xDFFF) {
      return Failure("half of a surrogate pair");
    }
    AppendUtf8(*value, code);
    return Ok();
  }

  Result<std::uint32_t> ParseHex4() {
    std::uint32_t code = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = Peek();
      const bool lower = c >= 'a' && c <= 'f';
      const bool upper = c >= 'A' && c <= 'F';
      const bool digit = c >= '0' && c <= '9';
      if (!lower && !upper && !digit) return Failure("expected four hexadecimal digits after \\u");
      code = code * 16 +
             static_cast<std::uint32_t>(digit ? c - '0' : (lower ? c - 'a' : c - 'A') + 10);
      ++position_;
    }
    return code;
  }

  // Keys are compared one by one; the largest real objects are annotations with a handful.
  static constexpr std::size_t kMaxMembers = 4'096;

  const std::string_view text_;
  std::size_t position_ = 0;
};

}  // namespace

Result<Document> ParseJsonDocument(std::string_view text) {
  if (text.size() > kMaxSpecBytes) {
    return InvalidArgument(
        StrCat("the document has ", text.size(), " bytes, more than ", kMaxSpecBytes));
  }
  if (!IsValidUtf8(text)) return InvalidArgument("the document is not valid UTF-8");
  return Parser(text).ParseAll();
}

}  // namespace drakkar::cdi
