#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/env/random.h"
#include "base/exec/backoff.h"
#include "base/exec/event_loop.h"
#include "client/client.h"
#include "net/tls/certificate_source.h"
#include "node/join/certificate_request.h"

namespace drakkar::node {

// Certificate and key are in one file, so that they cannot be replaced separately.
Result<net::CertificateAndKey> ReadCertificateFile(FileSystem& files, const std::string& path);
Result<void> WriteCertificateFile(FileSystem& files, const std::string& path,
                                  const net::CertificateAndKey& pair);

// The signers and usages of a node's certificates.
inline constexpr char kNodeClientSigner[] = "kubernetes.io/kube-apiserver-client-kubelet";
inline constexpr char kNodeServingSigner[] = "kubernetes.io/kubelet-serving";
std::vector<std::string> NodeClientUsages();
std::vector<std::string> NodeServingUsages();
net::CertificateSubject NodeSubject(std::string_view node_name);

// A certificate that the node requests from the cluster, keeps in a file and renews. It is renewed
// like a kubelet's, at a random moment between 70 and 90 % of its life. A failed attempt is
// repeated with back-off, and the old certificate stays in use meanwhile. Without a usable one in
// the file, the first is requested immediately, and `meanwhile` serves until it is issued.
//
// Loop-bound; the source may be used on any thread.
class KeptCertificate {
 public:
  // How often the clock is checked, because it may be set forward while a timer runs.
  static constexpr Duration kLookInterval = std::chrono::hours(1);

  struct Options {
    EventLoop& loop;
    Random& random;
    FileSystem& files;
    client::Client& client;
    std::string path;
    std::string signer;
    std::vector<std::string> usages;
    net::CertificateSubject subject;
    net::CertificateAndKey meanwhile;
  };
  explicit KeptCertificate(Options options);

  void Start();
  std::shared_ptr<net::CertificateSource> source() const { return source_; }

 private:
  // Whether the certificate is for the subject, and not expired.
  bool IsUsable(const net::CertificateAndKey& pair) const;
  void Use(const net::CertificateAndKey& pair);
  void Look();
  void Renew();
  void OnIssued(Result<net::CertificateAndKey> issued);

  const Options options_;
  const std::shared_ptr<net::ReplaceableCertificate> source_;
  std::optional<WallTime> due_;  // nothing: there is none yet
  Backoff backoff_;
  TimerHandle timer_;
  std::unique_ptr<CertificateRequest> request_;
};

}  // namespace drakkar::node
