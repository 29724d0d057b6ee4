#include "cel/library/url.h"

#include "base/text/text.h"

namespace drakkar::cel {
namespace {

Error ParseError(std::string_view text, std::string_view reason) {
  return InvalidArgument(StrCat("parse ", Quote(text), ": ", reason));
}

bool IsAlpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Null if all escapes are well formed, otherwise the first one that is not.
std::optional<std::string> BadEscape(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') continue;
    if (i + 2 >= text.size() || HexValue(text[i + 1]) < 0 || HexValue(text[i + 2]) < 0) {
      return std::string(text.substr(i, 3));
    }
    i += 2;
  }
  return std::nullopt;
}

std::optional<std::string> Unescape(std::string_view text) {
  if (BadEscape(text)) return std::nullopt;
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += ' ';
    } else if (text[i] == '%') {
      out += static_cast<char>(HexValue(text[i + 1]) * 16 + HexValue(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// Bytes that need no escape in a path.
std::string EscapePath(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (IsAlpha(c) || IsDigit(c) ||
        std::string_view("-_.~$&+,/:;=@!'()*[]%").find(c) != std::string_view::npos) {
      out += c;
    } else {
      static constexpr char kHex[] = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

bool ValidPort(std::string_view port) {
  if (port.empty()) return true;
  if (port[0] != ':') return false;
  for (const char c : port.substr(1)) {
    if (!IsDigit(c)) return false;
  }
  return true;
}

}  // namespace

std::string_view Url::Hostname() const {
  std::string_view name = host;
  if (name.starts_with('[')) {
    const std::size_t end = name.rfind(']');
    return end == std::string_view::npos ? name : name.substr(1, end - 1);
  }
  return name.substr(0, name.rfind(':'));
}

std::string_view Url::Port() const {
  // After the last colon, as in Go: "a:b:80" has the host "a:b".
  const std::string_view name = host;
  const std::size_t bracket = name.rfind(']');
  const std::size_t colon = name.rfind(':');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket))
    return {};
  return name.substr(colon + 1);
}

std::vector<std::pair<std::string, std::string>> Url::QueryValues() const {
  std::vector<std::pair<std::string, std::string>> values;
  for (const std::string_view part : Split(query, '&')) {
    if (part.empty() || part.find(';') != std::string_view::npos) continue;
    const std::size_t equals = part.find('=');
    const std::optional<std::string> key = Unescape(part.substr(0, equals));
    const std::optional<std::string> value =
        Unescape(equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1));
    if (key && value) values.emplace_back(*key, *value);
  }
  return values;
}

Result<Url> ParseUrl(std::string_view text) {
  if (text.empty()) return ParseError(text, "empty url");
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      return ParseError(text, "net/url: invalid control character in URL");
  }
  Url url;
  url.text = text;
  std::string_view rest = text;
  // Scheme.
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const char c = rest[i];
    if (IsAlpha(c)) continue;
    if (IsDigit(c) || c == '+' || c == '-' || c == '.') {
      if (i == 0) break;
      continue;
    }
    if (c == ':') {
      if (i == 0) return ParseError(text, "missing protocol scheme");
      url.scheme = ToLower(rest.substr(0, i));
      rest.remove_prefix(i + 1);
    }
    break;
  }
  if (url.scheme.empty() && !rest.starts_with('/'))
    return ParseError(text, "invalid URI for request");
  if (!url.scheme.empty() && !rest.starts_with('/')) {
    // An opaque URL is absolute.
    url.escaped_path = "";
    return url;
  }
  rest = rest.substr(0, rest.find('#'));
  if (const std::size_t question = rest.find('?'); question != std::string_view::npos) {
    url.query = rest.substr(question + 1);
    rest = rest.substr(0, question);
  }
  if (rest.starts_with("//") && (!url.scheme.empty() || !rest.starts_with("///"))) {
    rest.remove_prefix(2);
    std::string_view authority = rest.substr(0, rest.find('/'));
    rest.remove_prefix(authority.size());
    if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos)
      authority.remove_prefix(at + 1);
    if (authority.starts_with('[')) {
      const std::size_t end = authority.rfind(']');
      if (end == std::string_view::npos) return ParseError(text, "missing ']' in host");
      if (!ValidPort(authority.substr(end + 1))) {
        return ParseError(text,
                          StrCat("invalid port ", Quote(authority.substr(end + 1)), " after host"));
      }
    } else if (const std::size_t colon = authority.rfind(':'); colon != std::string_view::npos) {
      if (!ValidPort(authority.substr(colon))) {
        return ParseError(text,
                          StrCat("invalid port ", Quote(authority.substr(colon)), " after host"));
      }
    }
    for (const char c : authority) {
      if (c == ' ' || c == '<' || c == '>' || c == '"' || c == '\\' || c == '^' || c == '`' ||
          c == '{' || c == '|' || c == '}') {
        return ParseError(text,
                          StrCat("invalid character ", Quote(std::string(1, c)), " in host name"));
      }
    }
    if (const auto bad = BadEscape(authority))
      return ParseError(text, StrCat("invalid URL escape ", Quote(*bad)));
    url.host = authority;
  }
  if (const auto bad = BadEscape(rest))
    return ParseError(text, StrCat("invalid URL escape ", Quote(*bad)));
  url.escaped_path = EscapePath(rest);
  return url;
}

}  // namespace drakkar::cel
