#include "apiserver/registry/certificate_strategy.h"

#include <algorithm>
#include <set>

#include "api/meta/time.h"
#include "apiserver/registry/kept_members.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/metadata.h"
#include "apiserver/validation/value_rules.h"
#include "base/hash/base64.h"
#include "base/text/text.h"
#include "net/tls/certificates.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::FieldErrors;
using api::Value;

constexpr std::string_view kLegacySigner = "kubernetes.io/legacy-unknown";
constexpr std::string_view kApproved = "Approved";
constexpr std::string_view kDenied = "Denied";
constexpr std::string_view kFailed = "Failed";

// Sorted, as errors list them.
constexpr std::string_view kUsages[] = {"any",
                                        "cert sign",
                                        "client auth",
                                        "code signing",
                                        "content commitment",
                                        "crl sign",
                                        "data encipherment",
                                        "decipher only",
                                        "digital signature",
                                        "email protection",
                                        "encipher only",
                                        "ipsec end system",
                                        "ipsec tunnel",
                                        "ipsec user",
                                        "key agreement",
                                        "key encipherment",
                                        "microsoft sgc",
                                        "netscape sgc",
                                        "ocsp signing",
                                        "s/mime",
                                        "server auth",
                                        "signing",
                                        "timestamping"};

bool IsUsage(std::string_view text) {
  return std::ranges::find(kUsages, text) != std::end(kUsages);
}

void CheckUsages(Value usages, FieldErrors& errors) {
  if (usages.empty()) errors.push_back(Required("spec.usages"));
  std::set<std::string_view> seen;
  std::size_t index = 0;
  for (const Value usage : usages.elements()) {
    const std::string path = StrCat("spec.usages[", index++, "]");
    if (!IsUsage(usage.str())) {
      errors.push_back(NotSupported(path, usage.str(), {std::begin(kUsages), std::end(kUsages)}));
    }
    if (!seen.insert(usage.str()).second) errors.push_back(Duplicate(path, usage.str()));
  }
}

void CheckSpec(Value spec, FieldErrors& errors) {
  const Result<std::string> pem = Base64Decode(spec["request"].str());
  const Result<net::CertificateSubject> request =
      pem.ok() ? net::ParseSigningRequest(*pem) : pem.error();
  if (!request.ok()) {
    errors.push_back(Invalid("spec.request", spec["request"].str(), request.error().message));
  }
  CheckUsages(spec["usages"], errors);
  const std::string_view signer = spec["signerName"].str();
  if (signer == kLegacySigner) {
    errors.push_back(Invalid("spec.signerName", signer,
                             "the legacy signerName is not allowed via this API version"));
  } else {
    CheckSignerName(errors, api::FieldPath("spec.signerName"), signer);
  }
  if (const auto seconds = spec["expirationSeconds"].optional_integer();
      seconds && *seconds < CertificateSigningRequestStrategy::kMinExpirationSeconds) {
    errors.push_back(Invalid("spec.expirationSeconds", *seconds,
                             "may not specify a duration less than 600 seconds (10 minutes)"));
  }
}

std::vector<Value> ConditionsOf(Value object, std::string_view type) {
  std::vector<Value> found;
  for (const Value each : object["status"]["conditions"].elements()) {
    if (each["type"].str() == type) found.push_back(each);
  }
  return found;
}

bool HasDuplicateTypes(Value object) {
  std::set<std::string_view> seen;
  for (const Value each : object["status"]["conditions"].elements()) {
    if (!seen.insert(each["type"].str()).second) return true;
  }
  return false;
}

// Errors that `before` already has (another server wrote it) are not reported again.
void CheckConditions(Value object, Value before, FieldErrors& errors) {
  const bool both_before =
      !ConditionsOf(before, kApproved).empty() && !ConditionsOf(before, kDenied).empty();
  const bool duplicates_before = HasDuplicateTypes(before);
  const bool unnamed_before = !ConditionsOf(before, "").empty();
  bool has_approved = false;
  bool has_denied = false;
  std::set<std::string_view> seen;
  std::size_t index = 0;
  for (const Value each : object["status"]["conditions"].elements()) {
    const std::string path = StrCat("status.conditions[", index++, "]");
    const std::string_view type = each["type"].str();
    const std::string_view status = each["status"].str();
    if (type.empty() && !unnamed_before) errors.push_back(Required(path + ".type"));
    const bool only_true = type == kApproved || type == kDenied || type == kFailed;
    const bool other = status == "False" || status == "Unknown";
    if (status.empty()) {
      errors.push_back(Required(path + ".status"));
    } else if (status != "True" && (only_true || !other)) {
      errors.push_back(
          NotSupported(path + ".status", status,
                       only_true ? std::vector<std::string_view>{"True"}
                                 : std::vector<std::string_view>{"False", "True", "Unknown"}));
    }
    has_approved = has_approved || type == kApproved;
    has_denied = has_denied || type == kDenied;
    if (!both_before && has_approved && has_denied && (type == kApproved || type == kDenied)) {
      errors.push_back(Invalid("status.conditions", type,
                               "Approved and Denied conditions are mutually exclusive"));
    }
    if (!seen.insert(type).second && !duplicates_before) {
      errors.push_back(Duplicate(path + ".type", type));
    }
  }
}

bool AreEqual(const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::ranges::equal(a, b, [](Value x, Value y) { return api::Equal(x, y); });
}

void CheckDecisions(Value object, Value before, bool is_approval, FieldErrors& errors) {
  constexpr std::string_view kPath = "status.conditions";
  for (const std::string_view type : {kApproved, kDenied, kFailed}) {
    if (ConditionsOf(object, type).size() < ConditionsOf(before, type).size()) {
      errors.push_back(
          Forbidden(kPath, StrCat("updates may not remove a condition of type ", Quote(type))));
    }
  }
  if (is_approval) return;
  for (const std::string_view type : {kApproved, kDenied}) {
    const std::vector<Value> now = ConditionsOf(object, type);
    const std::vector<Value> then = ConditionsOf(before, type);
    if (now.size() > then.size()) {
      errors.push_back(
          Forbidden(kPath, StrCat("updates may not add a condition of type ", Quote(type))));
    } else if (now.size() == then.size() && !AreEqual(now, then)) {
      errors.push_back(
          Forbidden(kPath, StrCat("updates may not modify a condition of type ", Quote(type))));
    }
  }
}

// Sets the times that the client omitted. A condition whose status did not change keeps its
// transition time.
void SetTimes(Draft& object, Value before, WallTime now) {
  Draft* conditions = object["status"].Find("conditions");
  if (conditions == nullptr || !conditions->is_array()) return;
  const std::string time = api::FormatTime(now);
  for (Draft& each : conditions->MutableElements()) {
    if (!each.is_object()) continue;
    if (each["lastUpdateTime"].str().empty()) each["lastUpdateTime"] = time;
    if (!each["lastTransitionTime"].str().empty()) continue;
    std::string transition = time;
    for (const Value old : before["status"]["conditions"].elements()) {
      if (old["type"].str() == each["type"].str() && old["status"].str() == each["status"].str() &&
          !old["lastTransitionTime"].str().empty()) {
        transition = old["lastTransitionTime"].str();
        break;
      }
    }
    each["lastTransitionTime"] = transition;
  }
}

// A signer may send decisions back without their details; the stored details are kept.
void KeepDecisions(Draft& object, Value before) {
  Draft* conditions = object["status"].Find("conditions");
  if (conditions == nullptr || !conditions->is_array()) return;
  for (const std::string_view type : {kApproved, kDenied}) {
    const std::vector<Value> then = ConditionsOf(before, type);
    std::vector<Draft*> now;
    for (Draft& each : conditions->MutableElements()) {
      if (each.is_object() && each["type"].str() == type) now.push_back(&each);
    }
    if (now.size() != then.size()) continue;
    for (std::size_t i = 0; i < now.size(); ++i) *now[i] = Draft(api::CopyTree(then[i]));
  }
}

}  // namespace

void CertificateSigningRequestStrategy::PrepareForCreate(Draft& object,
                                                         const StrategyContext& context) const {
  Draft& spec = object["spec"];
  spec["username"] = context.user.name;
  spec.Remove("uid");
  if (!context.user.uid.empty()) spec["uid"] = context.user.uid;
  spec.Remove("groups");
  for (const std::string& group : context.user.groups) spec["groups"].Append(group);
  spec.Remove("extra");
  for (const auto& [key, values] : context.user.extra) {
    Draft& list = spec["extra"].Entry(key);
    list = Draft::Array();
    for (const std::string& value : values) list.Append(value);
  }
}

void CertificateSigningRequestStrategy::PrepareForUpdate(Draft& object, Value before,
                                                         std::string_view subresource,
                                                         const StrategyContext& context) const {
  if (subresource.empty()) return KeepMember("spec", before, object);
  if (subresource == "approval") {
    KeepAllBut("status", before, object);
    KeepMember("certificate", before["status"], object["status"]);
  } else {
    KeepDecisions(object, before);
  }
  SetTimes(object, before, context.clock.Now());
}

FieldErrors CertificateSigningRequestStrategy::Validate(Value object,
                                                        const StrategyContext&) const {
  FieldErrors errors;
  CheckSpec(object["spec"], errors);
  return errors;
}

FieldErrors CertificateSigningRequestStrategy::ValidateUpdate(Value object, Value before,
                                                              std::string_view subresource,
                                                              const StrategyContext&) const {
  // The spec is that of `before`.
  FieldErrors errors;
  CheckConditions(object, before, errors);
  CheckDecisions(object, before, subresource == "approval", errors);
  const std::string_view certificate = object["status"]["certificate"].str();
  const std::string_view issued = before["status"]["certificate"].str();
  if (certificate == issued) return errors;
  const Result<std::string> pem = Base64Decode(certificate);
  const Result<void> checked =
      !pem.ok() ? pem.error() : (pem->empty() ? Ok() : net::CheckCertificates(*pem));
  if (!checked.ok()) {
    errors.push_back(Invalid("status.certificate", "<certificate data>", checked.error().message));
  }
  if (subresource != "status") {
    errors.push_back(Forbidden("status.certificate", "updates may not set certificate content"));
  } else if (!issued.empty()) {
    errors.push_back(
        Forbidden("status.certificate", "updates may not modify existing certificate content"));
  }
  return errors;
}

api::Problems CertificateSigningRequestStrategy::CheckName(const api::KindSchema&,
                                                           std::string_view name,
                                                           bool prefix) const {
  return PathSegmentProblems(name, prefix);
}

}  // namespace drakkar::apiserver
