#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/env/clock.h"
#include "base/env/file_system.h"
#include "base/result/result.h"
#include "net/tls/certificate_source.h"
#include "net/tls/certificates.h"

namespace drakkar::apiserver {

// The name in certificates of front proxies.
inline constexpr std::string_view kFrontProxyName = "front-proxy-client";

// The cluster's CA and the certificates it has issued, in one directory. They are created at the
// first start, read afterwards, and renewed at run time when less than a month is left. Keys have
// mode 0600. The CA is not renewed: it lasts ten years, and every client would need the new one.
class Pki {
 public:
  struct Options {
    std::string directory;
    std::vector<std::string> server_names;      // DNS names clients may use, besides the usual ones
    std::vector<std::string> server_addresses;  // IP addresses, besides loopback
  };
  static Result<Pki> Open(FileSystem& files, const Clock& clock, const Options& options);

  const net::CertificateAndKey& ca() const { return ca_; }
  const net::CertificateAndKey& server() const { return server_; }
  // The server's certificate at any time. `files` and the clock of Open must outlive it.
  const std::shared_ptr<net::CertificateSource>& server_source() const { return server_source_; }
  // The CA for front proxies, which pass the user of a request in headers.
  const net::CertificateAndKey& front_proxy_ca() const { return front_proxy_ca_; }
  // The key that signs service account tokens.
  const std::string& token_key_pem() const { return token_key_; }

  // A client certificate for a user and its groups, valid for a year.
  Result<net::CertificateAndKey> IssueClient(std::string_view user,
                                             std::vector<std::string> groups) const;
  // The certificate that this server presents as front proxy, issued again before it expires.
  Result<std::shared_ptr<net::CertificateSource>> FrontProxySource() const;
  // A serving certificate, for a node's port.
  Result<net::CertificateAndKey> IssueServer(std::string_view common_name,
                                             std::vector<std::string> names,
                                             std::vector<std::string> addresses) const;
  // The same, issued again before they expire.
  using Source = std::shared_ptr<net::CertificateSource>;
  Result<Source> ClientSource(std::string user, std::vector<std::string> groups) const;
  Result<Source> ServerSource(std::string common_name, std::vector<std::string> names,
                              std::vector<std::string> addresses) const;

 private:
  Pki(const Clock& clock) : clock_(&clock) {}

  const Clock* clock_;
  net::CertificateAndKey ca_;
  net::CertificateAndKey front_proxy_ca_;
  net::CertificateAndKey server_;
  std::shared_ptr<net::CertificateSource> server_source_;
  std::string token_key_;
};

// A self-contained kubeconfig: server, CA and client certificate.
std::string MakeKubeconfig(std::string_view server_url, std::string_view ca_pem,
                           const net::CertificateAndKey& client, std::string_view user);

}  // namespace drakkar::apiserver
