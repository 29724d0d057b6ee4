#include "node/join/certificate_request.h"

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/hash/base64.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("certificates");

const api::KindSchema& Kind() {
  return *api::FindKind("certificates.k8s.io", "v1", "CertificateSigningRequest");
}

// Whether another attempt with the same request may succeed.
bool IsTemporary(ErrorCode code) {
  return code == ErrorCode::kUnavailable || code == ErrorCode::kDeadlineExceeded ||
         code == ErrorCode::kResourceExhausted || code == ErrorCode::kInternal;
}

}  // namespace

CertificateRequest::CertificateRequest(Options options, Done done)
    : options_(std::move(options)),
      done_(std::move(done)),
      deadline_(options_.loop.clock().Monotonic() + kMaxWait),
      backoff_({.initial = std::chrono::milliseconds(100),
                .max = std::chrono::seconds(5),
                .jitter = 0.1},
               &options_.random) {
  options_.loop.Post(lifetime_.Guard([this] { Create(); }));
}

void CertificateRequest::Create() {
  Result<std::string> key = net::GenerateKeyPem();
  if (!key.ok()) return Finish(key.error());
  key_pem_ = std::move(*key);
  const Result<std::string> request = net::CreateSigningRequest(key_pem_, options_.subject);
  if (!request.ok()) return Finish(request.error());
  api::Draft usages = api::Draft::Array();
  for (const std::string& usage : options_.usages) usages.Append(usage);
  const api::Draft body{{"apiVersion", "certificates.k8s.io/v1"},
                        {"kind", "CertificateSigningRequest"},
                        {"metadata", {{"generateName", "csr-"}}},
                        {"spec",
                         {{"request", Base64Encode(*request)},
                          {"signerName", options_.signer},
                          {"usages", std::move(usages)}}}};
  options_.client.Create(
      {&Kind(), "", "", ""}, body.Freeze(), {}, lifetime_.Guard([this](client::Reply reply) {
        if (!reply.ok()) {
          return Finish(reply.error->Prefixed("create a certificate request"));
        }
        name_ = reply.object->name();
        kLog.Info("requested a certificate", {{"request", name_}, {"signer", options_.signer}});
        Ask();
      }));
}

void CertificateRequest::Ask() {
  if (options_.loop.clock().Monotonic() >= deadline_) {
    return Finish(
        Error{ErrorCode::kDeadlineExceeded,
              StrCat("certificate request ", name_,
                     " was not approved and signed in time; approve it with `kubectl "
                     "certificate approve ",
                     name_, "`, and see that the cluster has a signer for ", options_.signer)});
  }
  options_.client.Get({&Kind(), "", name_, ""},
                      lifetime_.Guard([this](const client::Reply& reply) { OnAnswer(reply); }));
}

void CertificateRequest::OnAnswer(const client::Reply& reply) {
  const auto again = [this] {
    timer_ = options_.loop.RunAfter(backoff_.Next(), [this] { Ask(); });
  };
  if (!reply.ok()) {
    if (IsTemporary(reply.error->code)) return again();
    return Finish(reply.error->Prefixed(StrCat("certificate request ", name_)));
  }
  const api::Value status = (*reply.object)["status"];
  for (const api::Value each : status["conditions"].elements()) {
    const std::string_view type = each["type"].str();
    if (type == "Denied" || type == "Failed") {
      return Finish(FailedPrecondition(
          StrCat("certificate request ", name_, type == "Denied" ? " was denied" : " failed",
                 each["message"].str().empty() ? "" : ": ", each["message"].str())));
    }
  }
  if (status["certificate"].str().empty()) return again();
  Result<std::string> certificate = Base64Decode(status["certificate"].str());
  if (!certificate.ok()) return Finish(certificate.error());
  net::CertificateAndKey pair{std::move(*certificate), std::move(key_pem_)};
  const Result<net::CertificateInfo> info = net::ParseCertificate(pair.certificate_pem);
  if (!info.ok()) return Finish(info.error());
  if (!net::BelongTogether(pair) || info->subject.common_name != options_.subject.common_name) {
    return Finish(FailedPrecondition(StrCat(
        "certificate request ", name_, " was answered with a certificate that does not match it")));
  }
  Finish(std::move(pair));
}

void CertificateRequest::Finish(Result<net::CertificateAndKey> result) {
  timer_.reset();
  // May destroy this object.
  std::exchange(done_, nullptr)(std::move(result));
}

}  // namespace drakkar::node
