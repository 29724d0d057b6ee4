#include "api/json/writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

namespace drakkar::api {
namespace {

enum : std::uint8_t { kPlain = 0, kEscape = 1, kHtml = 2, kMultiByte = 3 };

constexpr std::array<std::uint8_t, 256> kCharacters = [] {
  std::array<std::uint8_t, 256> table{};
  for (std::size_t i = 0; i < 0x20; ++i) table[i] = kEscape;
  table['"'] = kEscape;
  table['\\'] = kEscape;
  table['<'] = kHtml;
  table['>'] = kHtml;
  table['&'] = kHtml;
  for (std::size_t i = 0x80; i < 256; ++i) table[i] = kMultiByte;
  return table;
}();

// Number of leading bytes that certainly need no escaping, in steps of eight.
std::size_t PlainPrefix(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101u;
  constexpr std::uint64_t kHighs = 0x8080808080808080u;
  const auto has = [](std::uint64_t word, char c) {
    const std::uint64_t same = word ^ (kOnes * static_cast<unsigned char>(c));
    return (same - kOnes) & ~same;
  };
  std::size_t at = 0;
  while (text.size() - at >= 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    const std::uint64_t special = has(word, '"') | has(word, '\\') | has(word, '<') |
                                  has(word, '>') | has(word, '&') |
                                  ((word - kOnes * 0x20) & ~word) | word;
    if ((special & kHighs) != 0) break;
    at += 8;
  }
  return at;
}

constexpr std::size_t kMaxKeptBytes = 64 * 1024;

// Output buffer that grows by doubling: appending to std::string takes half the time of writing
// JSON.
class Buffer {
 public:
  void Add(char c) {
    if (size_ == capacity_) Grow(1);
    data_[size_++] = c;
  }
  void Add(std::string_view text) {
    if (capacity_ - size_ < text.size()) Grow(text.size());
    std::memcpy(data_.get() + size_, text.data(), text.size());
    size_ += text.size();
  }
  // "name": for names that need no escaping, such as schema names.
  void AddName(std::string_view name) {
    if (capacity_ - size_ < name.size() + 3) Grow(name.size() + 3);
    char* at = data_.get() + size_;
    *at++ = '"';
    std::memcpy(at, name.data(), name.size());
    at += name.size();
    *at++ = '"';
    *at = ':';
    size_ += name.size() + 3;
  }
  void Fill(std::size_t count, char c) {
    if (capacity_ - size_ < count) Grow(count);
    std::memset(data_.get() + size_, c, count);
    size_ += count;
  }
  std::string_view view() const { return {data_.get(), size_}; }
  void Reset(std::size_t max_capacity) {
    size_ = 0;
    if (capacity_ <= max_capacity) return;
    data_.reset();
    capacity_ = 0;
  }

 private:
  void Grow(std::size_t count) {
    capacity_ = std::max(capacity_ * 2, size_ + count + 1024);
    std::unique_ptr<char[]> larger(new char[capacity_]);
    if (size_ != 0) std::memcpy(larger.get(), data_.get(), size_);
    data_ = std::move(larger);
  }

  std::unique_ptr<char[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

void AddEscaped(Buffer& out, char c) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      return out.Add("\\\"");
    case '\\':
      return out.Add("\\\\");
    case '\n':
      return out.Add("\\n");
    case '\r':
      return out.Add("\\r");
    case '\t':
      return out.Add("\\t");
    case '\b':
      return out.Add("\\b");
    case '\f':
      return out.Add("\\f");
    default:
      out.Add("\\u00");
      out.Add(kHex[static_cast<unsigned char>(c) >> 4]);
      out.Add(kHex[c & 15]);
  }
}

void AddString(Buffer& out, std::string_view text, bool escape_html) {
  out.Add('"');
  std::size_t plain = 0;  // everything before it is written
  for (std::size_t i = PlainPrefix(text); i < text.size(); ++i) {
    const std::uint8_t kind = kCharacters[static_cast<unsigned char>(text[i])];
    if (kind == kPlain || (kind == kHtml && !escape_html)) continue;
    if (kind == kMultiByte) {
      // U+2028 and U+2029 are E2 80 A8 and E2 80 A9.
      if (text.size() - i < 3 || text.substr(i, 2) != "\xE2\x80") continue;
      if (text[i + 2] != '\xA8' && text[i + 2] != '\xA9') continue;
      out.Add(text.substr(plain, i - plain));
      out.Add(text[i + 2] == '\xA8' ? "\\u2028" : "\\u2029");
      i += 2;
      plain = i + 1;
      continue;
    }
    out.Add(text.substr(plain, i - plain));
    AddEscaped(out, text[i]);
    plain = i + 1;
  }
  out.Add(text.substr(plain));
  out.Add('"');
}

class Writer {
 public:
  Writer(Buffer& out, const WriteOptions& options) : out_(out), options_(options) {}

  void Write(Value value) {
    switch (value.kind()) {
      case ValueKind::kAbsent:
      case ValueKind::kNull:
        out_.Add("null");
        return;
      case ValueKind::kBool:
        out_.Add(std::string_view(value.boolean() ? "true" : "false"));
        return;
      case ValueKind::kInt: {
        char digits[24];
        const auto end = std::to_chars(digits, digits + sizeof(digits), value.integer());
        out_.Add(std::string_view(digits, static_cast<std::size_t>(end.ptr - digits)));
        return;
      }
      case ValueKind::kDouble:
        WriteDouble(value.number());
        return;
      case ValueKind::kString:
        AddString(out_, value.str(), options_.escape_html);
        return;
      case ValueKind::kRaw:
        WriteRaw(value.str());
        return;
      case ValueKind::kArray:
        WriteArray(value);
        return;
      case ValueKind::kObject:
        WriteObject(value);
        return;
    }
  }

 private:
  void WriteDouble(double value) {
    std::string text;
    AppendJsonDouble(text, value);
    out_.Add(text);
  }

  void NewLine() {
    if (options_.indent == 0) return;
    out_.Add('\n');
    out_.Fill(static_cast<std::size_t>(level_ * options_.indent), ' ');
  }

  void WriteArray(Value value) {
    if (value.empty()) {
      out_.Add("[]");
      return;
    }
    out_.Add('[');
    ++level_;
    bool first = true;
    for (const Value element : value.elements()) {
      if (!first) out_.Add(',');
      first = false;
      NewLine();
      Write(element);
    }
    --level_;
    NewLine();
    out_.Add(']');
  }

  void WriteMember(const MemberView& member, bool first) {
    if (!first) out_.Add(',');
    NewLine();
    if (member.key->id != 0) {
      out_.AddName(member.name);
    } else {
      AddString(out_, member.name, options_.escape_html);
      out_.Add(':');
    }
    if (options_.indent != 0) out_.Add(' ');
    Write(member.value);
  }

  void WriteObject(Value value) {
    if (value.empty()) {
      out_.Add("{}");
      return;
    }
    out_.Add('{');
    ++level_;
    bool first = true;
    if (options_.sort_members) {
      std::vector<MemberView> members;
      members.reserve(value.size());
      for (const MemberView member : value.members()) members.push_back(member);
      std::sort(members.begin(), members.end(),
                [](const MemberView& a, const MemberView& b) { return a.name < b.name; });
      for (const MemberView& member : members) {
        WriteMember(member, first);
        first = false;
      }
    } else {
      for (const MemberView member : value.members()) {
        WriteMember(member, first);
        first = false;
      }
    }
    --level_;
    NewLine();
    out_.Add('}');
  }

  // Appends the bytes unchanged or, in indented output, the same tokens reformatted. Raw values
  // were validated when they were read.
  void WriteRaw(std::string_view json) {
    if (json.empty()) {
      out_.Add("null");
      return;
    }
    if (options_.indent == 0) {
      out_.Add(json);
      return;
    }
    bool in_string = false;
    bool just_opened = false;
    for (std::size_t i = 0; i < json.size(); ++i) {
      const char c = json[i];
      if (in_string) {
        out_.Add(c);
        if (c == '\\' && i + 1 < json.size()) out_.Add(json[++i]);
        if (c == '"') in_string = false;
        continue;
      }
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r') continue;
      const bool closes = c == '}' || c == ']';
      if (closes) {
        --level_;
        if (!just_opened) NewLine();
      } else if (just_opened) {
        NewLine();
      }
      just_opened = false;
      out_.Add(c);
      if (c == '{' || c == '[') {
        ++level_;
        just_opened = true;
      } else if (c == ',') {
        NewLine();
      } else if (c == ':') {
        out_.Add(' ');
      } else if (c == '"') {
        in_string = true;
      }
    }
  }

  Buffer& out_;
  const WriteOptions& options_;
  int level_ = 0;
};

}  // namespace

void AppendJsonString(std::string& out, std::string_view text, bool escape_html) {
  Buffer buffer;
  AddString(buffer, text, escape_html);
  out += buffer.view();
}

void AppendJsonDouble(std::string& out, double value) {
  // JSON has neither infinity nor NaN, and our readers never produce them.
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const double magnitude = std::fabs(value);
  const bool scientific = magnitude != 0 && (magnitude < 1e-6 || magnitude >= 1e21);
  char digits[64];
  const auto end =
      std::to_chars(digits, digits + sizeof(digits), value,
                    scientific ? std::chars_format::scientific : std::chars_format::fixed);
  std::string_view text(digits, static_cast<std::size_t>(end.ptr - digits));
  // Go writes 1e-9, C++ 1e-09.
  if (scientific && text.size() >= 4 && text.substr(text.size() - 4, 3) == "e-0") {
    out += text.substr(0, text.size() - 2);
    out += text.back();
    return;
  }
  out += text;
}

void AppendJson(std::string& out, Value value, const WriteOptions& options) {
  // Kept per thread, so that it grows only once and the result is allocated at its final size.
  thread_local Buffer buffer;
  Writer(buffer, options).Write(value);
  if (options.final_newline) buffer.Add('\n');
  out += buffer.view();
  buffer.Reset(kMaxKeptBytes);
}

std::string WriteJson(Value value, const WriteOptions& options) {
  std::string out;
  AppendJson(out, value, options);
  return out;
}

}  // namespace drakkar::api
