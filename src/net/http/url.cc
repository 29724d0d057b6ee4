#include "net/http/url.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::net {
namespace {

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

bool IsHostChar(char c) {
  return IsUnreserved(c) || c == '%';
}

bool IsIp6Char(char c) {
  return HexValue(c) >= 0 || c == ':' || c == '.';
}

bool IsVisibleAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace

std::string Url::Authority() const {
  std::string text = host.find(':') != std::string::npos ? StrCat("[", host, "]") : host;
  if (port != (scheme == "https" ? 443 : 80)) text += StrCat(":", port);
  return text;
}

Result<Url> ParseUrl(std::string_view text) {
  Url url;
  const std::string_view whole = text;
  auto bad = [&](std::string_view why) {
    return InvalidArgument(StrCat("URL ", Quote(whole), " ", why));
  };
  if (text.starts_with("https://")) {
    url.scheme = "https";
    url.port = 443;
    text.remove_prefix(8);
  } else if (text.starts_with("http://")) {
    url.scheme = "http";
    url.port = 80;
    text.remove_prefix(7);
  } else {
    return bad("does not start with http:// or https://");
  }
  const std::size_t end = text.find_first_of("/?#");
  std::string_view authority = text.substr(0, end);
  std::string_view rest = end == std::string_view::npos ? std::string_view() : text.substr(end);
  if (authority.find('@') != std::string_view::npos) return bad("contains user information");
  if (rest.find('#') != std::string_view::npos) return bad("contains a fragment");
  std::string_view port;
  bool has_port = false;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return bad("has an unclosed bracket");
    url.host = authority.substr(1, close - 1);
    if (!std::all_of(url.host.begin(), url.host.end(), IsIp6Char)) return bad("has a bad address");
    std::string_view tail = authority.substr(close + 1);
    if (!tail.empty()) {
      if (tail[0] != ':') return bad("has text after the bracket");
      has_port = true;
      port = tail.substr(1);
    }
  } else {
    const std::size_t colon = authority.find(':');
    url.host = authority.substr(0, colon);
    if (!std::all_of(url.host.begin(), url.host.end(), IsHostChar)) return bad("has a bad host");
    if (colon != std::string_view::npos) {
      has_port = true;
      port = authority.substr(colon + 1);
    }
  }
  if (url.host.empty()) return bad("has no host");
  if (has_port) {
    const bool digits =
        !port.empty() && port.size() <= 5 &&
        std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
    const std::int64_t number = digits ? *ParseInt64(port) : 0;
    if (number < 1 || number > 65535) return bad("has a bad port");
    url.port = static_cast<std::uint16_t>(number);
  }
  if (!rest.empty()) url.target = rest[0] == '/' ? std::string(rest) : StrCat("/", rest);
  if (!IsVisibleAscii(url.target)) return bad("has a character that must be percent-encoded");
  return url;
}

Result<std::string> PercentDecode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] == '\0') {
      return InvalidArgument("invalid NUL in a URL");
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 2 < text.size() ? HexValue(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexValue(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return InvalidArgument(StrCat("invalid URL escape ", Quote(text.substr(i, 3))));
      }
      const int byte = high * 16 + low;
      if (byte == 0) return InvalidArgument("invalid URL escape \"%00\"");
      out += static_cast<char>(byte);
      i += 2;
    }
  }
  return out;
}

std::string PercentEncode(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    if (IsUnreserved(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

Result<Query> Query::Parse(std::string_view raw) {
  Query query;
  if (raw.empty()) return query;
  for (std::string_view part : Split(raw, '&')) {
    if (part.empty()) continue;
    if (part.find(';') != std::string_view::npos) {
      return InvalidArgument("a semicolon in the query must be percent-encoded");
    }
    if (query.parameters_.size() == kMaxParameters) {
      return InvalidArgument(StrCat("more than ", kMaxParameters, " query parameters"));
    }
    const std::size_t equals = part.find('=');
    ASSIGN_OR_RETURN(std::string name, PercentDecode(part.substr(0, equals), true));
    std::string value;
    if (equals != std::string_view::npos) {
      ASSIGN_OR_RETURN(value, PercentDecode(part.substr(equals + 1), true));
    }
    query.parameters_.emplace_back(std::move(name), std::move(value));
  }
  return query;
}

const std::string* Query::Find(std::string_view name) const {
  for (const auto& [key, value] : parameters_) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::string_view Query::Get(std::string_view name) const {
  const std::string* value = Find(name);
  return value ? std::string_view(*value) : std::string_view();
}

Result<Target> ParseTarget(std::string_view target) {
  if (!target.starts_with('/')) return InvalidArgument("the request target is not a path");
  if (!IsVisibleAscii(target)) {
    return InvalidArgument("the request target has a character that must be percent-encoded");
  }
  if (target.find('#') != std::string_view::npos) {
    return InvalidArgument("the request target contains a fragment");
  }
  Target parsed;
  const std::size_t question = target.find('?');
  parsed.raw_path = target.substr(0, question);
  if (question != std::string_view::npos) parsed.raw_query = target.substr(question + 1);
  if (parsed.raw_path.find('%') == std::string::npos) {
    parsed.path = parsed.raw_path;
  } else {
    ASSIGN_OR_RETURN(parsed.path, PercentDecode(parsed.raw_path));
  }
  return parsed;
}

}  // namespace drakkar::net
