#include "apiserver/validation/network.h"

#include <set>

#include "api/meta/interface_address.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/metadata.h"
#include "apiserver/validation/value_rules.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::FieldPath;
using api::Value;

void CheckPolicyPort(FieldErrors& errors, const FieldPath& path, Value port) {
  const Value number = port["port"];
  const Value end = port["endPort"];
  const FieldPath end_path = path.Child("endPort");
  if (number.has_value()) CheckPort(errors, path.Child("port"), number);
  if (!end.has_value()) return;
  if (!number.has_value()) {
    errors.push_back(
        Invalid(end_path, end.integer(), "may not be specified when `port` is not specified"));
  } else if (number.is_string()) {
    errors.push_back(
        Invalid(end_path, end.integer(), "may not be specified when `port` is non-numeric"));
  } else if (end.integer() < number.integer()) {
    errors.push_back(Invalid(end_path, end.integer(), "must be greater than or equal to `port`"));
  }
}

// Networks that a policy had under older rules may stay.
using KnownNetworks = std::set<std::string_view>;

void CheckPolicyNetwork(FieldErrors& errors, const FieldPath& path, std::string_view network,
                        const KnownNetworks& known) {
  if (!known.contains(network)) CheckNetwork(errors, path, network);
}

void CheckIpBlock(FieldErrors& errors, const FieldPath& path, Value block,
                  const KnownNetworks& known) {
  const std::string_view network = block["cidr"].str();
  if (network.empty()) return;  // reported by the schema's rule
  CheckPolicyNetwork(errors, path.Child("cidr"), network, known);
  std::size_t index = 0;
  for (const Value except : block["except"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Child("except").Index(index++);
    CheckPolicyNetwork(errors, at, except.str(), known);
    if (api::IsStrictSubnet(except.str(), network).value_or(true)) continue;
    errors.push_back(Invalid(at, except.str(), "must be a strict subset of `cidr`"));
  }
}

void CheckPeer(FieldErrors& errors, const FieldPath& path, Value peer, const KnownNetworks& known) {
  const bool selects = peer["podSelector"].has_value() || peer["namespaceSelector"].has_value();
  const Value block = peer["ipBlock"];
  if (block.has_value()) CheckIpBlock(errors, path.Child("ipBlock"), block, known);
  if (!selects && !block.has_value()) {
    errors.push_back(Required(path, "must specify a peer"));
  } else if (selects && block.has_value()) {
    errors.push_back(Forbidden(path, "may not specify both ipBlock and another peer"));
  }
}

// Visits the peers of all rules of a policy.
template <typename Visit>
void ForEachPeer(Value spec, const Visit& visit) {
  struct Direction {
    api::FieldName rules, peers;
  };
  for (const Direction& direction : {Direction{"ingress", "from"}, Direction{"egress", "to"}}) {
    std::size_t index = 0;
    for (const Value rule : spec[direction.rules].elements()) {
      const FieldPath path = FieldPath("spec").Child(direction.rules.view()).Index(index++);
      std::size_t place = 0;
      for (const Value peer : rule[direction.peers].elements()) {
        if (WorkBudget::IsExceeded()) return;
        visit(peer, path.Child(direction.peers.view()).Index(place++));
      }
    }
  }
}

bool IsPathSegment(std::string_view name) {
  return name != "." && name != ".." && name.find_first_of("/%") == std::string_view::npos;
}

void CheckPathSegment(FieldErrors& errors, const FieldPath& path, std::string_view name) {
  if (!IsPathSegment(name)) AddProblems(errors, path, name, PathSegmentProblems(name, false));
}

void CheckBackend(FieldErrors& errors, const FieldPath& path, Value backend) {
  const Value resource = backend["resource"];
  const Value service = backend["service"];
  if (resource.has_value() && service.has_value()) {
    errors.push_back(Invalid(path, "", "cannot set both resource and service backends"));
    return;
  }
  if (resource.has_value()) {
    const FieldPath at = path.Child("resource");
    if (const Value group = resource["apiGroup"]; group.has_value()) {
      CheckDnsSubdomain(errors, at.Child("apiGroup"), group.str());
    }
    for (const api::FieldName field : api::FieldNames{"kind", "name"}) {
      RequireText(errors, at.Child(field.view()), resource[field].str());
      CheckPathSegment(errors, at.Child(field.view()), resource[field].str());
    }
    return;
  }
  if (!service.has_value()) {
    errors.push_back(Invalid(path, "", "resource or service backend is required"));
    return;
  }
  const FieldPath at = path.Child("service").Child("port");
  const std::string_view name = service["port"]["name"].str();
  const std::int64_t number = service["port"]["number"].integer();
  if (!name.empty() && number != 0) {
    errors.push_back(Invalid(path, "", "cannot set both port name & port number"));
  } else if (!name.empty()) {
    CheckPortName(errors, at.Child("name"), name);
  } else if (number != 0) {
    CheckPortNumber(errors, at.Child("number"), number);
  } else {
    errors.push_back(Required(path, "port name or number is required"));
  }
}

void CheckIngressPath(FieldErrors& errors, const FieldPath& path, Value entry) {
  const std::string_view type = entry["pathType"].str();
  const std::string_view file = entry["path"].str();
  const FieldPath at = path.Child("path");
  const bool is_exact = type == "Exact" || type == "Prefix";
  const bool must_be_absolute = is_exact || (type == "ImplementationSpecific" && !file.empty());
  if (must_be_absolute && !file.starts_with('/')) {
    errors.push_back(Invalid(at, file, "must be an absolute path"));
  }
  if (is_exact) {
    for (const std::string_view part : {"//", "/./", "/../", "%2f", "%2F"}) {
      if (file.find(part) == std::string_view::npos) continue;
      errors.push_back(Invalid(at, file, StrCat("must not contain '", part, "'")));
    }
    for (const std::string_view end : {"/..", "/."}) {
      if (!file.ends_with(end)) continue;
      errors.push_back(Invalid(at, file, StrCat("cannot end with '", end, "'")));
    }
  }
  CheckBackend(errors, path.Child("backend"), entry["backend"]);
}

// "example.com" or "*.example.com".
void CheckHostPattern(FieldErrors& errors, const FieldPath& path, std::string_view host) {
  constexpr std::size_t kMaxBytes = 253;
  if (host.find('*') == std::string_view::npos) {
    CheckDnsSubdomain(errors, path, host);
    return;
  }
  if (host.size() > kMaxBytes) {
    errors.push_back(
        Invalid(path, host, StrCat("must be no more than ", kMaxBytes, " characters")));
  }
  if (host.starts_with("*.") && api::CheckDnsSubdomain(host.substr(2)).empty()) return;
  errors.push_back(
      Invalid(path, host,
              "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS "
              "subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and "
              "end with an alphanumeric character (e.g. '*.example.com', regex used for validation "
              "is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"));
}

bool IsAddress(std::string_view text) {
  const api::Problems problems = api::CheckIpAddress(text);
  return problems.empty() || !problems.front().starts_with("must be a valid IP address");
}

void CheckNotAddress(FieldErrors& errors, const FieldPath& path, std::string_view host) {
  if (!IsAddress(host)) return;
  errors.push_back(Invalid(path, host, "must be a DNS name, not an IP address"));
}

// A domain and a path: "example.com/controller".
void CheckDomainPrefixedPath(FieldErrors& errors, const FieldPath& path, std::string_view text) {
  constexpr std::string_view kPunctuation = "/-._~%!$&'()*+,;=:";
  if (text.empty()) {
    errors.push_back(Required(path));
    return;
  }
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size()) {
    errors.push_back(
        Invalid(path, text, "must be a domain-prefixed path (such as \"acme.io/foo\")"));
    return;
  }
  CheckDnsSubdomain(errors, path, text.substr(0, slash));
  const std::string_view rest = text.substr(slash + 1);
  for (const char c : rest) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_letter || IsDigit(c) || kPunctuation.find(c) != std::string_view::npos) continue;
    errors.push_back(Invalid(path, rest,
                             "Invalid path (regex used for validation is "
                             "'[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"));
    return;
  }
}

}  // namespace

FieldErrors ValidateNetworkPolicy(Value policy, Value before) {
  FieldErrors errors;
  KnownNetworks known;
  ForEachPeer(before["spec"], [&](Value peer, const FieldPath&) {
    known.insert(peer["ipBlock"]["cidr"].str());
    for (const Value except : peer["ipBlock"]["except"].elements()) known.insert(except.str());
  });
  const Value spec = policy["spec"];
  for (const api::FieldName direction : api::FieldNames{"ingress", "egress"}) {
    std::size_t index = 0;
    for (const Value rule : spec[direction].elements()) {
      const FieldPath path = FieldPath("spec").Child(direction.view()).Index(index++);
      std::size_t place = 0;
      for (const Value port : rule["ports"].elements()) {
        if (WorkBudget::IsExceeded()) return errors;
        CheckPolicyPort(errors, path.Child("ports").Index(place++), port);
      }
    }
  }
  ForEachPeer(spec,
              [&](Value peer, const FieldPath& path) { CheckPeer(errors, path, peer, known); });
  return errors;
}

FieldErrors ValidateIngress(Value ingress, Value before) {
  FieldErrors errors;
  const FieldPath path("spec");
  const Value spec = ingress["spec"];
  if (spec["rules"].empty() && !spec["defaultBackend"].has_value()) {
    errors.push_back(Invalid(path,
                             api::BadValue::Literal(spec["rules"].has_value() ? "[]" : "null"),
                             "either `defaultBackend` or `rules` must be specified"));
  }
  if (spec["defaultBackend"].has_value()) {
    CheckBackend(errors, path.Child("defaultBackend"), spec["defaultBackend"]);
  }
  std::size_t index = 0;
  for (const Value rule : spec["rules"].elements()) {
    if (WorkBudget::IsExceeded()) return errors;
    const FieldPath at = path.Child("rules").Index(index++);
    if (const std::string_view host = rule["host"].str(); !host.empty()) {
      CheckNotAddress(errors, at.Child("host"), host);
      CheckHostPattern(errors, at.Child("host"), host);
    }
    std::size_t place = 0;
    for (const Value entry : rule["http"]["paths"].elements()) {
      if (WorkBudget::IsExceeded()) return errors;
      CheckIngressPath(errors, at.Child("http").Child("paths").Index(place++), entry);
    }
  }
  index = 0;
  for (const Value tls : spec["tls"].elements()) {
    const FieldPath at = path.Child("tls").Index(index++);
    std::size_t place = 0;
    for (const Value host : tls["hosts"].elements()) {
      if (WorkBudget::IsExceeded()) return errors;
      CheckHostPattern(errors, at.Child("hosts").Index(place++), host.str());
    }
    const std::string_view secret = tls["secretName"].str();
    if (!secret.empty()) CheckDnsSubdomain(errors, at.Child("secretName"), secret);
  }
  const Value name = spec["ingressClassName"];
  if (name.has_value()) CheckDnsSubdomain(errors, path.Child("ingressClassName"), name.str());
  constexpr std::string_view kClass = "kubernetes.io/ingress.class";
  const Value annotation = ingress["metadata"]["annotations"].Entry(kClass);
  if (!before.exists() && annotation.exists() && name.has_value() &&
      annotation.str() != name.str()) {
    errors.push_back(Invalid(FieldPath("annotations").Child(kClass), annotation.str(),
                             "must match `ingressClassName` when both are specified"));
  }
  return errors;
}

FieldErrors ValidateIngressStatus(Value ingress) {
  FieldErrors errors;
  const FieldPath list = FieldPath("status").Child("loadBalancer").Child("ingress");
  std::size_t index = 0;
  for (const Value point : ingress["status"]["loadBalancer"]["ingress"].elements()) {
    if (WorkBudget::IsExceeded()) return errors;
    const FieldPath at = list.Index(index++);
    if (const std::string_view ip = point["ip"].str(); !ip.empty()) {
      CheckIpAddress(errors, at.Child("ip"), ip);
    }
    if (const std::string_view host = point["hostname"].str(); !host.empty()) {
      CheckDnsSubdomain(errors, at.Child("hostname"), host);
      CheckNotAddress(errors, at.Child("hostname"), host);
    }
  }
  return errors;
}

FieldErrors ValidateIngressClass(Value ingress_class) {
  constexpr std::size_t kMaxControllerBytes = 250;
  FieldErrors errors;
  const FieldPath path("spec");
  const Value spec = ingress_class["spec"];
  const std::string_view controller = spec["controller"].str();
  if (controller.size() > kMaxControllerBytes) {
    errors.push_back(api::FieldError::TooLong(path.Child("controller"), kMaxControllerBytes));
  }
  CheckDomainPrefixedPath(errors, path.Child("controller"), controller);
  const Value parameters = spec["parameters"];
  if (!parameters.has_value()) return errors;
  const FieldPath at = path.Child("parameters");
  if (const Value group = parameters["apiGroup"]; group.has_value()) {
    CheckDnsSubdomain(errors, at.Child("apiGroup"), group.str());
  }
  for (const api::FieldName field : api::FieldNames{"kind", "name"}) {
    CheckPathSegment(errors, at.Child(field.view()), parameters[field].str());
  }
  const Value home = parameters["namespace"];
  const FieldPath home_path = at.Child("namespace");
  if (parameters["scope"].str() == "Cluster") {
    if (home.has_value()) {
      errors.push_back(Forbidden(home_path, "`parameters.scope` is set to 'Cluster'"));
    }
  } else if (parameters["scope"].str() == "Namespace") {
    if (!home.has_value()) {
      errors.push_back(Required(home_path, "`parameters.scope` is set to 'Namespace'"));
    } else {
      CheckDnsLabel(errors, home_path, home.str());
    }
  }
  return errors;
}

}  // namespace drakkar::apiserver
