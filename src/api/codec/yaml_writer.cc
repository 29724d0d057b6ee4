#include "api/codec/yaml_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "api/codec/yaml_scalar.h"
#include "api/json/reader.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

constexpr std::size_t kBestWidth = 80;
constexpr std::size_t kMaxSimpleKeyBytes = 128;

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<signed char>(c) < 0;
}

// Key order of Go's yaml: letters by code, digits as numbers and before letters.
bool KeyLess(std::string_view a, std::string_view b) {
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (a[i] == b[i]) continue;
    const bool a_letter = IsLetter(a[i]);
    const bool b_letter = IsLetter(b[i]);
    if (a_letter && b_letter) {
      return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[i]);
    }
    if (a_letter || b_letter) return b_letter;
    // Both start from 1 if they continue a number that is not zero so far.
    std::uint64_t a_number = 0;
    std::uint64_t b_number = 0;
    if (a[i] == '0' || b[i] == '0') {
      for (std::size_t j = i; j > 0 && IsDigit(a[j - 1]); --j) {
        if (a[j - 1] != '0') {
          a_number = b_number = 1;
          break;
        }
      }
    }
    std::size_t a_end = i;
    std::size_t b_end = i;
    for (; a_end < a.size() && IsDigit(a[a_end]); ++a_end) {
      a_number = a_number * 10 + static_cast<std::uint64_t>(a[a_end] - '0');
    }
    for (; b_end < b.size() && IsDigit(b[b_end]); ++b_end) {
      b_number = b_number * 10 + static_cast<std::uint64_t>(b[b_end] - '0');
    }
    if (a_number != b_number) return a_number < b_number;
    if (a_end != b_end) return a_end < b_end;
    return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[i]);
  }
  return a.size() < b.size();
}

// Some readers parse "1:20" and the like as base-60 numbers.
bool IsBase60(std::string_view text) {
  std::size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  if (at >= text.size() || !IsDigit(text[at])) return false;
  bool colon = false;
  for (; at < text.size(); ++at) {
    if (text[at] == ':') {
      colon = true;
    } else if (!IsDigit(text[at]) && text[at] != '_' && text[at] != '.') {
      return false;
    }
  }
  return colon;
}

// A date with or without a time, which YAML 1.1 readers parse as a timestamp.
bool IsTimestamp(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&](std::size_t least, std::size_t most) {
    const std::size_t start = at;
    while (at < text.size() && at - start < most && IsDigit(text[at])) ++at;
    return at - start >= least;
  };
  const auto literal = [&](char c) { return at < text.size() && text[at] == c && ++at != 0; };
  if (!digits(4, 4) || !literal('-') || !digits(1, 2) || !literal('-') || !digits(1, 2))
    return false;
  if (at == text.size()) return true;
  const bool zoned = text[at] == 'T' || text[at] == 't';
  if (!zoned && text[at] != ' ') return false;
  ++at;
  if (!digits(1, 2) || !literal(':') || !digits(1, 2) || !literal(':') || !digits(1, 2))
    return false;
  if (literal('.')) digits(0, text.size());
  if (!zoned || at == text.size()) return !zoned && at == text.size();
  if (literal('Z')) return at == text.size();
  if (!literal('+') && !literal('-')) return false;
  return digits(2, 2) && literal(':') && digits(2, 2) && at == text.size();
}

enum class Style { kPlain, kSingleQuoted, kDoubleQuoted, kLiteral };

// Which styles can represent the text, by the rules of YAML's reference emitter.
struct Analysis {
  bool plain = true;
  bool single_quoted = true;
  bool literal = true;
  bool multiline = false;
};

bool IsBlankOrEnd(std::string_view text, std::size_t at) {
  return at >= text.size() || text[at] == ' ' || text[at] == '\t' || text[at] == '\n';
}

// Control characters, byte order marks, line separators and invalid UTF-8 are not printable.
bool IsPrintable(std::string_view text) {
  if (!IsValidUtf8(text)) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 && c != '\n') return false;
    if (c == 0x7f) return false;
    if (c == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0) return false;  // C1 controls
    if (text.substr(i, 3) == "\xEF\xBB\xBF") return false;
    if (text.substr(i, 3) == "\xE2\x80\xA8" || text.substr(i, 3) == "\xE2\x80\xA9") return false;
  }
  return true;
}

Analysis Analyze(std::string_view text) {
  Analysis result;
  bool indicators = text.starts_with("---") || text.starts_with("...");
  bool after_blank = true;
  bool break_space = false;
  bool space_break = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool before_blank = IsBlankOrEnd(text, i + 1);
    if (i == 0) {
      if (std::string_view("#,[]{}&*!|>'\"%@`").find(c) != std::string_view::npos)
        indicators = true;
      if ((c == '?' || c == ':' || c == '-') && before_blank) indicators = true;
    } else {
      if (c == ':' && before_blank) indicators = true;
      if (c == '#' && after_blank) indicators = true;
    }
    if (c == '\n') {
      result.multiline = true;
      if (i > 0 && text[i - 1] == ' ') space_break = true;
    }
    if (c == ' ' && i > 0 && text[i - 1] == '\n') break_space = true;
    after_blank = c == ' ' || c == '\t' || c == '\n';
  }
  const bool special = !IsPrintable(text);
  const char first = text.empty() ? 'x' : text.front();
  const char last = text.empty() ? 'x' : text.back();
  if (first == ' ' || first == '\n' || last == ' ' || last == '\n') result.plain = false;
  if (last == ' ') result.literal = false;
  if (break_space) result.plain = result.single_quoted = false;
  if (space_break || special) result.plain = result.single_quoted = result.literal = false;
  if (result.multiline || indicators) result.plain = false;
  return result;
}

Style ChooseStyle(std::string_view text, bool is_key) {
  const Analysis analysis = Analyze(text);
  if (text.find('\n') != std::string_view::npos) {
    return analysis.literal && !is_key ? Style::kLiteral : Style::kDoubleQuoted;
  }
  const Node resolved = ResolveYamlScalar(text);
  if (resolved.kind != ValueKind::kString || IsBase60(text) || IsTimestamp(text) || text == "<<" ||
      text == "=") {
    return Style::kDoubleQuoted;
  }
  if (analysis.plain) return Style::kPlain;
  return analysis.single_quoted ? Style::kSingleQuoted : Style::kDoubleQuoted;
}

class Writer {
 public:
  std::string Write(Value value) {
    WriteValue(value, 0, false);
    return std::move(out_);
  }

 private:
  std::size_t Column() const {
    const std::size_t line = out_.rfind('\n');
    return line == std::string::npos ? out_.size() : out_.size() - line - 1;
  }

  void Indent(std::size_t indent) { out_.append(indent, ' '); }

  void NewLine(std::size_t indent) {
    out_ += '\n';
    Indent(indent);
  }

  // Writes the value after "key:" or "-", or a whole document, and ends the line. `indent` is the
  // column of the keys or dashes of a nested block; `inline_start` means that the block begins on
  // the current line.
  void WriteValue(Value value, std::size_t indent, bool inline_start) {
    if (value.kind() == ValueKind::kRaw) {
      if (const auto tree = ParseJson(value.str(), {.refuse_duplicates = false}); tree.ok()) {
        return WriteValue((*tree)->root(), indent, inline_start);
      }
      return WriteScalarLine(value.str(), indent);
    }
    if (value.is_object() && !value.empty()) return WriteObject(value, indent, inline_start);
    if (value.is_array() && !value.empty()) return WriteArray(value, indent, inline_start);
    switch (value.kind()) {
      case ValueKind::kObject:
        out_ += "{}";
        break;
      case ValueKind::kArray:
        out_ += "[]";
        break;
      case ValueKind::kBool:
        out_ += value.boolean() ? "true" : "false";
        break;
      case ValueKind::kInt:
        out_ += std::to_string(value.integer());
        break;
      case ValueKind::kDouble:
        AppendDouble(value.number());
        break;
      case ValueKind::kString:
        return WriteScalarLine(value.str(), indent);
      default:
        out_ += "null";
        break;
    }
    out_ += '\n';
  }

  // Go's %g with the shortest digits.
  void AppendDouble(double value) {
    char scientific[64];
    const auto end = std::to_chars(scientific, scientific + sizeof(scientific), value,
                                   std::chars_format::scientific);
    const std::string_view text(scientific, static_cast<std::size_t>(end.ptr - scientific));
    const std::size_t mark = text.find('e');
    int exponent = 0;
    std::from_chars(text.data() + mark + (text[mark + 1] == '+' ? 2 : 1), end.ptr, exponent);
    if (exponent < -4 || exponent >= 6) {
      out_ += text;
      return;
    }
    char fixed[64];
    const auto fixed_end =
        std::to_chars(fixed, fixed + sizeof(fixed), value, std::chars_format::fixed);
    out_.append(fixed, fixed_end.ptr);
  }

  void WriteScalarLine(std::string_view text, std::size_t indent) {
    WriteText(text, indent, false);
    if (out_.back() != '\n' || Column() != 0) out_ += '\n';
  }

  void WriteText(std::string_view text, std::size_t indent, bool is_key) {
    switch (ChooseStyle(text, is_key)) {
      case Style::kPlain:
        return WriteFolded(text, indent + 2, is_key, false);
      case Style::kSingleQuoted:
        out_ += '\'';
        WriteFolded(text, indent + 2, is_key, true);
        out_ += '\'';
        return;
      case Style::kDoubleQuoted:
        return WriteDoubleQuoted(text);
      case Style::kLiteral:
        return WriteLiteral(text, indent + 2);
    }
  }

  // A space beyond the best width becomes a line break, unless it is next to another space.
  void WriteFolded(std::string_view text, std::size_t indent, bool is_key, bool quoted) {
    std::size_t column = Column();
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      const bool inside = i > 0 && i + 1 < text.size();
      if (c == ' ' && !is_key && inside && column > kBestWidth && text[i - 1] != ' ' &&
          text[i + 1] != ' ') {
        NewLine(indent);
        column = indent;
        continue;
      }
      if (c == '\'' && quoted) out_ += '\'';
      out_ += c;
      // Columns are counted in characters.
      if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++column;
    }
  }

  void WriteDoubleQuoted(std::string_view text) {
    constexpr char kHex[] = "0123456789ABCDEF";
    out_ += '"';
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      const auto byte = static_cast<unsigned char>(c);
      const std::string_view three = text.substr(i, 3);
      switch (c) {
        case '"':
          out_ += "\\\"";
          continue;
        case '\\':
          out_ += "\\\\";
          continue;
        case '\0':
          out_ += "\\0";
          continue;
        case '\a':
          out_ += "\\a";
          continue;
        case '\b':
          out_ += "\\b";
          continue;
        case '\t':
          out_ += "\\t";
          continue;
        case '\n':
          out_ += "\\n";
          continue;
        case '\v':
          out_ += "\\v";
          continue;
        case '\f':
          out_ += "\\f";
          continue;
        case '\r':
          out_ += "\\r";
          continue;
        case '\x1b':
          out_ += "\\e";
          continue;
        default:
          break;
      }
      if (byte < 0x20 || byte == 0x7f) {
        out_ += "\\x";
        out_ += kHex[byte >> 4];
        out_ += kHex[byte & 15];
      } else if (byte == 0xC2 && i + 1 < text.size() &&
                 static_cast<unsigned char>(text[i + 1]) < 0xA0) {
        const auto next = static_cast<unsigned char>(text[++i]);
        out_ += next == 0x85 ? std::string("\\N") : StrCat("\\x", kHex[next >> 4], kHex[next & 15]);
      } else if (three == "\xE2\x80\xA8" || three == "\xE2\x80\xA9") {
        out_ += three[2] == '\xA8' ? "\\L" : "\\P";
        i += 2;
      } else if (three == "\xEF\xBB\xBF") {
        out_ += "\\uFEFF";
        i += 2;
      } else {
        out_ += c;
      }
    }
    out_ += '"';
  }

  void WriteLiteral(std::string_view text, std::size_t indent) {
    out_ += '|';
    if (text.front() == ' ' || text.front() == '\n') out_ += '2';
    if (text.back() != '\n') {
      out_ += '-';
    } else if (text.size() == 1 || text[text.size() - 2] == '\n') {
      out_ += '+';
    }
    out_ += '\n';
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      if (end != at) {
        Indent(indent);
        out_ += text.substr(at, end - at);
      }
      out_ += '\n';
      at = end + 1;
    }
  }

  void WriteObject(Value value, std::size_t indent, bool inline_start) {
    std::vector<MemberView> members;
    for (const MemberView member : value.members()) members.push_back(member);
    std::sort(members.begin(), members.end(),
              [](const MemberView& a, const MemberView& b) { return KeyLess(a.name, b.name); });
    bool first = inline_start;
    for (const MemberView& member : members) {
      if (!first) Indent(indent);
      first = false;
      const bool simple = member.name.size() <= kMaxSimpleKeyBytes;
      if (!simple) out_ += "? ";
      WriteText(member.name, indent, true);
      if (!simple) NewLine(indent);
      out_ += ':';
      WriteMemberValue(member.value, indent);
    }
  }

  void WriteMemberValue(Value value, std::size_t indent) {
    TreePtr kept;
    if (value.kind() == ValueKind::kRaw) {
      if (auto tree = ParseJson(value.str(), {.refuse_duplicates = false}); tree.ok()) {
        kept = *tree;
        value = kept->root();
      }
    }
    if (value.is_object() && !value.empty()) {
      out_ += '\n';
      WriteObject(value, indent + 2, false);
    } else if (value.is_array() && !value.empty()) {
      out_ += '\n';
      WriteArray(value, indent, false);
    } else {
      out_ += ' ';
      WriteValue(value, indent, false);
    }
  }

  void WriteArray(Value value, std::size_t indent, bool inline_start) {
    bool first = inline_start;
    for (const Value element : value.elements()) {
      if (!first) Indent(indent);
      first = false;
      out_ += "- ";
      const bool block =
          (element.is_object() || element.is_array() || element.kind() == ValueKind::kRaw) &&
          (element.kind() == ValueKind::kRaw || !element.empty());
      WriteValue(element, block ? indent + 2 : indent, true);
    }
  }

  std::string out_;
};

}  // namespace

std::string WriteYaml(Value value) {
  return Writer().Write(value);
}

}  // namespace drakkar::api
