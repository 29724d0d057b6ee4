#include "apiserver/validation/name_rules.h"

#include <algorithm>

#include "api/meta/interface_address.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldError;
using api::FieldPath;
using api::Problems;

constexpr std::size_t kMaxLabelBytes = 63;
constexpr std::size_t kMaxSubdomainBytes = 253;
constexpr std::string_view kShortName = "format=k8s-short-name";
constexpr std::string_view kLongName = "format=k8s-long-name";
constexpr std::string_view kCaselessName = "format=k8s-long-name-caseless";
constexpr std::string_view kPoolName = "format=k8s-resource-pool-name";
constexpr std::string_view kFullName = "format=k8s-resource-fully-qualified-name";
constexpr std::string_view kLabelKey = "format=k8s-label-key";
constexpr std::string_view kUuid = "format=k8s-uuid";
constexpr std::string_view kExtendedResource = "format=k8s-extended-resource-name";
constexpr std::string_view kIdentifierRule =
    "a valid C identifier must start with alphabetic character or '_', followed by a string of "
    "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for "
    "validation is '[A-Za-z_][A-Za-z0-9_]*')";
constexpr std::string_view kCaselessRule =
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'Example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
constexpr std::string_view kNeedsDomain =
    "a fully qualified name must be a domain and a name separated by a slash";

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool IsHex(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool IsIdentifier(std::string_view text) {
  return !text.empty() && !IsDigit(text.front()) &&
         std::ranges::all_of(text, [](char c) { return IsLetter(c) || IsDigit(c) || c == '_'; });
}

std::string LongerThan(std::size_t limit, std::string_view unit) {
  return StrCat("must be no more than ", limit, " ", unit);
}

// Checks the syntax only, not the length.
bool HasSubdomainSyntax(std::string_view text) {
  const Problems problems = api::CheckDnsSubdomain(text);
  return problems.size() == (text.size() > kMaxSubdomainBytes ? 1u : 0u);
}

Problems LabelProblems(std::string_view text, std::string_view unit) {
  Problems problems = api::CheckDnsLabel(text);
  if (text.size() > kMaxLabelBytes) problems.front() = LongerThan(kMaxLabelBytes, unit);
  const bool bad_syntax = problems.size() > (text.size() > kMaxLabelBytes ? 1u : 0u);
  if (bad_syntax && HasSubdomainSyntax(text)) problems.back() = "must not contain dots";
  return problems;
}

Problems SubdomainProblems(std::string_view text, std::string_view unit) {
  Problems problems = api::CheckDnsSubdomain(text);
  if (text.size() > kMaxSubdomainBytes) problems.front() = LongerThan(kMaxSubdomainBytes, unit);
  return problems;
}

Problems WithPrefix(std::string_view prefix, Problems problems) {
  for (std::string& problem : problems) problem.insert(0, prefix);
  return problems;
}

void CheckIdentifier(Findings& out, const FieldPath& path, std::string_view name,
                     std::string_view origin, Covered covered) {
  if (name.size() > kMaxIdentifierBytes) {
    out.Add(FieldError::TooLong(path, kMaxIdentifierBytes), origin, covered);
  }
  if (!IsIdentifier(name)) {
    out.Add(FieldError::Invalid(path, name, std::string(kIdentifierRule)), origin, covered);
  }
}

void DeclareProblems(Findings& out, const FieldPath& path, std::string_view value,
                     const Problems& problems, std::string_view origin, bool beta) {
  for (const std::string& problem : problems) {
    out.AddDeclared(FieldError::Invalid(path, value, problem), origin, beta);
  }
}

void DeclareIdentifier(Findings& out, const FieldPath& path, std::string_view name, bool beta) {
  if (name.size() > kMaxIdentifierBytes) {
    out.AddDeclared(FieldError::TooLong(path, kMaxIdentifierBytes), kFullName, beta);
  }
  if (!IsIdentifier(name)) {
    out.AddDeclared(FieldError::Invalid(path, name, std::string(kIdentifierRule)), kFullName, beta);
  }
}

bool IsCanonicalUuid(std::string_view id) {
  if (id.size() != 36) return false;
  for (std::size_t i = 0; i < id.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? id[i] != '-' : !(IsDigit(id[i]) || (id[i] >= 'a' && id[i] <= 'f'))) return false;
  }
  return true;
}

// Checks a UUID in any of the accepted forms: 36 characters, the same with "urn:uuid:" or in
// braces, or 32 digits.
Result<void> CheckUuid(std::string_view id) {
  constexpr std::string_view kUrn = "urn:uuid:";
  if (id.size() == 36 + kUrn.size()) {
    if (ToLower(id.substr(0, kUrn.size())) != kUrn) {
      return InvalidArgument(StrCat("invalid urn prefix: ", Quote(id.substr(0, kUrn.size()))));
    }
    id.remove_prefix(kUrn.size());
  } else if (id.size() == 38) {
    if (id.front() != '{' || id.back() != '}') {
      return InvalidArgument("invalid bracketed UUID format");
    }
    id = id.substr(1, 36);
  } else if (id.size() == 32) {
    if (!std::ranges::all_of(id, IsHex)) return InvalidArgument("invalid UUID format");
    return Ok();
  } else if (id.size() != 36) {
    return InvalidArgument(StrCat("invalid UUID length: ", id.size()));
  }
  for (std::size_t i = 0; i < id.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? id[i] != '-' : !IsHex(id[i])) return InvalidArgument("invalid UUID format");
  }
  return Ok();
}

}  // namespace

Problems DnsLabelProblems(std::string_view text) {
  return LabelProblems(text, "characters");
}
Problems DnsSubdomainProblems(std::string_view text) {
  return SubdomainProblems(text, "characters");
}

void CheckLabelName(Findings& out, const FieldPath& path, std::string_view name, Covered covered) {
  out.AddProblems(path, name, DnsLabelProblems(name), kShortName, covered);
}

void CheckSubdomainName(Findings& out, const FieldPath& path, std::string_view name,
                        Covered covered) {
  out.AddProblems(path, name, DnsSubdomainProblems(name), kLongName, covered);
}

void CheckDriverName(Findings& out, const FieldPath& path, std::string_view name, Covered covered) {
  if (name.empty()) {
    out.Add(FieldError::Required(path, ""), {}, covered);
    return;
  }
  const bool yes = covered == Covered::kYes;
  if (name.size() > kMaxDriverBytes) {
    out.Add(FieldError::TooLong(path, kMaxDriverBytes), yes ? "maxLength" : "", covered);
  }
  out.AddProblems(path, name, DnsSubdomainProblems(ToLower(name)), yes ? kCaselessName : "",
                  covered);
}

void CheckPoolName(Findings& out, const FieldPath& path, std::string_view name, Covered covered) {
  if (name.empty()) {
    out.Add(FieldError::Required(path, ""), {}, covered);
    return;
  }
  if (name.size() > kMaxPoolBytes) {
    out.Add(FieldError::TooLong(path, kMaxPoolBytes), kPoolName, covered);
  }
  for (const std::string_view part : Split(name, '/')) {
    out.AddProblems(path, part, DnsSubdomainProblems(part), kPoolName, covered);
  }
}

void CheckNodeName(Findings& out, const FieldPath& path, std::string_view name) {
  out.AddProblems(path, name, DnsSubdomainProblems(name));
}

void CheckQualifiedName(Findings& out, const FieldPath& path, std::string_view name,
                        std::string_view origin, Covered covered) {
  const std::vector<std::string_view> parts = Split(name, '/');
  if (parts.size() <= 1) {
    CheckIdentifier(out, path, name, origin, covered);
    return;
  }
  // Kubernetes does not check names with more than one slash any further, and stored objects have
  // them.
  if (parts.size() > 2) return;
  if (parts[0].empty()) {
    out.Add(FieldError::Invalid(path, "", "the domain must not be empty"), origin, covered);
  } else {
    Findings domain;
    CheckDriverName(domain, path, parts[0]);
    for (Finding& finding : domain.list()) out.Add(std::move(finding.error), origin, covered);
  }
  if (parts[1].empty()) {
    out.Add(FieldError::Invalid(path, "", "the name must not be empty"), origin, covered);
  } else {
    CheckIdentifier(out, path, parts[1], origin, covered);
  }
}

void CheckFullyQualifiedName(Findings& out, const FieldPath& path, std::string_view name,
                             Covered covered) {
  CheckQualifiedName(out, path, name, kFullName, covered);
  if (name.find('/') == std::string_view::npos) {
    out.Add(FieldError::Invalid(path, name, std::string(kNeedsDomain)), kFullName, covered);
  }
}

void CheckLabelKeyName(Findings& out, const FieldPath& path, std::string_view name,
                       Covered covered) {
  out.AddProblems(path, name, api::CheckLabelKey(name), kLabelKey, covered);
}

void CheckShareId(Findings& out, const FieldPath& path, std::string_view id, Covered covered) {
  if (const Result<void> checked = CheckUuid(id); !checked.ok()) {
    out.Add(
        FieldError::Invalid(path, id, StrCat("error validating uid: ", checked.error().message)),
        kUuid, covered);
  } else if (!IsCanonicalUuid(id)) {
    out.Add(FieldError::Invalid(path, id,
                                "uid must be in RFC 4122 normalized form, "
                                "`xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal "
                                "characters"),
            kUuid, covered);
  }
}

bool IsExtendedResourceName(std::string_view name) {
  if (name.find('/') == std::string_view::npos) return false;
  if (name.find("kubernetes.io/") != std::string_view::npos) return false;
  if (name.starts_with("requests.")) return false;
  return api::CheckLabelKey(StrCat("requests.", name)).empty();
}

void DeclareShortName(Findings& out, const FieldPath& path, std::string_view name, bool beta) {
  DeclareProblems(out, path, name, LabelProblems(name, "bytes"), kShortName, beta);
}

void DeclareLongName(Findings& out, const FieldPath& path, std::string_view name, bool beta) {
  DeclareProblems(out, path, name, SubdomainProblems(name, "bytes"), kLongName, beta);
}

void DeclareCaselessName(Findings& out, const FieldPath& path, std::string_view name, bool beta) {
  Problems problems = SubdomainProblems(ToLower(name), "bytes");
  if (!HasSubdomainSyntax(ToLower(name))) problems.back() = kCaselessRule;
  DeclareProblems(out, path, name, problems, kCaselessName, beta);
}

void DeclarePoolName(Findings& out, const FieldPath& path, std::string_view name, bool beta) {
  if (name.size() > kMaxPoolBytes) {
    out.AddDeclared(FieldError::TooLong(path, kMaxPoolBytes), kPoolName, beta);
  }
  std::size_t index = 0;
  for (const std::string_view part : Split(name, '/')) {
    const std::string segment = StrCat("segment ", index++, ": ");
    if (part.empty()) {
      out.AddDeclared(FieldError::Invalid(path, name, segment + "must not be empty"), kPoolName,
                      beta);
    } else {
      DeclareProblems(out, path, part, WithPrefix(segment, SubdomainProblems(part, "bytes")),
                      kPoolName, beta);
    }
  }
}

void DeclareFullyQualifiedName(Findings& out, const FieldPath& path, std::string_view name,
                               bool beta) {
  const std::vector<std::string_view> parts = Split(name, '/');
  if (parts.size() <= 1) DeclareIdentifier(out, path, name, beta);
  if (parts.size() == 2) {
    if (parts[0].empty()) {
      out.AddDeclared(FieldError::Invalid(path, "", "prefix must not be empty"), kFullName, beta);
    } else {
      if (parts[0].size() > kMaxDriverBytes) {
        out.AddDeclared(FieldError::TooLong(path, kMaxDriverBytes), kFullName, beta);
      }
      DeclareProblems(out, path, parts[0],
                      WithPrefix("prefix: ", SubdomainProblems(parts[0], "bytes")), kFullName,
                      beta);
    }
    if (parts[1].empty()) {
      out.AddDeclared(FieldError::Invalid(path, "", "name must not be empty"), kFullName, beta);
    } else {
      DeclareIdentifier(out, path, parts[1], beta);
    }
  }
  if (name.find('/') == std::string_view::npos) {
    out.AddDeclared(FieldError::Invalid(path, name, std::string(kNeedsDomain)), kFullName, beta);
  }
}

void CheckInterfaceAddress(Findings& out, const FieldPath& path, std::string_view address) {
  const Result<void> checked = api::CheckInterfaceAddress(address);
  if (!checked.ok()) out.Add(FieldError::Invalid(path, address, checked.error().message));
}

void DeclareLabelKey(Findings& out, const FieldPath& path, std::string_view name, bool beta) {
  DeclareProblems(out, path, name, api::CheckLabelKey(name), kLabelKey, beta);
}

void DeclareUuid(Findings& out, const FieldPath& path, std::string_view id, bool beta) {
  if (IsCanonicalUuid(id)) return;
  out.AddDeclared(FieldError::Invalid(path, id, "must be a lowercase UUID in 8-4-4-4-12 format"),
                  kUuid, beta);
}

void DeclareExtendedResourceName(Findings& out, const FieldPath& path, std::string_view name,
                                 bool beta) {
  Problems problems;
  if (name.find('/') == std::string_view::npos) {
    problems.emplace_back("a name must be a domain-prefixed path, such as 'example.com/my-prop'");
  } else if (name.find("kubernetes.io/") != std::string_view::npos) {
    problems.emplace_back("must not have \"kubernetes.io/\" domain");
  }
  if (name.starts_with("requests.")) problems.emplace_back("must not have \"requests.\" prefix");
  for (std::string& problem : api::CheckLabelKey(StrCat("requests.", name))) {
    problems.push_back(std::move(problem));
  }
  DeclareProblems(out, path, name, problems, kExtendedResource, beta);
}

}  // namespace drakkar::apiserver
