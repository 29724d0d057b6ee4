#include "api/json/writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
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

void AppendEscaped(std::string& out, char c) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    default:
      out += "\\u00";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[c & 15];
  }
}

class Writer {
 public:
  Writer(std::string& out, const WriteOptions& options) : out_(out), options_(options) {}

  void Write(Value value) {
    switch (value.kind()) {
      case ValueKind::kAbsent:
      case ValueKind::kNull:
        out_ += "null";
        return;
      case ValueKind::kBool:
        out_ += value.boolean() ? "true" : "false";
        return;
      case ValueKind::kInt: {
        char digits[24];
        const auto end = std::to_chars(digits, digits + sizeof(digits), value.integer());
        out_.append(digits, end.ptr);
        return;
      }
      case ValueKind::kDouble:
        AppendJsonDouble(out_, value.number());
        return;
      case ValueKind::kString:
        AppendJsonString(out_, value.str(), options_.escape_html);
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
  void NewLine() {
    if (options_.indent == 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(level_ * options_.indent), ' ');
  }

  void WriteArray(Value value) {
    if (value.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    ++level_;
    bool first = true;
    for (const Value element : value.elements()) {
      if (!first) out_ += ',';
      first = false;
      NewLine();
      Write(element);
    }
    --level_;
    NewLine();
    out_ += ']';
  }

  void WriteMember(std::string_view name, Value value, bool first) {
    if (!first) out_ += ',';
    NewLine();
    AppendJsonString(out_, name, options_.escape_html);
    out_ += options_.indent == 0 ? ":" : ": ";
    Write(value);
  }

  void WriteObject(Value value) {
    if (value.empty()) {
      out_ += "{}";
      return;
    }
    out_ += '{';
    ++level_;
    bool first = true;
    if (options_.sort_members) {
      std::vector<MemberView> members;
      members.reserve(value.size());
      for (const MemberView member : value.members()) members.push_back(member);
      std::sort(members.begin(), members.end(),
                [](const MemberView& a, const MemberView& b) { return a.name < b.name; });
      for (const MemberView& member : members) {
        WriteMember(member.name, member.value, first);
        first = false;
      }
    } else {
      for (const MemberView member : value.members()) {
        WriteMember(member.name, member.value, first);
        first = false;
      }
    }
    --level_;
    NewLine();
    out_ += '}';
  }

  // The bytes as they are, or, in indented output, the same tokens laid out like everything else.
  // Raw values were checked when they were read.
  void WriteRaw(std::string_view json) {
    if (json.empty()) {
      out_ += "null";
      return;
    }
    if (options_.indent == 0) {
      out_ += json;
      return;
    }
    bool in_string = false;
    bool just_opened = false;
    for (std::size_t i = 0; i < json.size(); ++i) {
      const char c = json[i];
      if (in_string) {
        out_ += c;
        if (c == '\\' && i + 1 < json.size()) out_ += json[++i];
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
      out_ += c;
      if (c == '{' || c == '[') {
        ++level_;
        just_opened = true;
      } else if (c == ',') {
        NewLine();
      } else if (c == ':') {
        out_ += ' ';
      } else if (c == '"') {
        in_string = true;
      }
    }
  }

  std::string& out_;
  const WriteOptions& options_;
  int level_ = 0;
};

}  // namespace

void AppendJsonString(std::string& out, std::string_view text, bool escape_html) {
  out += '"';
  std::size_t plain = 0;  // everything before it is written
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::uint8_t kind = kCharacters[static_cast<unsigned char>(text[i])];
    if (kind == kPlain || (kind == kHtml && !escape_html)) continue;
    if (kind == kMultiByte) {
      // U+2028 and U+2029 are E2 80 A8 and E2 80 A9.
      if (text.size() - i < 3 || text.substr(i, 2) != "\xE2\x80") continue;
      if (text[i + 2] != '\xA8' && text[i + 2] != '\xA9') continue;
      out += text.substr(plain, i - plain);
      out += text[i + 2] == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
      plain = i + 1;
      continue;
    }
    out += text.substr(plain, i - plain);
    AppendEscaped(out, text[i]);
    plain = i + 1;
  }
  out += text.substr(plain);
  out += '"';
}

void AppendJsonDouble(std::string& out, double value) {
  // JSON has neither infinity nor NaN; no reader of ours makes them.
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const double magnitude = std::fabs(value);
  const bool scientific = magnitude != 0 && (magnitude < 1e-6 || magnitude >= 1e21);
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value,
                                 scientific ? std::chars_format::scientific
                                            : std::chars_format::fixed);
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
  Writer(out, options).Write(value);
  if (options.final_newline) out += '\n';
}

std::string WriteJson(Value value, const WriteOptions& options) {
  std::string out;
  AppendJson(out, value, options);
  return out;
}

}  // namespace drakkar::api
