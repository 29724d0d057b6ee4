#include "node/runtime/json.h"

#include <cstdlib>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<JsonValue> Parse() {
    JsonValue value;
    RETURN_IF_ERROR(ParseValue(value, 0));
    SkipSpace();
    if (at_ != text_.size()) return Fail("text after the document");
    return value;
  }

 private:
  Error Fail(std::string_view why) const {
    return InvalidArgument(StrCat("JSON at byte ", at_, ": ", why));
  }
  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' ||
                                  text_[at_] == '\r')) {
      ++at_;
    }
  }
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool TakeWord(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Result<void> ParseValue(JsonValue& value, int depth) {
    if (depth > kMaxJsonDepth) return Fail("nested too deeply");
    SkipSpace();
    if (at_ >= text_.size()) return Fail("unexpected end");
    switch (text_[at_]) {
      case '{': return ParseObject(value, depth);
      case '[': return ParseArray(value, depth);
      case '"':
        value.kind = JsonValue::Kind::kString;
        return ParseString(value.text);
      case 't':
      case 'f':
        value.kind = JsonValue::Kind::kBool;
        value.boolean = text_[at_] == 't';
        if (!TakeWord(value.boolean ? "true" : "false")) return Fail("unknown word");
        return Ok();
      case 'n':
        if (!TakeWord("null")) return Fail("unknown word");
        return Ok();
      default: return ParseNumber(value);
    }
  }

  Result<void> ParseObject(JsonValue& value, int depth) {
    value.kind = JsonValue::Kind::kObject;
    ++at_;
    SkipSpace();
    if (Take('}')) return Ok();
    while (true) {
      SkipSpace();
      if (at_ >= text_.size() || text_[at_] != '"') return Fail("expected a key");
      std::string key;
      RETURN_IF_ERROR(ParseString(key));
      if (value.members.size() >= kMaxMembers) return Fail("too many members");
      if (HasMember(value, key)) return Fail("duplicate key");
      SkipSpace();
      if (!Take(':')) return Fail("expected ':'");
      value.members.emplace_back(std::move(key), JsonValue());
      RETURN_IF_ERROR(ParseValue(value.members.back().second, depth + 1));
      SkipSpace();
      if (Take('}')) return Ok();
      if (!Take(',')) return Fail("expected ',' or '}'");
    }
  }
  static bool HasMember(const JsonValue& value, const std::string& key) {
    for (const auto& [name, member] : value.members) {
      if (name == key) return true;
    }
    return false;
  }

  Result<void> ParseArray(JsonValue& value, int depth) {
    value.kind = JsonValue::Kind::kArray;
    ++at_;
    SkipSpace();
    if (Take(']')) return Ok();
    while (true) {
      value.items.emplace_back();
      RETURN_IF_ERROR(ParseValue(value.items.back(), depth + 1));
      SkipSpace();
      if (Take(']')) return Ok();
      if (!Take(',')) return Fail("expected ',' or ']'");
    }
  }

  Result<void> ParseNumber(JsonValue& value) {
    const std::size_t begin = at_;
    Take('-');
    if (at_ >= text_.size() || text_[at_] < '0' || text_[at_] > '9') return Fail("unexpected character");
    if (Take('0')) {
      if (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') return Fail("leading zero");
    }
    SkipDigits();
    bool is_integer = true;
    if (Take('.')) {
      is_integer = false;
      if (!SkipDigits()) return Fail("expected a digit");
    }
    if (Take('e') || Take('E')) {
      is_integer = false;
      if (!Take('+')) Take('-');
      if (!SkipDigits()) return Fail("expected a digit");
    }
    const std::string_view digits = text_.substr(begin, at_ - begin);
    if (is_integer) {
      if (auto parsed = ParseInt64(digits)) {
        value.kind = JsonValue::Kind::kInteger;
        value.integer = *parsed;
        return Ok();
      }
    }
    value.kind = JsonValue::Kind::kNumber;
    value.number = std::strtod(std::string(digits).c_str(), nullptr);
    return Ok();
  }
  bool SkipDigits() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ > begin;
  }

  std::optional<std::uint32_t> ParseHex4() {
    if (text_.size() - at_ < 4) return std::nullopt;
    std::uint32_t code = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = text_[at_++];
      std::uint32_t digit = 0;
      if (c >= '0' && c <= '9') {
        digit = static_cast<std::uint32_t>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        digit = static_cast<std::uint32_t>(c - 'a' + 10);
      } else if (c >= 'A' && c <= 'F') {
        digit = static_cast<std::uint32_t>(c - 'A' + 10);
      } else {
        return std::nullopt;
      }
      code = code * 16 + digit;
    }
    return code;
  }
  static void AppendUtf8(std::string& out, std::uint32_t code) {
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xc0 | (code >> 6));
      out += static_cast<char>(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
      out += static_cast<char>(0xe0 | (code >> 12));
      out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
      out += static_cast<char>(0x80 | (code & 0x3f));
    } else {
      out += static_cast<char>(0xf0 | (code >> 18));
      out += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
      out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
      out += static_cast<char>(0x80 | (code & 0x3f));
    }
  }

  Result<void> ParseString(std::string& out) {
    ++at_;
    while (true) {
      if (at_ >= text_.size()) return Fail("string without end");
      const char c = text_[at_++];
      if (c == '"') break;
      if (static_cast<unsigned char>(c) < 0x20) return Fail("control character in a string");
      if (c != '\\') {
        out += c;
        continue;
      }
      RETURN_IF_ERROR(ParseEscape(out));
    }
    if (!IsValidUtf8(out)) return Fail("string is not UTF-8");
    return Ok();
  }
  Result<void> ParseEscape(std::string& out) {
    if (at_ >= text_.size()) return Fail("string without end");
    switch (text_[at_++]) {
      case '"': out += '"'; return Ok();
      case '\\': out += '\\'; return Ok();
      case '/': out += '/'; return Ok();
      case 'b': out += '\b'; return Ok();
      case 'f': out += '\f'; return Ok();
      case 'n': out += '\n'; return Ok();
      case 'r': out += '\r'; return Ok();
      case 't': out += '\t'; return Ok();
      case 'u': break;
      default: return Fail("unknown escape");
    }
    auto code = ParseHex4();
    if (!code) return Fail("expected four hexadecimal digits");
    if (*code >= 0xdc00 && *code < 0xe000) return Fail("lone surrogate");
    if (*code >= 0xd800 && *code < 0xdc00) {
      if (!TakeWord("\\u")) return Fail("lone surrogate");
      auto low = ParseHex4();
      if (!low || *low < 0xdc00 || *low >= 0xe000) return Fail("lone surrogate");
      code = 0x10000 + ((*code - 0xd800) << 10) + (*low - 0xdc00);
    }
    AppendUtf8(out, *code);
    return Ok();
  }

  // Duplicate keys are found by comparing with all earlier ones; this keeps that cheap.
  static constexpr std::size_t kMaxMembers = 4096;

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

const JsonValue* JsonValue::Find(std::string_view key) const {
  for (const auto& [name, value] : members) {
    if (name == key) return value.kind == Kind::kNull ? nullptr : &value;
  }
  return nullptr;
}

std::string JsonValue::String(std::string_view key) const {
  const JsonValue* value = Find(key);
  return value != nullptr && value->kind == Kind::kString ? value->text : std::string();
}

std::optional<std::int64_t> JsonValue::Integer(std::string_view key) const {
  const JsonValue* value = Find(key);
  if (value == nullptr || value->kind != Kind::kInteger) return std::nullopt;
  return value->integer;
}

bool JsonValue::Bool(std::string_view key) const {
  const JsonValue* value = Find(key);
  return value != nullptr && value->kind == Kind::kBool && value->boolean;
}

std::vector<std::string> JsonValue::Strings(std::string_view key) const {
  std::vector<std::string> strings;
  const JsonValue* value = Find(key);
  if (value == nullptr) return strings;
  for (const JsonValue& item : value->items) {
    if (item.kind == Kind::kString) strings.push_back(item.text);
  }
  return strings;
}

std::vector<std::pair<std::string, std::string>> JsonValue::StringMap(std::string_view key) const {
  std::vector<std::pair<std::string, std::string>> map;
  const JsonValue* value = Find(key);
  if (value == nullptr) return map;
  for (const auto& [name, member] : value->members) {
    if (member.kind == Kind::kString) map.emplace_back(name, member.text);
  }
  return map;
}

Result<JsonValue> ParseJson(std::string_view text) {
  if (text.size() > kMaxJsonBytes) {
    return InvalidArgument(StrCat("JSON of ", text.size(), " bytes, at most ", kMaxJsonBytes,
                                  " are read"));
  }
  return Parser(text).Parse();
}

void JsonWriter::Separate() {
  if (needs_comma_) text_ += ',';
  needs_comma_ = false;
}
JsonWriter& JsonWriter::BeginObject() {
  Separate();
  text_ += '{';
  return *this;
}
JsonWriter& JsonWriter::EndObject() {
  text_ += '}';
  needs_comma_ = true;
  return *this;
}
JsonWriter& JsonWriter::BeginArray() {
  Separate();
  text_ += '[';
  return *this;
}
JsonWriter& JsonWriter::EndArray() {
  text_ += ']';
  needs_comma_ = true;
  return *this;
}
JsonWriter& JsonWriter::Key(std::string_view key) {
  String(key);
  text_ += ':';
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view value) {
  Separate();
  text_ += '"';
  const bool clean = IsValidUtf8(value);
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (byte < 0x20) {
      constexpr char kDigits[] = "0123456789abcdef";
      text_ += "\\u00";
      text_ += kDigits[byte >> 4];
      text_ += kDigits[byte & 15];
    } else if (byte >= 0x80 && !clean) {
      text_ += "\\ufffd";
    } else {
      text_ += c;
    }
  }
  text_ += '"';
  needs_comma_ = true;
  return *this;
}
JsonWriter& JsonWriter::Integer(std::int64_t value) {
  Separate();
  text_ += std::to_string(value);
  needs_comma_ = true;
  return *this;
}
JsonWriter& JsonWriter::Unsigned(std::uint64_t value) {
  Separate();
  text_ += std::to_string(value);
  needs_comma_ = true;
  return *this;
}
JsonWriter& JsonWriter::Bool(bool value) {
  Separate();
  text_ += value ? "true" : "false";
  needs_comma_ = true;
  return *this;
}

}  // namespace drakkar::node
