#include "cel/library/name_formats.h"

#include "base/text/text.h"
#include "cel/library/time.h"
#include "cel/library/url.h"

namespace drakkar::cel {
namespace {

using Problems = std::vector<std::string>;

bool IsLower(char c) {
  return c >= 'a' && c <= 'z';
}
bool IsUpper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool IsLowerAlnum(char c) {
  return IsLower(c) || IsDigit(c);
}
bool IsAlnum(char c) {
  return IsLowerAlnum(c) || IsUpper(c);
}

constexpr std::size_t kMaxLabel = 63;
constexpr std::size_t kMaxSubdomain = 253;

constexpr char kLabelMessage[] =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
constexpr char kSubdomainMessage[] =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
constexpr char kDns1035Message[] =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    "validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')";

std::string TooLong(std::size_t limit) {
  return StrCat("must be no more than ", limit, " bytes");
}

bool IsLabel(std::string_view text, bool alphabetic_start) {
  if (text.empty() || !IsLowerAlnum(text.front()) || !IsLowerAlnum(text.back())) return false;
  if (alphabetic_start && !IsLower(text.front())) return false;
  for (const char c : text) {
    if (!IsLowerAlnum(c) && c != '-') return false;
  }
  return true;
}

bool IsSubdomain(std::string_view text) {
  for (const std::string_view label : Split(text, '.')) {
    if (!IsLabel(label, false)) return false;
  }
  return true;
}

Problems Label(std::string_view text) {
  Problems problems;
  if (text.size() > kMaxLabel) problems.push_back(TooLong(kMaxLabel));
  if (!IsLabel(text, false)) {
    if (IsSubdomain(text)) {
      problems.emplace_back("must not contain dots");
    } else {
      problems.emplace_back(kLabelMessage);
    }
  }
  return problems;
}
Problems Subdomain(std::string_view text) {
  Problems problems;
  if (text.size() > kMaxSubdomain) problems.push_back(TooLong(kMaxSubdomain));
  if (!IsSubdomain(text)) problems.emplace_back(kSubdomainMessage);
  return problems;
}
Problems Dns1035(std::string_view text) {
  Problems problems;
  if (text.size() > kMaxLabel) problems.push_back(TooLong(kMaxLabel));
  if (!IsLabel(text, true)) problems.emplace_back(kDns1035Message);
  return problems;
}

// A prefix that ends in a dash is completed by a generated suffix.
template <Problems (*check)(std::string_view)>
Problems Prefix(std::string_view text) {
  if (text.size() > 1 && text.ends_with('-')) {
    std::string completed(text);
    completed.back() = 'a';
    return check(completed);
  }
  return check(text);
}

bool IsNamePart(std::string_view text) {
  if (text.empty() || !IsAlnum(text.front()) || !IsAlnum(text.back())) return false;
  for (const char c : text) {
    if (!IsAlnum(c) && c != '-' && c != '_' && c != '.') return false;
  }
  return true;
}

constexpr char kQualifiedNameMessage[] =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

Problems QualifiedName(std::string_view text) {
  Problems problems;
  const std::vector<std::string_view> parts = Split(text, '/');
  if (parts.size() > 2) {
    std::string message = "a qualified name ";
    message += std::string(kQualifiedNameMessage);
    message += " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
    return {message};
  }
  if (parts.size() == 2) {
    if (parts[0].empty()) {
      problems.emplace_back("prefix part must be non-empty");
    } else {
      for (const std::string& problem : Subdomain(parts[0]))
        problems.push_back("prefix part " + problem);
    }
  }
  const std::string_view name = parts.back();
  if (name.empty()) {
    problems.emplace_back("name part must be non-empty");
  } else if (name.size() > kMaxLabel) {
    problems.push_back("name part " + TooLong(kMaxLabel));
  }
  if (!IsNamePart(name)) problems.push_back(std::string("name part ") + kQualifiedNameMessage);
  return problems;
}

Problems LabelValue(std::string_view text) {
  Problems problems;
  if (text.size() > kMaxLabel) problems.push_back(TooLong(kMaxLabel));
  if (!text.empty() && !IsNamePart(text)) {
    problems.emplace_back(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
        "'.', and must start "
        "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
        "regex used for "
        "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')");
  }
  return problems;
}

Problems Uri(std::string_view text) {
  const Result<Url> url = ParseUrl(text);
  return url.ok() ? Problems{} : Problems{url.error().message};
}

Problems Uuid(std::string_view text) {
  // Dashes are optional, but each is allowed only in its place.
  std::string digits;
  for (std::size_t i = 0, group = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '-' && (group == 8 || group == 12 || group == 16 || group == 20) && !digits.empty() &&
        text[i - 1] != '-')
      continue;
    const bool hex = IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (!hex) return {"does not match the UUID format"};
    digits += c;
    group = digits.size();
  }
  return digits.size() == 32 ? Problems{} : Problems{"does not match the UUID format"};
}

Problems Byte(std::string_view text) {
  bool ok = text.size() % 4 == 0 && !text.empty();
  for (std::size_t i = 0; i < text.size() && ok; ++i) {
    const char c = text[i];
    ok = IsAlnum(c) || c == '+' || c == '/' || (c == '=' && i + 2 >= text.size());
  }
  return ok ? Problems{} : Problems{"invalid base64"};
}

Problems Date(std::string_view text) {
  return text.size() == 10 && ParseTimestamp(StrCat(text, "T00:00:00Z")) ? Problems{}
                                                                         : Problems{"invalid date"};
}

Problems DateTime(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c == 't') c = 'T';
    if (c == 'z') c = 'Z';
  }
  return ParseTimestamp(upper) ? Problems{} : Problems{"invalid datetime"};
}

}  // namespace

const std::array<NameFormat, kNameFormatCount>& NameFormats() {
  static constexpr std::array<NameFormat, kNameFormatCount> kFormats = {{
      {"dns1123Label", 30, Label},
      {"dns1123Subdomain", 60, Subdomain},
      {"dns1035Label", 30, Dns1035},
      {"qualifiedName", 60, QualifiedName},
      {"dns1123LabelPrefix", 30, Prefix<Label>},
      {"dns1123SubdomainPrefix", 60, Prefix<Subdomain>},
      {"dns1035LabelPrefix", 30, Prefix<Dns1035>},
      {"labelValue", 40, LabelValue},
      {"uri", 1'104, Uri},
      {"uuid", 71, Uuid},
      {"byte", 84, Byte},
      {"date", 71, Date},
      {"datetime", 71, DateTime},
  }};
  return kFormats;
}

}  // namespace drakkar::cel
