#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/result/result.h"

namespace drakkar::net {

// The peer's identity from its verified certificate.
struct PeerIdentity {
  std::string common_name;                 // the user
  std::vector<std::string> organizations;  // the groups
  bool operator==(const PeerIdentity&) const = default;
};

class CertificateSource;

struct TlsServerOptions {
  std::string certificate_pem;  // the chain, starting with the own certificate
  std::string key_pem;
  // If set, it is asked for both at every connection.
  std::shared_ptr<CertificateSource> source;
  // Client certificates are requested but not required, and verified against these. If empty, none
  // are requested.
  std::string client_ca_pem;
  // Client certificates are also verified against these, which issue those of proxies. A chain that
  // a session would not keep may be needed for that, so sessions are then not resumed.
  std::string proxy_ca_pem = {};
  bool offer_http2 = true;
};

struct TlsClientOptions {
  std::string ca_pem;           // if empty, the system's root certificates
  std::string certificate_pem;  // optional, with key_pem
  std::string key_pem;
  std::shared_ptr<CertificateSource> source;  // if set, it is asked for both at every connection
  std::string server_name;                    // if set, verified instead of the URL's host
  bool insecure = false;                      // skips verification of the server's certificate
  bool offer_http2 = true;
  // If set, it is asked after the verification whether a server with this certificate may be the
  // one that the caller named (ClientRequest::peer).
  std::function<Result<void>(const PeerIdentity& server, const std::string& peer)> check_peer;
};

// Keys, certificates and settings shared by the connections of a server or client: TLS 1.2 or
// newer. Can be used on several loops.
class TlsContext {
 public:
  static Result<std::shared_ptr<const TlsContext>> Server(const TlsServerOptions& options);
  static Result<std::shared_ptr<const TlsContext>> Client(const TlsClientOptions& options);
  ~TlsContext();

 private:
  friend class TlsFilter;
  struct Impl;
  explicit TlsContext(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// One TLS connection without I/O: ciphertext in through Receive, ciphertext out through output().
class TlsFilter {
 public:
  static std::unique_ptr<TlsFilter> Accept(std::shared_ptr<const TlsContext> context);
  // `host` is a DNS name or IP address; it is sent as SNI (names only) and verified. `peer` is
  // passed to check_peer.
  static std::unique_ptr<TlsFilter> Connect(std::shared_ptr<const TlsContext> context,
                                            const std::string& host, std::string peer = "");
  ~TlsFilter();

  // Passes decrypted bytes to `on_plain` piece by piece; it returns false if the filter is
  // destroyed or no more is wanted. After an error the connection cannot be used; the output may
  // contain an alert for the peer.
  Result<void> Receive(std::string_view cipher, absl::FunctionRef<bool(std::string_view)> on_plain);
  // Appends decrypted bytes to `plain`.
  Result<void> Receive(std::string_view cipher, std::string& plain);
  // Encrypts. Requires a completed handshake.
  Result<void> Send(std::string_view plain);
  // Sends close_notify to the peer.
  void Close();
  // Bytes to write to the socket; the caller clears it.
  std::string& output();
  // Frees the record buffers (about 34 KB) until the next record; for idle connections.
  void ReleaseBuffers();

  bool is_ready() const;          // the handshake is complete
  bool peer_closed() const;       // close_notify was received
  std::string_view alpn() const;  // "h2", "http/1.1" or ""
  // The subject of the verified client certificate; none if there is none or it does not verify.
  const std::optional<PeerIdentity>& peer() const;
  // Why the client's certificate was rejected, or "".
  const std::string& peer_error() const;
  // The subject of a client certificate that verifies as that of a proxy.
  const std::optional<PeerIdentity>& proxy() const;

 private:
  struct Impl;
  explicit TlsFilter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace drakkar::net
