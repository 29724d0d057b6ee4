#include "apiserver/registry/pod_certificate_strategies.h"

#include <algorithm>
#include <map>

#include "api/meta/time.h"
#include "apiserver/registry/certificate_strategy.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/metadata.h"
#include "apiserver/validation/value_rules.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"
#include "net/tls/certificates.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::Value;

constexpr std::string_view kBegin = "-----BEGIN ";
constexpr std::string_view kDashes = "-----";
constexpr std::string_view kKubernetesDomain = "kubernetes.io/";
constexpr std::size_t kMaxUidBytes = 128;
// Steps of the work budget per certificate: enough for a thousand of them.
constexpr std::size_t kStepsPerCertificate = 20'000;
constexpr Duration kSkew = std::chrono::minutes(5);
constexpr Duration kRefreshMargin = std::chrono::minutes(10);
constexpr Duration kMinLifetime = std::chrono::hours(1);
constexpr std::string_view kOutcomes[] = {"Issued", "Denied", "Failed"};

// One block of a PEM text.
struct Block {
  std::string_view type;
  std::string_view text;  // with both marks
  bool has_headers = false;
};

std::vector<Block> BlocksOf(std::string_view text) {
  std::vector<Block> blocks;
  for (std::size_t begin; (begin = text.find(kBegin)) != std::string_view::npos;) {
    const std::size_t type = begin + kBegin.size();
    const std::size_t type_end = text.find(kDashes, type);
    if (type_end == std::string_view::npos) break;
    Block block;
    block.type = text.substr(type, type_end - type);
    const std::string end_mark = StrCat("-----END ", block.type, kDashes);
    const std::size_t end = text.find(end_mark, type_end);
    if (end == std::string_view::npos) break;
    block.text = text.substr(begin, end + end_mark.size() - begin);
    block.has_headers = text.substr(type_end, end - type_end).find(": ") != std::string_view::npos;
    blocks.push_back(block);
    text.remove_prefix(end + end_mark.size());
  }
  return blocks;
}

FieldErrors CheckBundle(std::string_view bundle) {
  constexpr std::string_view kPath = "spec.trustBundle";
  FieldErrors errors;
  const auto add = [&](std::string_view detail) {
    errors.push_back(Invalid(kPath, "<value omitted>", detail));
  };
  if (bundle.size() > ClusterTrustBundleStrategy::kMaxBundleBytes) {
    errors.push_back(api::FieldError::TooLong(api::FieldPath(kPath),
                                              ClusterTrustBundleStrategy::kMaxBundleBytes));
    return errors;
  }
  std::map<std::string, std::vector<std::string>> seen;  // indices by digest
  std::size_t index = 0;
  for (const Block& block : BlocksOf(bundle)) {
    WorkBudget::Charge(kStepsPerCertificate);
    if (WorkBudget::IsExceeded()) return errors;
    const std::string entry = StrCat("entry ", index++);
    if (block.type != "CERTIFICATE") {
      add(StrCat(entry, " has bad block type: ", block.type));
      continue;
    }
    if (block.has_headers) {
      add(entry + " has PEM block headers");
      continue;
    }
    const Result<net::CertificateInfo> parsed = net::ParseCertificate(StrCat(block.text, "\n"));
    if (!parsed.ok()) {
      add(entry + " does not parse as X.509");
    } else if (!parsed->is_ca) {
      add(entry + " does not have the CA bit set");
    } else {
      seen[parsed->sha256_hex].push_back(std::to_string(index - 1));
    }
  }
  if (!errors.empty()) return errors;
  if (seen.empty()) add("at least one trust anchor must be provided");
  for (const auto& [digest, indices] : seen) {
    if (indices.size() > 1) {
      add(StrCat("duplicate trust anchor (indices [", Join(indices, " "), "])"));
    }
  }
  return errors;
}

void CheckTrustBundleName(Value object, FieldErrors& errors) {
  const std::string_view name = object["metadata"]["name"].str();
  AddProblems(errors, "metadata.name", name,
              TrustBundleNameProblems(object["spec"]["signerName"].str(), name));
}

// The DER of a request in base64, as PEM.
std::string PemOf(std::string_view base64) {
  constexpr std::size_t kLine = 64;
  std::string pem = "-----BEGIN CERTIFICATE REQUEST-----\n";
  for (std::size_t at = 0; at < base64.size(); at += kLine) {
    pem += base64.substr(at, kLine);
    pem += '\n';
  }
  return pem + "-----END CERTIFICATE REQUEST-----\n";
}

// The outcome that the status has; "" for none.
std::string_view OutcomeOf(Value object) {
  for (const Value each : object["status"]["conditions"].elements()) {
    const std::string_view type = each["type"].str();
    if (each["status"].str() == "True" &&
        std::ranges::find(kOutcomes, type) != std::end(kOutcomes)) {
      return type;
    }
  }
  return {};
}

void CheckIssued(Value object, const StrategyContext& context, FieldErrors& errors) {
  constexpr std::string_view kChain = "status.certificateChain";
  const Value status = object["status"];
  const std::string_view chain = status["certificateChain"].str();
  if (chain.size() > PodCertificateRequestStrategy::kMaxChainBytes) {
    errors.push_back(api::FieldError::TooLong(api::FieldPath(kChain),
                                              PodCertificateRequestStrategy::kMaxChainBytes));
    return;
  }
  const std::vector<Block> blocks = BlocksOf(chain);
  if (blocks.empty()) {
    errors.push_back(
        Invalid(kChain, chain, "issued certificate chain must contain at least one certificate"));
    return;
  }
  std::optional<net::CertificateInfo> leaf;
  for (const Block& block : blocks) {
    if (block.type != "CERTIFICATE") {
      errors.push_back(
          Invalid(kChain, chain,
                  "issued certificate chain must consist entirely of CERTIFICATE PEM blocks"));
      return;
    }
    Result<net::CertificateInfo> parsed = net::ParseCertificate(StrCat(block.text, "\n"));
    if (!parsed.ok()) {
      errors.push_back(Invalid(
          kChain, chain,
          StrCat(leaf ? "intermediate" : "leaf", " certificate does not parse as valid X.509")));
      return;
    }
    if (!leaf) leaf = *std::move(parsed);
  }
  const auto time_of = [&](api::FieldName field, std::string_view why) {
    const Result<WallTime> time = api::ParseTime(status[field].str());
    if (!time.ok()) errors.push_back(Required(StrCat("status.", field), why));
    return time.ok() ? std::optional(*time) : std::nullopt;
  };
  const auto begin =
      time_of("notBefore", "must be present and consistent with the issued certificate");
  const auto end =
      time_of("notAfter", "must be present and consistent with the issued certificate");
  const auto refresh = time_of(
      "beginRefreshAt", "must be present and in the range [notbefore+10min, notafter-10min]");
  if (!begin || !end || !refresh) return;
  const auto refuse = [&](api::FieldName field, std::string_view why) {
    errors.push_back(Invalid(StrCat("status.", field), status[field].str(), why));
  };
  const net::Validity& validity = leaf->validity;
  if (*begin != validity.not_before) {
    return refuse("notBefore", "must be set to the NotBefore time encoded in the leaf certificate");
  }
  const WallTime now = context.clock.Now();
  if (*begin <= now - kSkew || *begin >= now + kSkew) {
    return refuse("notBefore", "must be set to within 5 minutes of kube-apiserver's current time");
  }
  if (*end != validity.not_after) {
    return refuse("notAfter", "must be set to the NotAfter time encoded in the leaf certificate");
  }
  const auto lifetime = validity.not_after - validity.not_before;
  const std::int64_t most = object["spec"]["maxExpirationSeconds"].integer();
  const std::string shown = api::FormatDuration(std::chrono::duration_cast<Duration>(lifetime));
  if (lifetime < kMinLifetime) {
    errors.push_back(Invalid(kChain, shown, "leaf certificate lifetime must be >= 1 hour"));
  } else if (lifetime > std::chrono::seconds(most)) {
    errors.push_back(Invalid(
        kChain, shown,
        StrCat("leaf certificate lifetime must be <= spec.maxExpirationSeconds (", most, ")")));
  } else if (*refresh < *begin + kRefreshMargin) {
    refuse("beginRefreshAt", "must be at least 10 minutes after status.notBefore");
  } else if (*refresh > *end - kRefreshMargin) {
    refuse("beginRefreshAt", "must be at least 10 minutes before status.notAfter");
  }
}

void CheckStatus(Value object, Value before, const StrategyContext& context, FieldErrors& errors) {
  std::size_t index = 0;
  std::size_t known = 0;
  for (const Value each : object["status"]["conditions"].elements()) {
    const std::string path = StrCat("status.conditions[", index++, "]");
    const std::string_view type = each["type"].str();
    if (std::ranges::find(kOutcomes, type) == std::end(kOutcomes)) {
      errors.push_back(NotSupported(path + ".type", type, {"Denied", "Failed", "Issued"}));
      continue;
    }
    if (++known > 1) {
      errors.push_back(Invalid(
          path + ".type", type,
          R"(There may be at most one condition with type "Issued", "Denied", or "Failed")"));
    }
    if (each["status"].str() != "True") {
      errors.push_back(NotSupported(path + ".status", each["status"].str(), {"True"}));
    }
  }
  if (!errors.empty()) return;
  const auto unchanged = [&](std::string_view why) {
    const Value now = object["status"];
    const Value then = before["status"];
    if (api::Equal(now, then) || (now.empty() && then.empty())) return;
    errors.push_back(Invalid("status", api::BadValue::Omitted(), why));
  };
  if (!OutcomeOf(before).empty()) {
    return unchanged("immutable after PodCertificateRequest is issued, denied, or failed");
  }
  const std::string_view outcome = OutcomeOf(object);
  if (outcome == "Issued") return CheckIssued(object, context, errors);
  if (outcome.empty()) {
    return unchanged(
        R"(status is immutable unless transitioning to "Issued", "Denied", or "Failed")");
  }
  for (const api::MemberView& member : object["status"].members()) {
    if (member.name == "conditions" || !member.value.has_value() || member.value.str(" ").empty()) {
      continue;
    }
    errors.push_back(Invalid("status", api::BadValue::Omitted(),
                             "non-condition status fields must be empty when denying or failing "
                             "the PodCertificateRequest"));
    return;
  }
}

}  // namespace

FieldErrors ClusterTrustBundleStrategy::Validate(Value object, const StrategyContext&) const {
  FieldErrors errors;
  CheckTrustBundleName(object, errors);
  if (const std::string_view signer = object["spec"]["signerName"].str(); !signer.empty()) {
    CheckSignerName(errors, api::FieldPath("spec.signerName"), signer);
  }
  errors.Append(CheckBundle(object["spec"]["trustBundle"].str()));
  return errors;
}

FieldErrors ClusterTrustBundleStrategy::ValidateUpdate(Value object, Value before, std::string_view,
                                                       const StrategyContext&) const {
  FieldErrors errors;
  const std::string_view bundle = object["spec"]["trustBundle"].str();
  if (bundle != before["spec"]["trustBundle"].str()) errors.Append(CheckBundle(bundle));
  return errors;
}

api::Problems ClusterTrustBundleStrategy::CheckName(const api::KindSchema&, std::string_view name,
                                                    bool prefix) const {
  // Validate knows the signer.
  return PathSegmentProblems(name, prefix);
}

FieldErrors PodCertificateRequestStrategy::Validate(Value object, const StrategyContext&) const {
  FieldErrors errors;
  const Value spec = object["spec"];
  const std::string_view signer = spec["signerName"].str();
  CheckSignerName(errors, api::FieldPath("spec.signerName"), signer);
  for (const api::MemberView& each : spec["unverifiedUserAnnotations"].members()) {
    const std::string key = ToLower(each.name);
    if (key.find('/') == std::string::npos) {
      errors.push_back(Invalid("spec.unverifiedUserAnnotations", key,
                               "must be a domain-prefixed key (such as \"acme.io/foo\")"));
    } else {
      AddProblems(errors, "spec.unverifiedUserAnnotations", key, api::CheckLabelKey(key));
    }
  }
  for (const api::FieldName field : api::FieldNames{"podName", "serviceAccountName", "nodeName"}) {
    const std::string_view name = spec[field].str();
    AddProblems(errors, StrCat("spec.", field), name, api::CheckDnsSubdomain(name));
  }
  for (const api::FieldName field : api::FieldNames{"podUID", "serviceAccountUID", "nodeUID"}) {
    const std::string_view uid = spec[field].str();
    const std::string path = StrCat("spec.", field);
    if (uid.empty()) errors.push_back(Invalid(path, uid, "must not be empty"));
    if (uid.size() > kMaxUidBytes) {
      errors.push_back(api::FieldError::TooLong(api::FieldPath(path), kMaxUidBytes));
    }
  }
  const std::int64_t most =
      signer.starts_with(kKubernetesDomain) ? kMaxKubernetesExpiration : kMaxExpiration;
  if (const std::int64_t seconds = spec["maxExpirationSeconds"].integer();
      seconds < kMinExpiration || seconds > most) {
    errors.push_back(Invalid("spec.maxExpirationSeconds", seconds,
                             StrCat("must be in the range [", kMinExpiration, ", ", most, "]")));
  }
  constexpr std::string_view kRequest = "spec.stubPKCS10Request";
  const std::string_view request = spec["stubPKCS10Request"].str();
  if (request.empty()) {
    errors.push_back(Required(kRequest));
  } else if (request.size() / 4 * 3 > kMaxRequestBytes) {
    errors.push_back(api::FieldError::TooLong(api::FieldPath(kRequest), kMaxRequestBytes));
  } else if (!net::ParseSigningRequest(PemOf(request)).ok()) {
    errors.push_back(Invalid(kRequest, api::BadValue::Omitted(), "must be a valid PKCS#10 CSR"));
  }
  return errors;
}

FieldErrors PodCertificateRequestStrategy::ValidateUpdate(Value object, Value before,
                                                          std::string_view subresource,
                                                          const StrategyContext& context) const {
  FieldErrors errors;
  if (subresource.empty()) {
    if (!api::Equal(object["spec"], before["spec"])) {
      errors.push_back(Invalid("spec", object["spec"], "field is immutable"));
    }
    return errors;
  }
  CheckStatus(object, before, context, errors);
  if (!errors.empty() || api::Equal(object["status"], before["status"])) return errors;
  const std::string_view signer = before["spec"]["signerName"].str();
  const std::string domain = StrCat(signer.substr(0, signer.find('/')), "/*");
  for (const std::string_view each : {signer, std::string_view(domain)}) {
    if (context.authorize("sign", "certificates.k8s.io", "signers", "", "", each).allowed) {
      return errors;
    }
  }
  errors.push_back(Forbidden("spec.signerName",
                             StrCat("User ", Quote(context.user.name),
                                    " is not permitted to \"sign\" for signer ", Quote(signer))));
  return errors;
}

}  // namespace drakkar::apiserver
