#include "api/json/cursor.h"

#include <charconv>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "base/text/text.h"

namespace drakkar::api {
namespace {

// Larger objects look up duplicates by hash.
constexpr std::size_t kMaxLinearMembers = 32;

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// A byte as Go's json package prints it in an error: as the Unicode character with that number.
std::string ShowByte(char byte) {
  if (byte == '\'') return R"('\'')";
  if (byte == '"') return R"('"')";
  const auto value = static_cast<unsigned char>(byte);
  std::string text;
  if (value < 0x80) {
    text = byte;
  } else {
    text = {static_cast<char>(0xC0 | value >> 6), static_cast<char>(0x80 | (value & 0x3F))};
  }
  const std::string quoted = Quote(text);
  return "'" + quoted.substr(1, quoted.size() - 2) + "'";
}

void AppendUtf8(char*& to, std::uint32_t rune) {
  if (rune < 0x80) {
    *to++ = static_cast<char>(rune);
  } else if (rune < 0x800) {
    *to++ = static_cast<char>(0xC0 | rune >> 6);
    *to++ = static_cast<char>(0x80 | (rune & 0x3F));
  } else if (rune < 0x10000) {
    *to++ = static_cast<char>(0xE0 | rune >> 12);
    *to++ = static_cast<char>(0x80 | (rune >> 6 & 0x3F));
    *to++ = static_cast<char>(0x80 | (rune & 0x3F));
  } else {
    *to++ = static_cast<char>(0xF0 | rune >> 18);
    *to++ = static_cast<char>(0x80 | (rune >> 12 & 0x3F));
    *to++ = static_cast<char>(0x80 | (rune >> 6 & 0x3F));
    *to++ = static_cast<char>(0x80 | (rune & 0x3F));
  }
}

// Bytes of the UTF-8 sequence at `at`, 0 if it is not valid.
std::size_t Utf8Length(const char* at, const char* end) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(at[i]); };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const auto left = static_cast<std::size_t>(end - at);
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return left >= 2 && continues(1) ? 2 : 0;
  if ((lead & 0xF0) == 0xE0) {
    if (left < 3 || !continues(1) || !continues(2)) return 0;
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;
    if (lead == 0xED && byte(1) > 0x9F) return 0;  // surrogates
    return 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (left < 4 || !continues(1) || !continues(2) || !continues(3)) return 0;
    if (lead == 0xF0 && byte(1) < 0x90) return 0;
    if (lead == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

// Skips plain bytes: neither quote, backslash, control nor non-ASCII.
const char* SkipPlain(const char* at, const char* end) {
  constexpr std::uint64_t kOnes = 0x0101010101010101u;
  constexpr std::uint64_t kHighs = 0x8080808080808080u;
  while (end - at >= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    const std::uint64_t quote = word ^ (kOnes * '"');
    const std::uint64_t slash = word ^ (kOnes * '\\');
    const std::uint64_t special = ((quote - kOnes) & ~quote) | ((slash - kOnes) & ~slash) |
                                  ((word - kOnes * 0x20) & ~word) | word;
    if ((special & kHighs) != 0) break;
    at += 8;
  }
  while (at != end && *at != '"' && *at != '\\' && static_cast<signed char>(*at) >= 0x20) ++at;
  return at;
}

}  // namespace

bool JsonCursor::Fail(std::string message) {
  if (error_.empty()) {
    error_ = std::move(message);
    error_offset_ = static_cast<std::size_t>(at_ - begin_);
  }
  return false;
}

bool JsonCursor::Unexpected(const char* where) {
  if (at_ == end_) return Fail("unexpected end of JSON input");
  return Fail(StrCat("invalid character ", ShowByte(*at_), " ", where));
}

bool JsonCursor::ReadValue(Node& out, Duplicates duplicates) {
  switch (Peek()) {
    case '{':
      return ReadObject(out, duplicates);
    case '[':
      return ReadArray(out, duplicates);
    case '"': {
      std::string_view text;
      if (!ReadString(text)) return false;
      out = TextNode(text);
      return true;
    }
    case 't':
    case 'f':
    case 'n':
      return ReadLiteral(out);
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
      return ReadNumber(out);
    default:
      return Unexpected("looking for beginning of value");
  }
}

bool JsonCursor::EnterObject() {
  if (depth_left_-- <= 0) return Fail("exceeded max depth");
  ++at_;
  return true;
}

bool JsonCursor::NextKey(std::string_view& name, bool& more, bool first) {
  char next = Peek();
  if (next == '}') {
    ++at_;
    ++depth_left_;
    more = false;
    return true;
  }
  if (!first) {
    if (next != ',' || at_ == end_) return Unexpected("after object key:value pair");
    ++at_;
    next = Peek();
  }
  if (next != '"') return Unexpected("looking for beginning of object key string");
  if (!ReadString(name)) return false;
  if (Peek() != ':') return Unexpected("after object key");
  ++at_;
  more = true;
  return true;
}

bool JsonCursor::EnterArray() {
  if (depth_left_-- <= 0) return Fail("exceeded max depth");
  ++at_;
  return true;
}

bool JsonCursor::NextElement(bool& more, bool first) {
  const char next = Peek();
  if (next == ']') {
    ++at_;
    ++depth_left_;
    more = false;
    return true;
  }
  if (!first) {
    if (next != ',') return Unexpected("after array element");
    ++at_;
    if (Peek() == ']') return Unexpected("looking for beginning of value");
  }
  more = true;
  return true;
}

Member* JsonCursor::FindOpenMember(std::size_t first_member, const Key* key) {
  for (std::size_t i = first_member; i < open_members.size(); ++i) {
    Member& member = open_members[i];
    if (member.key == key) return &member;
    if (key->id == 0 && member.key->id == 0 && member.key->view() == key->view()) return &member;
  }
  return nullptr;
}

Node JsonCursor::CloseObject(std::size_t first_member) {
  const std::size_t count = open_members.size() - first_member;
  Member* members = arena_.AllocateArray<Member>(count);
  if (count != 0) std::memcpy(members, &open_members[first_member], count * sizeof(Member));
  open_members.resize(first_member);
  return ObjectNode(members, count);
}

Node JsonCursor::CloseArray(std::size_t first_element) {
  const std::size_t count = open_elements.size() - first_element;
  Node* elements = arena_.AllocateArray<Node>(count);
  if (count != 0) std::memcpy(elements, &open_elements[first_element], count * sizeof(Node));
  open_elements.resize(first_element);
  return ArrayNode(elements, count);
}

bool JsonCursor::ReadObject(Node& out, Duplicates duplicates) {
  if (!EnterObject()) return false;
  const std::size_t first_member = open_members.size();
  std::optional<std::unordered_map<std::string_view, std::size_t>> by_name;
  for (bool first = true;; first = false) {
    std::string_view name;
    bool more = false;
    if (!NextKey(name, more, first)) return false;
    if (!more) break;
    const Key* key = arena_.MakeKey(name);
    const std::size_t count = open_members.size() - first_member;
    std::size_t index = open_members.size();
    if (count <= kMaxLinearMembers) {
      if (const Member* same = FindOpenMember(first_member, key)) {
        index = static_cast<std::size_t>(same - open_members.data());
      }
    } else {
      if (!by_name) {
        by_name.emplace();
        for (std::size_t i = first_member; i < open_members.size(); ++i) {
          by_name->emplace(open_members[i].key->view(), i);
        }
      }
      index = by_name->emplace(key->view(), index).first->second;
    }
    if (index != open_members.size() && duplicates == Duplicates::kRefuse) {
      return Fail(StrCat("duplicate field ", Quote(name)));
    }
    Node value;
    if (!(keep_field_sets_ ? ReadMember(name, value, duplicates) : ReadValue(value, duplicates)))
      return false;
    if (index == open_members.size()) {
      open_members.push_back({key, value});
    } else {
      open_members[index].value = value;
    }
  }
  out = CloseObject(first_member);
  return true;
}

bool JsonCursor::ReadMember(std::string_view name, Node& out, Duplicates duplicates) {
  if (in_managed_fields_ && name == "fieldsV1" && Peek() == '{') {
    std::string_view raw;
    if (!ReadRaw(raw)) return false;
    out = TextNode(raw, ValueKind::kRaw);
    return true;
  }
  const bool outer = in_managed_fields_;
  in_managed_fields_ = outer || name == "managedFields";
  const bool read = ReadValue(out, duplicates);
  in_managed_fields_ = outer;
  return read;
}

bool JsonCursor::ReadArray(Node& out, Duplicates duplicates) {
  if (!EnterArray()) return false;
  const std::size_t first_element = open_elements.size();
  for (bool first = true;; first = false) {
    bool more = false;
    if (!NextElement(more, first)) return false;
    if (!more) break;
    Node element;
    if (!ReadValue(element, duplicates)) return false;
    open_elements.push_back(element);
  }
  out = CloseArray(first_element);
  return true;
}

bool JsonCursor::ReadString(std::string_view& out) {
  const char* start = at_ + 1;
  const char* stop = SkipPlain(start, end_);
  while (stop != end_ && static_cast<signed char>(*stop) < 0) {
    const std::size_t length = Utf8Length(stop, end_);
    if (length == 0) break;
    stop = SkipPlain(stop + length, end_);
  }
  if (stop != end_ && *stop == '"') {
    out = {start, static_cast<std::size_t>(stop - start)};
    at_ = stop + 1;
    return true;
  }
  at_ = stop;
  return ReadStringSlow(start, out);
}

bool JsonCursor::ReadStringSlow(const char* start, std::string_view& out) {
  // Finds the end of the text to bound the size of the decoded text: an invalid byte takes three
  // (U+FFFD), everything else no more than it has.
  const char* stop = at_;
  std::size_t bad_bytes = 0;
  while (stop != end_ && *stop != '"') {
    bad_bytes += static_cast<signed char>(*stop) < 0;
    stop += *stop == '\\' && stop + 1 != end_ ? 2 : 1;
  }
  const auto plain = static_cast<std::size_t>(at_ - start);
  const auto room = static_cast<std::size_t>(stop - start) + 2 * bad_bytes;
  char* text = static_cast<char*>(arena_.Allocate(room));
  if (plain != 0) std::memcpy(text, start, plain);
  char* to = text + plain;
  while (true) {
    if (at_ == end_) return Unexpected("");
    const char c = *at_;
    if (c == '"') break;
    if (c == '\\') {
      if (!ReadEscape(to)) return false;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      return Unexpected("in string literal");
    } else if (const std::size_t length = Utf8Length(at_, end_); length != 0) {
      for (std::size_t i = 0; i < length; ++i) *to++ = *at_++;
    } else {
      // Like Go, replaces every byte that is not part of a valid sequence by U+FFFD.
      for (const char byte : kReplacement) *to++ = byte;
      ++at_;
    }
  }
  ++at_;
  out = {text, static_cast<std::size_t>(to - text)};
  return true;
}

bool JsonCursor::ReadHex4(std::uint32_t& unit) {
  unit = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    if (at_ == end_) return Unexpected("");
    const char c = *at_;
    std::uint32_t digit;
    if (IsDigit(c)) {
      digit = static_cast<std::uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<std::uint32_t>(c - 'a' + 10);
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<std::uint32_t>(c - 'A' + 10);
    } else {
      return Unexpected("in \\u hexadecimal character escape");
    }
    unit = unit << 4 | digit;
  }
  return true;
}

bool JsonCursor::ReadEscape(char*& to) {
  ++at_;
  if (at_ == end_) return Unexpected("");
  switch (*at_) {
    case '"':
      *to++ = '"';
      break;
    case '\\':
      *to++ = '\\';
      break;
    case '/':
      *to++ = '/';
      break;
    case 'b':
      *to++ = '\b';
      break;
    case 'f':
      *to++ = '\f';
      break;
    case 'n':
      *to++ = '\n';
      break;
    case 'r':
      *to++ = '\r';
      break;
    case 't':
      *to++ = '\t';
      break;
    case 'u': {
      ++at_;
      std::uint32_t unit;
      if (!ReadHex4(unit)) return false;
      if (unit >= 0xD800 && unit < 0xE000) {
        const char* after = at_;
        std::uint32_t low = 0;
        // An unpaired surrogate becomes U+FFFD; what follows is read on its own.
        if (unit < 0xDC00 && end_ - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u') {
          at_ += 2;
          if (!ReadHex4(low)) return false;
        }
        if (low >= 0xDC00 && low < 0xE000) {
          unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
        } else {
          at_ = after;
          unit = 0xFFFD;
        }
      }
      AppendUtf8(to, unit);
      return true;
    }
    default:
      return Unexpected("in string escape code");
  }
  ++at_;
  return true;
}

bool JsonCursor::ReadLiteral(Node& out) {
  std::string_view word;
  switch (*at_) {
    case 't':
      word = "true";
      break;
    case 'f':
      word = "false";
      break;
    default:
      word = "null";
      break;
  }
  ++at_;
  for (std::size_t i = 1; i < word.size(); ++i, ++at_) {
    if (at_ == end_) return Unexpected("");
    if (*at_ != word[i]) {
      return Unexpected(
          StrCat("in literal ", word, " (expecting ", ShowByte(word[i]), ")").c_str());
    }
  }
  out = word.size() == 4 && word[0] == 'n' ? NullNode() : BoolNode(word[0] == 't');
  return true;
}

bool JsonCursor::ReadNumber(Node& out) {
  const char* start = at_;
  if (*at_ == '-') {
    ++at_;
    if (at_ == end_ || !IsDigit(*at_)) return Unexpected("in numeric literal");
  }
  bool integral = true;
  if (*at_ == '0') {
    ++at_;
  } else {
    while (at_ != end_ && IsDigit(*at_)) ++at_;
  }
  if (at_ != end_ && *at_ == '.') {
    integral = false;
    ++at_;
    if (at_ == end_ || !IsDigit(*at_)) return Unexpected("after decimal point in numeric literal");
    while (at_ != end_ && IsDigit(*at_)) ++at_;
  }
  if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
    integral = false;
    ++at_;
    if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    if (at_ == end_ || !IsDigit(*at_)) return Unexpected("in exponent of numeric literal");
    while (at_ != end_ && IsDigit(*at_)) ++at_;
  }
  if (integral) {
    std::int64_t value = 0;
    if (std::from_chars(start, at_, value).ec == std::errc()) {
      out = IntNode(value);
      return true;
    }
    // Integers that do not fit an int64 become doubles, as in Kubernetes.
  }
  double value = 0;
  const auto parsed = std::from_chars(start, at_, value);
  if (parsed.ec != std::errc()) {
    // In Go, underflow is zero and overflow an error; from_chars reports both alike.
    const std::string text(start, at_);
    value = std::strtod(text.c_str(), nullptr);
    if (value > 1 || value < -1) {
      return Fail(StrCat("cannot unmarshal number ", text, " into Go value of type float64"));
    }
  }
  out = DoubleNode(value);
  return true;
}

bool JsonCursor::SkipString() {
  ++at_;
  while (true) {
    at_ = SkipPlain(at_, end_);
    if (at_ == end_) return Unexpected("");
    const char c = *at_;
    if (c == '"') {
      ++at_;
      return true;
    }
    if (static_cast<unsigned char>(c) < 0x20) return Unexpected("in string literal");
    if (c != '\\') {
      ++at_;
      continue;
    }
    ++at_;
    if (at_ == end_) return Unexpected("");
    if (*at_ == 'u') {
      ++at_;
      std::uint32_t unit;
      if (!ReadHex4(unit)) return false;
    } else if (std::string_view("\"\\/bfnrt").find(*at_) != std::string_view::npos) {
      ++at_;
    } else {
      return Unexpected("in string escape code");
    }
  }
}

bool JsonCursor::SkipValue() {
  std::string_view name;
  bool more = true;
  Node ignored;
  switch (Peek()) {
    case '{':
      if (!EnterObject()) return false;
      for (bool first = true;; first = false) {
        if (!NextKey(name, more, first)) return false;
        if (!more) return true;
        if (!SkipValue()) return false;
      }
    case '[':
      if (!EnterArray()) return false;
      for (bool first = true;; first = false) {
        if (!NextElement(more, first)) return false;
        if (!more) return true;
        if (!SkipValue()) return false;
      }
    case '"':
      return SkipString();
    default:
      return ReadValue(ignored, Duplicates::kLastWins);
  }
}

bool JsonCursor::ReadRaw(std::string_view& out) {
  Peek();
  const char* start = at_;
  if (!SkipValue()) return false;
  out = {start, static_cast<std::size_t>(at_ - start)};
  return true;
}

bool JsonCursor::ExpectEnd() {
  SkipSpace();
  if (at_ == end_) return true;
  return Unexpected("after top-level value");
}

}  // namespace drakkar::api
