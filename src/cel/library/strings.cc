#include <algorithm>

#include "base/text/text.h"
#include "cel/library/library.h"
#include "cel/library/string_format.h"

namespace drakkar::cel::library {
namespace {

using namespace types;  // NOLINT

// Length limit for results; in practice inputs and cost limit them much earlier.
constexpr std::size_t kMaxMadeBytes = 16 << 20;

bool IsContinuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Byte offset of character `index`, or npos beyond the end. index == length gives the size.
std::size_t OffsetOf(std::string_view text, std::int64_t index) {
  std::size_t at = 0;
  for (; index > 0; --index) {
    if (at >= text.size()) return std::string_view::npos;
    ++at;
    while (at < text.size() && IsContinuation(text[at])) ++at;
  }
  return at;
}

std::size_t CharacterBytes(std::string_view text, std::size_t at) {
  std::size_t size = 1;
  while (at + size < text.size() && IsContinuation(text[at + size])) ++size;
  return size;
}

Value OutOfRange(CallContext& c, std::int64_t index) {
  return NewError(c.arena, StrCat("index out of range: ", index));
}

Value CharAt(CallContext& c, Args args) {
  const std::string_view text = args[0].text();
  const std::int64_t index = args[1].integer;
  if (index < 0) return OutOfRange(c, index);
  const std::size_t at = OffsetOf(text, index);
  if (at == std::string_view::npos) return OutOfRange(c, index);
  if (at == text.size()) return MakeString("");
  return MakeString(text.substr(at, CharacterBytes(text, at)));
}

// Whether an offset beyond the end is an error or finds nothing.
enum class Beyond { kError, kNothing };

template <Beyond beyond>
Value IndexOf(CallContext& c, Args args) {
  const std::string_view text = args[0].text();
  const std::string_view part = args[1].text();
  const std::int64_t from = args.size() == 3 ? args[2].integer : 0;
  if (from < 0) return OutOfRange(c, from);
  const std::size_t at = OffsetOf(text, from);
  if (at == std::string_view::npos)
    return beyond == Beyond::kError ? OutOfRange(c, from) : MakeInt(-1);
  if (part.empty()) return MakeInt(from);
  const std::size_t found = text.find(part, at);
  if (found == std::string_view::npos) return MakeInt(-1);
  return MakeInt(static_cast<std::int64_t>(CountCharacters(text.substr(0, found))));
}

template <Beyond beyond>
Value LastIndexOf(CallContext& c, Args args) {
  const std::string_view text = args[0].text();
  const std::string_view part = args[1].text();
  const auto length = static_cast<std::int64_t>(CountCharacters(text));
  std::int64_t from = length;
  if (args.size() == 3) {
    from = args[2].integer;
    if (from < 0) return OutOfRange(c, from);
    if (from > length) return beyond == Beyond::kError ? OutOfRange(c, from) : MakeInt(-1);
  }
  if (part.empty()) return MakeInt(from);
  const std::size_t found = text.rfind(part, OffsetOf(text, from));
  if (found == std::string_view::npos) return MakeInt(-1);
  return MakeInt(static_cast<std::int64_t>(CountCharacters(text.substr(0, found))));
}

Value Lower(CallContext& c, Args args) {
  std::string text(args[0].text());
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char x) { return x >= 'A' && x <= 'Z' ? static_cast<char>(x + 32) : x; });
  return NewString(c.arena, text);
}
Value Upper(CallContext& c, Args args) {
  std::string text(args[0].text());
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char x) { return x >= 'a' && x <= 'z' ? static_cast<char>(x - 32) : x; });
  return NewString(c.arena, text);
}

Value Replace(CallContext& c, Args args) {
  const std::string_view text = args[0].text();
  const std::string_view from = args[1].text();
  const std::string_view to = args[2].text();
  std::int64_t left = args.size() == 4 ? args[3].integer : -1;
  std::string out;
  std::size_t at = 0;
  while (left != 0 && out.size() <= kMaxMadeBytes) {
    std::size_t found = from.empty() ? at : text.find(from, at);
    if (found == std::string_view::npos) break;
    // The empty text is found before every character and at the end.
    out += text.substr(at, found - at);
    out += to;
    --left;
    if (from.empty()) {
      if (at >= text.size()) return NewString(c.arena, out);
      const std::size_t size = CharacterBytes(text, at);
      out += text.substr(at, size);
      at += size;
    } else {
      at = found + from.size();
    }
  }
  if (out.size() > kMaxMadeBytes) return NewError(c.arena, "replace: result too long");
  out += text.substr(at);
  return NewString(c.arena, out);
}

Value Split(CallContext& c, Args args) {
  const std::string_view text = args[0].text();
  const std::string_view separator = args[1].text();
  const std::int64_t limit = args.size() == 3 ? args[2].integer : -1;
  std::vector<Value> parts;
  if (limit == 0) return NewList(c.arena, nullptr, 0);
  std::size_t at = 0;
  if (separator.empty()) {
    while (at < text.size()) {
      if (limit > 0 && static_cast<std::int64_t>(parts.size()) + 1 == limit) {
        parts.push_back(MakeString(text.substr(at)));
        break;
      }
      const std::size_t size = CharacterBytes(text, at);
      parts.push_back(MakeString(text.substr(at, size)));
      at += size;
    }
    return NewList(c.arena, parts.data(), parts.size());
  }
  for (;;) {
    const std::size_t found = limit > 0 && static_cast<std::int64_t>(parts.size()) + 1 == limit
                                  ? std::string_view::npos
                                  : text.find(separator, at);
    if (found == std::string_view::npos) {
      parts.push_back(MakeString(text.substr(at)));
      return NewList(c.arena, parts.data(), parts.size());
    }
    parts.push_back(MakeString(text.substr(at, found - at)));
    at = found + separator.size();
  }
}

Value Substring(CallContext& c, Args args) {
  const std::string_view text = args[0].text();
  const auto length = static_cast<std::int64_t>(CountCharacters(text));
  const std::int64_t start = args[1].integer;
  const std::int64_t end = args.size() == 3 ? args[2].integer : length;
  if (args.size() == 3 && start > end) {
    return NewError(c.arena, StrCat("invalid substring range. start: ", start, ", end: ", end));
  }
  if (start < 0 || start > length) return OutOfRange(c, start);
  if (end < 0 || end > length) return OutOfRange(c, end);
  const std::size_t from = OffsetOf(text, start);
  return MakeString(text.substr(from, OffsetOf(text, end) - from));
}

bool IsSpace(std::string_view character) {
  static constexpr std::string_view kSpaces[] = {
      " ",      "\t",     "\n",     "\v",     "\f",     "\r",     "\u0085", "\u00a0", "\u1680",
      "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008",
      "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};
  return std::find(std::begin(kSpaces), std::end(kSpaces), character) != std::end(kSpaces);
}

Value TrimText(CallContext&, Args args) {
  std::string_view text = args[0].text();
  while (!text.empty()) {
    const std::size_t size = CharacterBytes(text, 0);
    if (!IsSpace(text.substr(0, size))) break;
    text.remove_prefix(size);
  }
  while (!text.empty()) {
    std::size_t size = 1;
    while (size < text.size() && IsContinuation(text[text.size() - size])) ++size;
    if (!IsSpace(text.substr(text.size() - size))) break;
    text.remove_suffix(size);
  }
  return MakeString(text);
}

Value JoinTexts(CallContext& c, Args args) {
  std::string out;
  for (std::uint32_t i = 0; i < args[0].size; ++i) {
    const Value& item = ListItems(args[0])[i];
    if (item.kind != Kind::kString) return NoSuchOverload(c);
    if (i > 0 && args.size() == 2) out += args[1].text();
    out += item.text();
  }
  return NewString(c.arena, out);
}

Value ReverseText(CallContext& c, Args args) {
  const std::string_view text = args[0].text();
  std::string out;
  for (std::size_t end = text.size(); end > 0;) {
    std::size_t begin = end - 1;
    while (begin > 0 && IsContinuation(text[begin])) --begin;
    out += text.substr(begin, end - begin);
    end = begin;
  }
  return NewString(c.arena, out);
}

Value QuoteText(CallContext& c, Args args) {
  std::string out = "\"";
  const std::string_view text = args[0].text();
  for (std::size_t i = 0; i < text.size();) {
    static constexpr std::string_view kFrom = "\a\b\f\n\r\t\v\\\"";
    static constexpr std::string_view kTo = "abfnrtv\\\"";
    if (const std::size_t at = kFrom.find(text[i]); at != std::string_view::npos) {
      out += '\\';
      out += kTo[at];
      ++i;
      continue;
    }
    const std::size_t size = CharacterBytes(text, i);
    if (IsValidUtf8(text.substr(i, size))) {
      out += text.substr(i, size);
    } else {
      AppendUtf8(out, 0xFFFD);
    }
    i += size;
  }
  return NewString(c.arena, out + "\"");
}

template <FormatDialect dialect>
Value Format(CallContext& c, Args args) {
  if (args[0].kind != Kind::kString || args[1].kind != Kind::kList) return NoSuchOverload(c);
  const Result<std::string> text = FormatText(args[0].text(), args[1], dialect);
  return text.ok() ? NewString(c.arena, *text) : NewError(c.arena, text.error().message);
}

}  // namespace

void AddStrings(Declarations& d, int version) {
  const TypeRef& s = String();
  const Implementation index_of =
      version >= 4 ? IndexOf<Beyond::kError> : IndexOf<Beyond::kNothing>;
  const Implementation last_index_of =
      version >= 4 ? LastIndexOf<Beyond::kError> : LastIndexOf<Beyond::kNothing>;
  Member(d, "charAt", "string_char_at_int", {s, Int()}, s, CharAt);
  Member(d, "indexOf", "string_index_of_string", {s, s}, Int(), index_of);
  Member(d, "indexOf", "string_index_of_string_int", {s, s, Int()}, Int(), index_of);
  Member(d, "lastIndexOf", "string_last_index_of_string", {s, s}, Int(), last_index_of);
  Member(d, "lastIndexOf", "string_last_index_of_string_int", {s, s, Int()}, Int(), last_index_of);
  Member(d, "lowerAscii", "string_lower_ascii", {s}, s, Lower);
  Member(d, "upperAscii", "string_upper_ascii", {s}, s, Upper);
  Member(d, "replace", "string_replace_string_string", {s, s, s}, s, Replace);
  Member(d, "replace", "string_replace_string_string_int", {s, s, s, Int()}, s, Replace);
  Member(d, "split", "string_split_string", {s, s}, List(s), Split);
  Member(d, "split", "string_split_string_int", {s, s, Int()}, List(s), Split);
  Member(d, "substring", "string_substring_int", {s, Int()}, s, Substring);
  Member(d, "substring", "string_substring_int_int", {s, Int(), Int()}, s, Substring);
  Member(d, "trim", "string_trim", {s}, s, TrimText);
  Member(d, "join", "list_join", {List(s)}, s, JoinTexts);
  Member(d, "join", "list_join_string", {List(s), s}, s, JoinTexts);
  if (version >= 1) {
    Member(d, "format", "string_format", {s, List(Dyn())}, s,
           version >= 4 ? Format<FormatDialect::kPlain> : Format<FormatDialect::kQuoted>);
    Global(d, "strings.quote", "strings_quote", {s}, s, QuoteText);
  }
  if (version >= 3) Member(d, "reverse", "string_reverse", {s}, s, ReverseText);
}

}  // namespace drakkar::cel::library
