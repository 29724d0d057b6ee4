#include "node/join/kept_certificate.h"

#include <algorithm>

#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("certificates");
constexpr double kEarliest = 0.7;
constexpr double kSpread = 0.2;

bool Covers(const std::vector<std::string>& has, const std::vector<std::string>& wanted) {
  return std::ranges::all_of(
      wanted, [&](const std::string& each) { return std::ranges::find(has, each) != has.end(); });
}

}  // namespace

Result<net::CertificateAndKey> ReadCertificateFile(FileSystem& files, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, files.ReadFile(path));
  return net::CertificateAndKey{text, text};
}

Result<void> WriteCertificateFile(FileSystem& files, const std::string& path,
                                  const net::CertificateAndKey& pair) {
  RETURN_IF_ERROR(files.MakeDirectories(DirectoryName(path), 0700));
  return files.WriteFileAtomically(path, StrCat(pair.certificate_pem, pair.key_pem), 0600);
}

std::vector<std::string> NodeClientUsages() {
  return {"digital signature", "client auth"};
}
std::vector<std::string> NodeServingUsages() {
  return {"digital signature", "server auth"};
}
net::CertificateSubject NodeSubject(std::string_view node_name) {
  return {StrCat("system:node:", node_name), {"system:nodes"}, {}, {}};
}

KeptCertificate::KeptCertificate(Options options)
    : options_(std::move(options)),
      source_(std::make_shared<net::ReplaceableCertificate>(options_.meanwhile)),
      backoff_({.initial = std::chrono::seconds(1), .max = std::chrono::minutes(10), .jitter = 0.2},
               &options_.random) {}

void KeptCertificate::Start() {
  const Result<net::CertificateAndKey> kept = ReadCertificateFile(options_.files, options_.path);
  if (kept.ok() && IsUsable(*kept)) Use(*kept);
  Look();
}

bool KeptCertificate::IsUsable(const net::CertificateAndKey& pair) const {
  const Result<net::CertificateInfo> info = net::ParseCertificate(pair.certificate_pem);
  return info.ok() && net::BelongTogether(pair) &&
         info->subject.common_name == options_.subject.common_name &&
         Covers(info->subject.dns_names, options_.subject.dns_names) &&
         Covers(info->subject.ip_addresses, options_.subject.ip_addresses) &&
         info->validity.not_after > options_.loop.clock().Now();
}

void KeptCertificate::Use(const net::CertificateAndKey& pair) {
  const net::Validity validity = net::ParseCertificate(pair.certificate_pem).value().validity;
  const Duration lifetime = validity.not_after - validity.not_before;
  due_ = validity.not_before + std::chrono::duration_cast<Duration>(
                                   lifetime * (kEarliest + kSpread * options_.random.Fraction()));
  source_->Set(pair);
}

void KeptCertificate::Look() {
  const WallTime now = options_.loop.clock().Now();
  if (!due_ || *due_ <= now) return Renew();
  timer_ =
      options_.loop.RunAfter(std::min<Duration>(*due_ - now, kLookInterval), [this] { Look(); });
}

void KeptCertificate::Renew() {
  request_ = std::make_unique<CertificateRequest>(
      CertificateRequest::Options{.loop = options_.loop,
                                  .random = options_.random,
                                  .client = options_.client,
                                  .signer = options_.signer,
                                  .subject = options_.subject,
                                  .usages = options_.usages},
      [this](Result<net::CertificateAndKey> issued) { OnIssued(std::move(issued)); });
}

void KeptCertificate::OnIssued(Result<net::CertificateAndKey> issued) {
  Result<void> kept =
      issued.ok() ? WriteCertificateFile(options_.files, options_.path, *issued) : issued.error();
  if (!kept.ok()) {
    kLog.Error("could not get a certificate; retrying",
               {{"signer", options_.signer}, {"error", kept.error().message}});
    timer_ = options_.loop.RunAfter(backoff_.Next(), [this] { Renew(); });
    return;
  }
  backoff_.Reset();
  kLog.Info("got a certificate", {{"signer", options_.signer}, {"file", options_.path}});
  Use(*issued);
  timer_ = options_.loop.RunAfter(Duration::zero(), [this] {
    request_.reset();
    Look();
  });
}

}  // namespace drakkar::node
