#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/result/result.h"

namespace drakkar::net {

// Who the peer proved to be with its certificate.
struct PeerIdentity {
  std::string common_name;                 // the user
  std::vector<std::string> organizations;  // the groups
  bool operator==(const PeerIdentity&) const = default;
};

struct TlsServerOptions {
  std::string certificate_pem;  // the chain, own certificate first
  std::string key_pem;
  // Client certificates are asked for, never required, and checked against these. Empty: not asked.
  std::string client_ca_pem;
  bool offer_http2 = true;
};

struct TlsClientOptions {
  std::string ca_pem;           // empty: the machine's roots
  std::string certificate_pem;  // optional, with key_pem
  std::string key_pem;
  std::string server_name;  // checked instead of the URL's host when set
  bool insecure = false;    // skips the check of the server's certificate
  bool offer_http2 = true;
};

// Keys, certificates and settings shared by the connections of one server or client: TLS 1.2 or
// newer. Immutable; usable from several loops.
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

// One TLS connection without I/O: ciphertext in by Receive, ciphertext out by TakeOutput.
class TlsFilter {
 public:
  static std::unique_ptr<TlsFilter> Accept(std::shared_ptr<const TlsContext> context);
  // `host` is a DNS name or an IP address; sent as SNI (names only) and checked.
  static std::unique_ptr<TlsFilter> Connect(std::shared_ptr<const TlsContext> context,
                                            const std::string& host);
  ~TlsFilter();

  // Gives decrypted bytes to `on_plain`, piece by piece; it returns false when the filter is gone
  // or nothing more is wanted. After an error the connection is of no use; an alert for the peer
  // may be in the output.
  Result<void> Receive(std::string_view cipher, absl::FunctionRef<bool(std::string_view)> on_plain);
  // Appends what is decrypted to `plain`.
  Result<void> Receive(std::string_view cipher, std::string& plain);
  // Encrypts. Only after the handshake.
  Result<void> Send(std::string_view plain);
  // Says goodbye to the peer (close_notify).
  void Close();
  // What is to be written to the socket; the caller clears it.
  std::string& output();
  // Gives back the memory of records (some 34 KB) until the next one; for connections that are
  // idle.
  void ReleaseBuffers();

  bool is_ready() const;          // the handshake is done
  bool peer_closed() const;       // close_notify has arrived
  std::string_view alpn() const;  // "h2", "http/1.1" or ""
  // The verified client certificate's subject; none without one or when it does not verify.
  const std::optional<PeerIdentity>& peer() const;
  // Why the client's certificate was not accepted, or "".
  const std::string& peer_error() const;

 private:
  struct Impl;
  explicit TlsFilter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace drakkar::net
