#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/env/clock.h"
#include "base/env/file_system.h"
#include "base/result/result.h"
#include "net/tls/certificates.h"

namespace drakkar::net {

// A certificate that is replaced at run time. A TlsContext fetches it for every new connection, so
// nothing has to be restarted or notified. Thread-safe.
class CertificateSource {
 public:
  virtual ~CertificateSource() = default;
  // Another pointer than before means that it was replaced. Never null.
  virtual std::shared_ptr<const CertificateAndKey> Current() = 0;
};

// A certificate that its owner replaces.
class ReplaceableCertificate final : public CertificateSource {
 public:
  explicit ReplaceableCertificate(CertificateAndKey first) { Set(std::move(first)); }
  void Set(CertificateAndKey pair) {
    auto next = std::make_shared<const CertificateAndKey>(std::move(pair));
    const std::lock_guard guard(mutex_);
    current_ = std::move(next);
  }
  std::shared_ptr<const CertificateAndKey> Current() override {
    const std::lock_guard guard(mutex_);
    return current_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const CertificateAndKey> current_;  // guarded by mutex_
};

// How long before its end a certificate is renewed.
constexpr Duration kRenewBefore = std::chrono::hours(24 * 30);

// Issues a certificate, and another one when less than kRenewBefore of its life is left. If that
// fails, the old one stays in use and the attempt is repeated after kRetryRenewal.
class RenewedCertificate final : public CertificateSource {
 public:
  using Issue = std::function<Result<CertificateAndKey>()>;
  static constexpr Duration kRetryRenewal = std::chrono::minutes(1);

  // `current` is the first certificate; without it, one is issued. `on_renewed` is called with each
  // later one, or with the error if it could not be issued; it may be null.
  static Result<std::shared_ptr<RenewedCertificate>> Make(
      const Clock& clock, Issue issue, CertificateAndKey current = {},
      std::function<void(const Result<void>&)> on_renewed = {});

  std::shared_ptr<const CertificateAndKey> Current() override;

 private:
  RenewedCertificate(const Clock& clock, Issue issue,
                     std::function<void(const Result<void>&)> on_renewed)
      : clock_(clock), issue_(std::move(issue)), on_renewed_(std::move(on_renewed)) {}
  Result<void> Take(CertificateAndKey pair);

  const Clock& clock_;
  const Issue issue_;
  const std::function<void(const Result<void>&)> on_renewed_;
  std::mutex mutex_;
  std::shared_ptr<const CertificateAndKey> current_;  // guarded by mutex_
  WallTime due_{};                                    // guarded by mutex_
};

// A certificate that another process replaces: `read` is called at most every kReadInterval. If it
// cannot be read, or key and certificate do not match (half replaced), the old one stays in use.
class WatchedCertificate final : public CertificateSource {
 public:
  using Read = std::function<Result<CertificateAndKey>()>;
  static constexpr Duration kReadInterval = std::chrono::seconds(30);

  static Result<std::shared_ptr<WatchedCertificate>> Make(const Clock& clock, Read read);
  std::shared_ptr<const CertificateAndKey> Current() override;

 private:
  WatchedCertificate(const Clock& clock, Read read) : clock_(clock), read_(std::move(read)) {}

  const Clock& clock_;
  const Read read_;
  std::mutex mutex_;
  std::shared_ptr<const CertificateAndKey> current_;  // guarded by mutex_
  MonotonicTime read_at_{};                           // guarded by mutex_
};

// The pair in two PEM files.
WatchedCertificate::Read FromFiles(FileSystem& files, std::string certificate_path,
                                   std::string key_path);

// Why a certificate cannot be used at `now`: it has expired or is not valid yet. nullopt if it can.
std::optional<Error> WhyNotValid(std::string_view certificate_pem, WallTime now,
                                 std::string_view what);

}  // namespace drakkar::net
