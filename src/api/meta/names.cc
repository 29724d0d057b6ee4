#include "api/meta/names.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::api {
namespace {

constexpr std::size_t kMaxLabelBytes = 63;
constexpr std::size_t kMaxSubdomainBytes = 253;

constexpr std::string_view kDnsLabelRule =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must "
    "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
    "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view kDnsSubdomainRule =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', "
    "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
    "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
constexpr std::string_view kDns1035LabelRule =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view kNameRule =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation "
    "is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
constexpr std::string_view kLabelValueRule =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

bool IsLower(char c) {
  return c >= 'a' && c <= 'z';
}
bool IsLowerOrDigit(char c) {
  return IsLower(c) || IsDigit(c);
}
bool IsAlphanumeric(char c) {
  return IsLowerOrDigit(c) || (c >= 'A' && c <= 'Z');
}

bool IsDnsLabelSyntax(std::string_view text) {
  return !text.empty() && IsLowerOrDigit(text.front()) && IsLowerOrDigit(text.back()) &&
         std::ranges::all_of(text, [](char c) { return IsLowerOrDigit(c) || c == '-'; });
}

// The name part of a label key, or a non-empty label value.
bool IsNameSyntax(std::string_view text) {
  return !text.empty() && IsAlphanumeric(text.front()) && IsAlphanumeric(text.back()) &&
         std::ranges::all_of(
             text, [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

std::string TooLong(std::size_t limit) {
  return StrCat("must be no more than ", limit, " bytes");
}

}  // namespace

Problems CheckDnsLabel(std::string_view text) {
  Problems problems;
  if (text.size() > kMaxLabelBytes) problems.push_back(TooLong(kMaxLabelBytes));
  if (!IsDnsLabelSyntax(text)) problems.emplace_back(kDnsLabelRule);
  return problems;
}

Problems CheckDnsSubdomain(std::string_view text) {
  Problems problems;
  if (text.size() > kMaxSubdomainBytes) problems.push_back(TooLong(kMaxSubdomainBytes));
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t dot = rest.find('.');
    more = dot != std::string_view::npos;
    if (!IsDnsLabelSyntax(rest.substr(0, dot))) {
      problems.emplace_back(kDnsSubdomainRule);
      break;
    }
    if (more) rest.remove_prefix(dot + 1);
  }
  return problems;
}

Problems CheckDns1035Label(std::string_view text) {
  Problems problems;
  if (text.size() > kMaxLabelBytes) problems.push_back(TooLong(kMaxLabelBytes));
  if (!IsDnsLabelSyntax(text) || !IsLower(text.front())) problems.emplace_back(kDns1035LabelRule);
  return problems;
}

Problems CheckLabelKey(std::string_view text) {
  Problems problems;
  const std::size_t slash = text.find('/');
  const bool has_prefix = slash != std::string_view::npos;
  if (has_prefix && text.find('/', slash + 1) != std::string_view::npos) {
    problems.push_back(StrCat("a valid label key ", kNameRule,
                              " with an optional DNS subdomain prefix and '/' (e.g. "
                              "'example.com/MyName')"));
    return problems;
  }
  if (slash == 0) {
    problems.emplace_back("prefix part must be non-empty");
  } else if (has_prefix) {
    for (const std::string& problem : CheckDnsSubdomain(text.substr(0, slash))) {
      problems.push_back("prefix part " + problem);
    }
  }
  const std::string_view name = has_prefix ? text.substr(slash + 1) : text;
  if (name.empty()) {
    problems.emplace_back("name part must be non-empty");
  } else if (name.size() > kMaxLabelBytes) {
    problems.push_back("name part " + TooLong(kMaxLabelBytes));
  }
  if (!IsNameSyntax(name)) problems.push_back(StrCat("name part ", kNameRule));
  return problems;
}

Problems CheckLabelValue(std::string_view text) {
  Problems problems;
  if (text.size() > kMaxLabelBytes) problems.push_back(TooLong(kMaxLabelBytes));
  if (!text.empty() && !IsNameSyntax(text)) problems.emplace_back(kLabelValueRule);
  return problems;
}

}  // namespace drakkar::api
