#include "controllers/certificates/planner.h"

#include <algorithm>

#include "api/meta/time.h"
#include "base/hash/base64.h"
#include "base/text/text.h"
#include "net/socket/address_kind.h"

namespace drakkar::controllers {
namespace {

using api::Value;
using std::chrono::hours;
using std::chrono::minutes;

constexpr std::string_view kNodePrefix = "system:node:";
constexpr std::string_view kNodeGroup = "system:nodes";
constexpr std::string_view kDigitalSignature = "digital signature";
constexpr std::string_view kKeyEncipherment = "key encipherment";

constexpr Duration kDecidedLifetime = hours(1);
constexpr Duration kPendingLifetime = hours(24);
constexpr Duration kMinLifetime = minutes(10);
// Allowance for small clock differences. Certificates that are valid for less than kShort are
// extended by it at their end.
constexpr Duration kBackdate = minutes(5);
constexpr Duration kShort = hours(8);

// Usages of the API and their names in OpenSSL.
struct UsageName {
  std::string_view usage;
  std::string_view name;
  bool is_extended;
};
constexpr UsageName kUsageNames[] = {
    {"signing", "digitalSignature", false},
    {"digital signature", "digitalSignature", false},
    {"content commitment", "nonRepudiation", false},
    {"key encipherment", "keyEncipherment", false},
    {"key agreement", "keyAgreement", false},
    {"data encipherment", "dataEncipherment", false},
    {"cert sign", "keyCertSign", false},
    {"crl sign", "cRLSign", false},
    {"encipher only", "encipherOnly", false},
    {"decipher only", "decipherOnly", false},
    {"any", "anyExtendedKeyUsage", true},
    {"server auth", "serverAuth", true},
    {"client auth", "clientAuth", true},
    {"code signing", "codeSigning", true},
    {"email protection", "emailProtection", true},
    {"s/mime", "emailProtection", true},
    {"ipsec end system", "ipsecEndSystem", true},
    {"ipsec tunnel", "ipsecTunnel", true},
    {"ipsec user", "ipsecUser", true},
    {"timestamping", "timeStamping", true},
    {"ocsp signing", "OCSPSigning", true},
    {"microsoft sgc", "msSGC", true},
    {"netscape sgc", "nsSGC", true},
};

bool HasCondition(const api::Object& request, std::string_view type) {
  for (const Value each : request["status"]["conditions"].elements()) {
    if (each["type"].str() == type && each["status"].str("True") == "True") return true;
  }
  return false;
}

bool IsIssued(const api::Object& request) {
  return !request["status"]["certificate"].str().empty();
}

Usages UsagesOf(const api::Object& request) {
  Usages usages;
  for (const Value each : request["spec"]["usages"].elements()) usages.emplace(each.str());
  return usages;
}

Result<net::CertificateSubject> SubjectOf(const api::Object& request, std::string* pem = nullptr) {
  ASSIGN_OR_RETURN(std::string text, Base64Decode(request["spec"]["request"].str()));
  ASSIGN_OR_RETURN(net::CertificateSubject subject, net::ParseSigningRequest(text));
  if (pem != nullptr) *pem = std::move(text);
  return subject;
}

Result<void> CheckNodeSubject(const net::CertificateSubject& subject) {
  if (subject.organizations != std::vector<std::string>{std::string(kNodeGroup)}) {
    return InvalidArgument("subject organization is not system:nodes");
  }
  if (!subject.common_name.starts_with(kNodePrefix)) {
    return InvalidArgument("subject common name does not begin with system:node:");
  }
  return Ok();
}

// Key encipherment is for RSA keys only, so it may be missing.
Result<void> CheckNodeUsages(Usages usages, std::string_view purpose) {
  usages.erase(std::string(kKeyEncipherment));
  if (usages == Usages{std::string(kDigitalSignature), std::string(purpose)}) return Ok();
  std::vector<std::string> wanted = {std::string(kDigitalSignature), std::string(kKeyEncipherment),
                                     std::string(purpose)};
  std::ranges::sort(wanted);
  return InvalidArgument(StrCat("usages did not match [", Join(wanted, " "), "]"));
}

bool IsReady(const api::Object& node) {
  for (const Value each : node["status"]["conditions"].elements()) {
    if (each["type"].str() == "Ready") return each["status"].str() == "True";
  }
  return false;
}

// A node writes its own status, so PlanServing checks the addresses in it against those of others.
bool HasAddress(const api::Object& node, std::string_view text) {
  for (const Value each : node["status"]["addresses"].elements()) {
    const std::string address(each["address"].str());
    const std::string canonical = net::CanonicalAddress(address);
    if ((canonical.empty() ? address : canonical) == text) return true;
  }
  return false;
}

ApprovalPlan Wait(std::string why) {
  return {.step = ApprovalPlan::Step::kWait, .message = std::move(why)};
}

bool IsReserved(const std::string& text, const ReservedNames& reserved) {
  if (net::KindOfAddress(text) == net::AddressKind::kLoopback) return false;
  return reserved.contains(text) || text == "localhost" || text == "kubernetes" ||
         text == "kubernetes.default" || text.ends_with(".svc") ||
         text.find(".svc.") != std::string::npos;
}

ApprovalPlan PlanServing(const api::Object& request, const net::CertificateSubject& subject,
                         const NodesByName& nodes, const ReservedNames& reserved) {
  const Value spec = request["spec"];
  if (!CheckNodeServing(subject, UsagesOf(request)).ok()) return {};
  bool is_node = false;
  for (const Value group : spec["groups"].elements()) {
    is_node = is_node || group.str() == kNodeGroup;
  }
  // A request on behalf of somebody else is left to an administrator.
  if (!is_node || spec["username"].str() != subject.common_name) return {};
  const std::string name = subject.common_name.substr(kNodePrefix.size());
  const auto own = nodes.find(name);
  if (own == nodes.end()) return Wait(StrCat("node ", Quote(name), " is not registered yet"));
  for (const auto* list : {&subject.dns_names, &subject.ip_addresses}) {
    const bool is_name = list == &subject.dns_names;
    for (const std::string& each : *list) {
      // The node may only request its own name: it could report any other as its host name.
      if (is_name ? each != name : !HasAddress(*own->second, each)) {
        return Wait(StrCat("node ", Quote(name), " does not have the ",
                           is_name ? "name " : "address ", Quote(each)));
      }
      if (IsReserved(each, reserved)) {
        return Wait(StrCat(Quote(each),
                           " belongs to the API server or a Service; if the node runs on the API "
                           "server's machine, approve the request by hand"));
      }
      for (const auto& [other, node] : nodes) {
        if (other != name && (other == each || HasAddress(*node, each))) {
          return Wait(StrCat(Quote(each), " belongs to node ", Quote(other), " as well"));
        }
      }
    }
  }
  return {.step = ApprovalPlan::Step::kApprove,
          .message = "Auto approving a kubelet serving certificate for the node's own addresses."};
}

std::optional<WallTime> TimeOf(Value text) {
  const Result<WallTime> time = api::ParseTime(text.str());
  return time.ok() ? std::optional<WallTime>(*time) : std::nullopt;
}

}  // namespace

Result<void> CheckNodeClient(const net::CertificateSubject& subject, const Usages& usages) {
  RETURN_IF_ERROR(CheckNodeSubject(subject));
  if (!subject.dns_names.empty()) return InvalidArgument("DNS subjectAltNames are not allowed");
  if (!subject.email_addresses.empty()) {
    return InvalidArgument("Email subjectAltNames are not allowed");
  }
  if (!subject.ip_addresses.empty()) return InvalidArgument("IP subjectAltNames are not allowed");
  if (!subject.uris.empty()) return InvalidArgument("URI subjectAltNames are not allowed");
  return CheckNodeUsages(usages, "client auth");
}

Result<void> CheckNodeServing(const net::CertificateSubject& subject, const Usages& usages) {
  RETURN_IF_ERROR(CheckNodeSubject(subject));
  if (subject.dns_names.empty() && subject.ip_addresses.empty()) {
    return InvalidArgument("DNS or IP subjectAltName is required");
  }
  if (!subject.email_addresses.empty()) {
    return InvalidArgument("Email subjectAltNames are not allowed");
  }
  if (!subject.uris.empty()) return InvalidArgument("URI subjectAltNames are not allowed");
  return CheckNodeUsages(usages, "server auth");
}

Result<void> CheckApiServerClient(const Usages& usages) {
  for (const std::string& usage : usages) {
    if (usage != kDigitalSignature && usage != kKeyEncipherment && usage != "client auth") {
      return InvalidArgument(StrCat("invalid usage for client certificate: ", usage));
    }
  }
  if (!usages.contains("client auth")) {
    return InvalidArgument("missing required usage for client certificate: client auth");
  }
  return Ok();
}

ApprovalPlan PlanApproval(const api::Object& request, const NodesByName& nodes,
                          const ReservedNames& reserved) {
  if (IsIssued(request) || HasCondition(request, "Approved") || HasCondition(request, "Denied")) {
    return {};
  }
  const std::string_view signer = request["spec"]["signerName"].str();
  if (signer != kNodeClientSigner && signer != kNodeServingSigner) return {};
  const Result<net::CertificateSubject> subject = SubjectOf(request);
  if (!subject.ok()) return {};
  if (signer == kNodeServingSigner) return PlanServing(request, *subject, nodes, reserved);
  if (!CheckNodeClient(*subject, UsagesOf(request)).ok()) return {};
  ApprovalPlan plan{.step = ApprovalPlan::Step::kReview};
  if (request["spec"]["username"].str() == subject->common_name) {
    plan.reviews.push_back(
        {"selfnodeclient",
         "Auto approving self kubelet client certificate after SubjectAccessReview."});
  } else {
    const auto node = nodes.find(subject->common_name.substr(kNodePrefix.size()));
    if (node != nodes.end() && IsReady(*node->second)) {
      return Wait(StrCat("node ", Quote(node->first),
                         " is ready, and another machine asks for its identity; approve the "
                         "request by hand, or stop the node or delete it first"));
    }
  }
  plan.reviews.push_back(
      {"nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."});
  return plan;
}

SigningPlan PlanSigning(const api::Object& request, const SigningTerms& terms) {
  if (IsIssued(request) || !HasCondition(request, "Approved") || HasCondition(request, "Denied") ||
      HasCondition(request, "Failed")) {
    return {};
  }
  const std::string_view signer = request["spec"]["signerName"].str();
  if (signer != kClientSigner && signer != kNodeClientSigner && signer != kNodeServingSigner &&
      signer != kLegacySigner) {
    return {};
  }
  SigningPlan plan;
  const auto fail = [&](const Error& error) {
    plan.step = SigningPlan::Step::kFail;
    plan.message = error.message;
    return plan;
  };
  const Result<net::CertificateSubject> subject = SubjectOf(request, &plan.request_pem);
  if (!subject.ok()) return fail(subject.error());
  const Usages usages = UsagesOf(request);
  Result<void> checked;
  if (signer == kClientSigner) checked = CheckApiServerClient(usages);
  if (signer == kNodeClientSigner) checked = CheckNodeClient(*subject, usages);
  if (signer == kNodeServingSigner) checked = CheckNodeServing(*subject, usages);
  if (!checked.ok()) return fail(checked.error());
  for (const UsageName& each : kUsageNames) {
    if (!usages.contains(each.usage)) continue;
    auto& names = each.is_extended ? plan.usages.extended : plan.usages.key;
    if (std::ranges::find(names, each.name) == names.end()) names.emplace_back(each.name);
  }
  Duration lifetime = terms.max_lifetime;
  if (const auto seconds = request["spec"]["expirationSeconds"].optional_integer()) {
    lifetime = std::clamp<Duration>(std::chrono::seconds(*seconds),
                                    std::min(kMinLifetime, terms.max_lifetime), terms.max_lifetime);
  }
  plan.validity.not_before = terms.now - kBackdate;
  plan.validity.not_after =
      std::min(terms.now + (lifetime < kShort ? lifetime : lifetime - kBackdate), terms.ca_expires);
  plan.step = SigningPlan::Step::kSign;
  return plan;
}

std::optional<WallTime> DeletionTime(const api::Object& request) {
  const Value conditions = request["status"]["conditions"];
  std::optional<WallTime> earliest;
  const auto consider = [&](std::optional<WallTime> from, Duration lifetime) {
    if (from && (!earliest || *from + lifetime < *earliest)) earliest = *from + lifetime;
  };
  if (conditions.empty()) {
    consider(TimeOf(request["metadata"]["creationTimestamp"]), kPendingLifetime);
  }
  for (const Value each : conditions.elements()) {
    const std::string_view type = each["type"].str();
    const std::optional<WallTime> at = TimeOf(each["lastUpdateTime"]);
    if (type == "Denied" || type == "Failed") consider(at, kDecidedLifetime);
    if (type == "Approved") {
      consider(at, IsIssued(request) ? kDecidedLifetime : kPendingLifetime);
      const Result<std::string> pem = Base64Decode(request["status"]["certificate"].str());
      const Result<net::CertificateInfo> info =
          pem.ok() ? net::ParseCertificate(*pem) : pem.error();
      if (info.ok()) consider(info->validity.not_after, Duration::zero());
    }
  }
  return earliest;
}

}  // namespace drakkar::controllers
