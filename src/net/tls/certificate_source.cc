#include "net/tls/certificate_source.h"

#include <ctime>
#include <utility>

namespace drakkar::net {
namespace {

std::string DateOf(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%SZ", &parts);
  return text;
}

}  // namespace

Result<std::shared_ptr<RenewedCertificate>> RenewedCertificate::Make(
    const Clock& clock, Issue issue, CertificateAndKey current,
    std::function<void(const Result<void>&)> on_renewed) {
  std::shared_ptr<RenewedCertificate> made(
      new RenewedCertificate(clock, std::move(issue), std::move(on_renewed)));
  if (current.certificate_pem.empty()) {
    ASSIGN_OR_RETURN(current, made->issue_());
  }
  RETURN_IF_ERROR(made->Take(std::move(current)));
  return made;
}

Result<void> RenewedCertificate::Take(CertificateAndKey pair) {
  ASSIGN_OR_RETURN(const CertificateInfo info, ParseCertificate(pair.certificate_pem));
  due_ = info.validity.not_after - kRenewBefore;
  current_ = std::make_shared<const CertificateAndKey>(std::move(pair));
  return Ok();
}

std::shared_ptr<const CertificateAndKey> RenewedCertificate::Current() {
  std::lock_guard guard(mutex_);
  const WallTime now = clock_.Now();
  if (now < due_) return current_;
  Result<CertificateAndKey> issued = issue_();
  Result<void> taken = issued.ok() ? Take(*std::move(issued)) : issued.error();
  if (!taken.ok()) due_ = now + kRetryRenewal;
  if (on_renewed_) on_renewed_(taken);
  return current_;
}

Result<std::shared_ptr<WatchedCertificate>> WatchedCertificate::Make(const Clock& clock,
                                                                     Read read) {
  std::shared_ptr<WatchedCertificate> made(new WatchedCertificate(clock, std::move(read)));
  ASSIGN_OR_RETURN(CertificateAndKey pair, made->read_());
  made->current_ = std::make_shared<const CertificateAndKey>(std::move(pair));
  made->read_at_ = clock.Monotonic();
  return made;
}

std::shared_ptr<const CertificateAndKey> WatchedCertificate::Current() {
  std::lock_guard guard(mutex_);
  const MonotonicTime now = clock_.Monotonic();
  if (now - read_at_ < kReadInterval) return current_;
  read_at_ = now;
  Result<CertificateAndKey> pair = read_();
  const bool is_new = pair.ok() && (pair->certificate_pem != current_->certificate_pem ||
                                    pair->key_pem != current_->key_pem);
  if (is_new && BelongTogether(*pair)) {
    current_ = std::make_shared<const CertificateAndKey>(*std::move(pair));
  }
  return current_;
}

WatchedCertificate::Read FromFiles(FileSystem& files, std::string certificate_path,
                                   std::string key_path) {
  return [&files, certificate_path = std::move(certificate_path),
          key_path = std::move(key_path)]() -> Result<CertificateAndKey> {
    ASSIGN_OR_RETURN(std::string certificate, files.ReadFile(certificate_path));
    ASSIGN_OR_RETURN(std::string key, files.ReadFile(key_path));
    return CertificateAndKey{std::move(certificate), std::move(key)};
  };
}

std::optional<Error> WhyNotValid(std::string_view certificate_pem, WallTime now,
                                 std::string_view what) {
  const Result<CertificateInfo> info = ParseCertificate(certificate_pem);
  if (!info.ok()) return std::nullopt;  // whoever uses it finds out
  if (now > info->validity.not_after) {
    return FailedPrecondition(std::string(what) + " expired on " +
                              DateOf(info->validity.not_after));
  }
  if (now < info->validity.not_before) {
    return FailedPrecondition(std::string(what) + " is not valid before " +
                              DateOf(info->validity.not_before) +
                              "; check the clock of this machine");
  }
  return std::nullopt;
}

}  // namespace drakkar::net
