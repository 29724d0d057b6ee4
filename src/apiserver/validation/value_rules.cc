#include "apiserver/validation/value_rules.h"

#include <algorithm>
#include <limits>

#include "api/meta/interface_address.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/name_rules.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldError;
using api::FieldErrors;
using api::FieldPath;
using api::Value;

constexpr std::int64_t kMaxPort = 65'535;
constexpr std::size_t kMaxPortNameBytes = 15;
constexpr std::size_t kMaxConfigKeyBytes = 253;
constexpr std::size_t kMaxSignerDomainBytes = 253;
// Domain, "/", namespace, ".", name.
constexpr std::size_t kMaxSignerBytes = 253 + 1 + 63 + 1 + 253;
constexpr std::int64_t kMaxFileMode = 0777;

bool IsLower(char c) {
  return c >= 'a' && c <= 'z';
}
bool IsAlphanumeric(char c) {
  return IsLower(c) || (c >= 'A' && c <= 'Z') || IsDigit(c);
}

bool HasBackstep(std::string_view file) {
  return std::ranges::any_of(Split(file, '/'), [](std::string_view part) { return part == ".."; });
}

}  // namespace

void CheckInRange(FieldErrors& errors, const FieldPath& path, std::int64_t number, std::int64_t low,
                  std::int64_t high) {
  if (number >= low && number <= high) return;
  errors.push_back(
      Invalid(path, number, StrCat("must be between ", low, " and ", high, ", inclusive")));
}

void CheckNotNegative(FieldErrors& errors, const FieldPath& path, std::int64_t number) {
  if (number >= 0) return;
  errors.push_back(Invalid(path, number, "must be greater than or equal to 0"));
}

void CheckPortNumber(FieldErrors& errors, const FieldPath& path, std::int64_t port) {
  CheckInRange(errors, path, port, 1, kMaxPort);
}

void CheckPortName(FieldErrors& errors, const FieldPath& path, std::string_view name) {
  const auto add = [&](std::string_view detail) { errors.push_back(Invalid(path, name, detail)); };
  if (name.size() > kMaxPortNameBytes) {
    add(StrCat("must be no more than ", kMaxPortNameBytes, " characters"));
  }
  const auto is_allowed = [](char c) { return IsLower(c) || IsDigit(c) || c == '-'; };
  if (name.empty() || !std::ranges::all_of(name, is_allowed)) {
    add("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (std::ranges::none_of(name, IsLower)) add("must contain at least one letter (a-z)");
  if (name.find("--") != std::string_view::npos) add("must not contain consecutive hyphens");
  if (name.starts_with('-') || name.ends_with('-')) add("must not begin or end with a hyphen");
}

void CheckPort(FieldErrors& errors, const FieldPath& path, Value port) {
  if (port.is_string()) {
    CheckPortName(errors, path, port.str());
  } else {
    CheckPortNumber(errors, path, port.integer());
  }
}

void CheckIpAddress(FieldErrors& errors, const FieldPath& path, std::string_view address) {
  AddProblems(errors, path, address, api::CheckIpAddress(address));
}

void CheckNetwork(FieldErrors& errors, const FieldPath& path, std::string_view network) {
  AddProblems(errors, path, network, api::CheckNetwork(network));
}

void CheckEndpointAddress(FieldErrors& errors, const FieldPath& path, std::string_view address) {
  const bool is_v6 = address.find(':') != std::string_view::npos;
  const std::string network = StrCat(address, is_v6 ? "/128" : "/32");
  const auto is_in = [&](std::string_view range) {
    return api::IsStrictSubnet(network, range).value_or(false);
  };
  if (address == "0.0.0.0" || address == "::") {
    errors.push_back(Invalid(path, address, StrCat("may not be unspecified (", address, ")")));
  } else if (is_in("169.254.0.0/16") || is_in("fe80::/10")) {
    errors.push_back(
        Invalid(path, address, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"));
  } else if (is_in("224.0.0.0/24") || is_in("ff02::/16")) {
    errors.push_back(Invalid(
        path, address, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"));
  }
}

void CheckDnsLabel(FieldErrors& errors, const FieldPath& path, std::string_view name) {
  AddProblems(errors, path, name, DnsLabelProblems(name));
}

void CheckDnsSubdomain(FieldErrors& errors, const FieldPath& path, std::string_view name) {
  AddProblems(errors, path, name, DnsSubdomainProblems(name));
}

void RequireText(FieldErrors& errors, const FieldPath& path, std::string_view text) {
  if (text.empty()) errors.push_back(Required(path));
}

void RequireDnsLabel(FieldErrors& errors, const FieldPath& path, std::string_view name) {
  if (name.empty()) {
    errors.push_back(Required(path));
  } else {
    CheckDnsLabel(errors, path, name);
  }
}

void RequireDnsSubdomain(FieldErrors& errors, const FieldPath& path, std::string_view name) {
  if (name.empty()) {
    errors.push_back(Required(path));
  } else {
    CheckDnsSubdomain(errors, path, name);
  }
}

void CheckOneOf(FieldErrors& errors, const FieldPath& path, std::string_view text,
                std::initializer_list<std::string_view> supported) {
  if (std::ranges::find(supported, text) != supported.end()) return;
  errors.push_back(NotSupported(path, text, {supported.begin(), supported.end()}));
}

void CheckOneOf(FieldErrors& errors, const FieldPath& path, std::string_view text,
                const std::vector<std::string_view>& supported) {
  if (std::ranges::find(supported, text) != supported.end()) return;
  errors.push_back(NotSupported(path, text, supported));
}

void RequireOneOf(FieldErrors& errors, const FieldPath& path, std::string_view text,
                  std::initializer_list<std::string_view> supported) {
  if (text.empty()) {
    errors.push_back(Required(path));
  } else {
    CheckOneOf(errors, path, text, supported);
  }
}

void CheckUserOrGroupId(FieldErrors& errors, const FieldPath& path, Value id) {
  if (!id.has_value()) return;
  CheckInRange(errors, path, id.integer(), 0, std::numeric_limits<std::int32_t>::max());
}

void CheckFileMode(FieldErrors& errors, const FieldPath& path, Value mode) {
  if (!mode.has_value() || (mode.integer() >= 0 && mode.integer() <= kMaxFileMode)) return;
  errors.push_back(
      Invalid(path, mode.integer(), "must be a number between 0 and 0777 (octal), both inclusive"));
}

void CheckNoBacksteps(FieldErrors& errors, const FieldPath& path, std::string_view file) {
  if (HasBackstep(file)) errors.push_back(Invalid(path, file, "must not contain '..'"));
}

void CheckRelativePath(FieldErrors& errors, const FieldPath& path, std::string_view file) {
  if (file.starts_with('/')) errors.push_back(Invalid(path, file, "must be a relative path"));
  CheckNoBacksteps(errors, path, file);
}

void CheckVolumeFile(FieldErrors& errors, const FieldPath& path, std::string_view file) {
  CheckRelativePath(errors, path, file);
  if (file.starts_with("..") && !file.starts_with("../")) {
    errors.push_back(Invalid(path, file, "must not start with '..'"));
  }
}

void CheckSearchDomain(FieldErrors& errors, const FieldPath& path, std::string_view domain) {
  constexpr std::size_t kMaxBytes = 253;
  if (domain.size() > kMaxBytes) {
    errors.push_back(
        Invalid(path, domain, StrCat("must be no more than ", kMaxBytes, " characters")));
  }
  const auto is_end = [](char c) { return IsLower(c) || IsDigit(c); };
  const auto is_label = [&](std::string_view label) {
    if (label.starts_with('_')) label.remove_prefix(1);
    return !label.empty() && is_end(label.front()) && is_end(label.back()) &&
           std::ranges::all_of(label, [&](char c) { return is_end(c) || c == '-' || c == '_'; });
  };
  if (std::ranges::all_of(Split(domain, '.'), is_label)) return;
  errors.push_back(
      Invalid(path, domain,
              "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
              "'_', '-' or '.', and must start and end with an alphanumeric character (e.g. "
              "'example.com', regex used for validation is "
              "'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"));
}

void CheckEnvironmentName(FieldErrors& errors, const FieldPath& path, std::string_view name) {
  if (name.empty()) {
    errors.push_back(Invalid(path, name, "environment variable name must be non-empty"));
  }
  const auto is_allowed = [](char c) { return c >= ' ' && c <= '~' && c != '='; };
  if (std::ranges::all_of(name, is_allowed)) return;
  errors.push_back(Invalid(path, name,
                           "a valid environment variable name must consist only of printable "
                           "ASCII characters other than '='"));
}

void CheckHeaderName(FieldErrors& errors, const FieldPath& path, std::string_view name) {
  const auto is_allowed = [](char c) { return IsAlphanumeric(c) || c == '-'; };
  if (!name.empty() && std::ranges::all_of(name, is_allowed)) return;
  errors.push_back(Invalid(path, name,
                           "a valid HTTP header must consist of alphanumeric characters or '-' "
                           "(e.g. 'X-Header-Name', regex used for validation is "
                           "'[-A-Za-z0-9]+')"));
}

api::Problems ConfigKeyProblems(std::string_view key) {
  api::Problems problems;
  if (key.size() > kMaxConfigKeyBytes) {
    problems.push_back(StrCat("must be no more than ", kMaxConfigKeyBytes, " characters"));
  }
  const auto is_allowed = [](char c) {
    return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
  };
  if (key.empty() || !std::ranges::all_of(key, is_allowed)) {
    problems.push_back(
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
        "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
        "'[-._a-zA-Z0-9]+')");
  }
  if (key == ".") {
    problems.push_back("must not be '.'");
  } else if (key == "..") {
    problems.push_back("must not be '..'");
  } else if (key.starts_with("..")) {
    problems.push_back("must not start with '..'");
  }
  return problems;
}

void CheckCsiDriverName(FieldErrors& errors, const FieldPath& path, std::string_view name) {
  constexpr std::size_t kMaxBytes = 63;
  if (name.empty()) {
    errors.push_back(Required(path));
    return;
  }
  if (name.size() > kMaxBytes) errors.push_back(FieldError::TooLong(path, kMaxBytes));
  AddProblems(errors, path, name, DnsSubdomainProblems(ToLower(name)));
}

void CheckSignerName(FieldErrors& errors, const FieldPath& path, std::string_view name) {
  if (name.empty()) {
    errors.push_back(Required(path));
    return;
  }
  const std::vector<std::string_view> segments = Split(name, '/');
  if (segments.size() != 2) {
    errors.push_back(
        Invalid(path, name,
                "must be a fully qualified domain and path of the form 'example.com/signer-name'"));
    return;
  }
  if (segments[0].size() > kMaxSignerDomainBytes) {
    errors.push_back(FieldError::TooLong(path, kMaxSignerDomainBytes));
  }
  const auto check = [&](std::string_view segment, auto rule) {
    for (const std::string_view label : Split(segment, '.')) {
      const api::Problems problems = rule(label);
      for (const std::string& problem : problems) {
        errors.push_back(
            Invalid(path, segment, StrCat("validating label ", Quote(label), ": ", problem)));
      }
      if (!problems.empty()) break;
    }
  };
  check(segments[0], DnsLabelProblems);
  if (segments[0].find('.') == std::string_view::npos) {
    errors.push_back(Invalid(path, segments[0],
                             "should be a domain with at least two segments separated by dots"));
  }
  check(segments[1], DnsSubdomainProblems);
  if (name.size() > kMaxSignerBytes) errors.push_back(FieldError::TooLong(path, kMaxSignerBytes));
}

bool IsKubernetesSigner(std::string_view name) {
  const std::string_view host = name.substr(0, name.find('/'));
  return host == "kubernetes.io" || host.ends_with(".kubernetes.io");
}

api::Problems TrustBundleNameProblems(std::string_view signer, std::string_view name) {
  if (signer.empty()) {
    if (name.find(':') == std::string_view::npos) return DnsSubdomainProblems(name);
    return {"ClusterTrustBundle without signer name must not have \":\" in its name"};
  }
  std::string prefix(signer);
  std::ranges::replace(prefix, '/', ':');
  prefix += ':';
  if (name.starts_with(prefix)) return DnsSubdomainProblems(name.substr(prefix.size()));
  return {
      StrCat("ClusterTrustBundle for signerName ", signer, " must be named with prefix ", prefix)};
}

}  // namespace drakkar::apiserver
