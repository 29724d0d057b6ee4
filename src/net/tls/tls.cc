#include "net/tls/tls.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <cstring>
#include <mutex>

#include "base/text/text.h"
#include "net/tls/certificate_source.h"
#include "net/tls/openssl.h"

namespace drakkar::net {
namespace {

// Best first.
constexpr unsigned char kHttp2AndHttp1[] = "\x02h2\x08http/1.1\x08http/1.0";
constexpr unsigned char kHttp1[] = "\x08http/1.1\x08http/1.0";
constexpr std::size_t kReadBytes = 16 * 1024;

int SelectProtocol(SSL*, const unsigned char** out, unsigned char* out_length,
                   const unsigned char* offered, unsigned int offered_length, void* user) {
  const bool http2 = user != nullptr;
  const unsigned char* own = http2 ? kHttp2AndHttp1 : kHttp1;
  const unsigned int own_length = http2 ? sizeof(kHttp2AndHttp1) - 1 : sizeof(kHttp1) - 1;
  unsigned char* selected = nullptr;
  if (SSL_select_next_proto(&selected, out_length, own, own_length, offered, offered_length) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = selected;
  return SSL_TLSEXT_ERR_OK;
}

// Accept a client certificate that does not verify: the request is then anonymous, or the server
// above rejects it with 401. The result is available from SSL_get_verify_result.
int AcceptAnyCertificate(int, X509_STORE_CTX*) {
  return 1;
}

Result<void> UseCertificate(SSL_CTX* context, const std::string& certificate_pem,
                            const std::string& key_pem) {
  ASSIGN_OR_RETURN(auto chain, openssl::ReadCertificates(certificate_pem));
  ASSIGN_OR_RETURN(auto key, openssl::ReadPrivateKey(key_pem));
  if (SSL_CTX_use_certificate(context, chain[0].get()) != 1) {
    return InvalidArgument("certificate: " + openssl::LastError());
  }
  for (std::size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1) {
      return InvalidArgument("certificate chain: " + openssl::LastError());
    }
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return InvalidArgument("the private key does not match the certificate: " +
                           openssl::LastError());
  }
  return Ok();
}

Result<void> TrustRoots(SSL_CTX* context, const std::string& pem) {
  ASSIGN_OR_RETURN(auto roots, openssl::ReadCertificates(pem));
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  for (const auto& root : roots) {
    if (X509_STORE_add_cert(store, root.get()) != 1) {
      return InvalidArgument("CA certificate: " + openssl::LastError());
    }
  }
  return Ok();
}

bool IsIpAddress(const std::string& host) {
  ASN1_OCTET_STRING* address = a2i_IPADDRESS(host.c_str());
  ERR_clear_error();
  if (!address) return false;
  ASN1_OCTET_STRING_free(address);
  return true;
}

}  // namespace

struct TlsContext::Impl {
  SSL_CTX* context = nullptr;
  std::string server_name;
  bool insecure = false;
  std::function<Result<void>(const PeerIdentity&, const std::string&)> check_peer;
  std::shared_ptr<CertificateSource> source;
  X509_STORE* proxies = nullptr;  // of a server: null if it knows no proxies
  ~Impl() {
    X509_STORE_free(proxies);
    SSL_CTX_free(context);
  }

  // Whether the peer's certificate is that of a proxy.
  bool IsProxy(SSL* ssl, X509* certificate) const {
    if (proxies == nullptr) return false;
    X509_STORE_CTX* check = X509_STORE_CTX_new();
    CHECK(check != nullptr);
    bool verifies =
        X509_STORE_CTX_init(check, proxies, certificate, SSL_get_peer_cert_chain(ssl)) == 1 &&
        X509_STORE_CTX_set_default(check, "ssl_client") == 1;
    verifies = verifies && X509_verify_cert(check) == 1;
    X509_STORE_CTX_free(check);
    ERR_clear_error();
    return verifies;
  }

  // Gives a new connection the source's current certificate. One that cannot be used is ignored:
  // the connection then has the one that the context was created with.
  void UseCurrent(SSL* ssl) const {
    if (source == nullptr) return;
    const std::shared_ptr<const CertificateAndKey> pair = source->Current();
    std::lock_guard guard(mutex);
    if (pair != loaded_pair) {
      Result<std::vector<openssl::CertificatePtr>> read =
          openssl::ReadCertificates(pair->certificate_pem);
      Result<openssl::KeyPtr> read_key = openssl::ReadPrivateKey(pair->key_pem);
      loaded_pair = pair;
      if (read.ok() && read_key.ok()) {
        chain = *std::move(read);
        key = *std::move(read_key);
      }
    }
    if (chain.empty()) return;
    SSL_use_certificate(ssl, chain[0].get());
    SSL_clear_chain_certs(ssl);
    for (std::size_t i = 1; i < chain.size(); ++i) SSL_add1_chain_cert(ssl, chain[i].get());
    SSL_use_PrivateKey(ssl, key.get());
  }

  // What UseCurrent has parsed.
  mutable std::mutex mutex;
  mutable std::shared_ptr<const CertificateAndKey> loaded_pair;
  mutable std::vector<openssl::CertificatePtr> chain;
  mutable openssl::KeyPtr key;
};

namespace {

// The certificate to create a context with.
CertificateAndKey FirstCertificate(const std::shared_ptr<CertificateSource>& source,
                                   const std::string& certificate_pem, const std::string& key_pem) {
  if (source != nullptr) return *source->Current();
  return {certificate_pem, key_pem};
}

}  // namespace

TlsContext::TlsContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsContext::~TlsContext() = default;

Result<std::shared_ptr<const TlsContext>> TlsContext::Server(const TlsServerOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->context = SSL_CTX_new(TLS_server_method());
  SSL_CTX* context = impl->context;
  CHECK(context != nullptr);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                   SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set1_groups_list(context, "X25519:P-256:P-384");
  // AES-128-GCM first: sufficient, and the cheapest on machines with AES instructions.
  SSL_CTX_set_ciphersuites(
      context, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384");
  SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20");
  static constexpr unsigned char kSessionContext[] = "drakkar";
  SSL_CTX_set_session_id_context(context, kSessionContext, sizeof(kSessionContext) - 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);  // session tickets need no cache
  SSL_CTX_set_num_tickets(context, 1);
  impl->source = options.source;
  const CertificateAndKey own =
      FirstCertificate(options.source, options.certificate_pem, options.key_pem);
  RETURN_IF_ERROR(UseCertificate(context, own.certificate_pem, own.key_pem));
  if (!options.client_ca_pem.empty()) {
    Result<void> trusted = TrustRoots(context, options.client_ca_pem);
    if (!trusted.ok()) return trusted.error().Prefixed("client CA");
    ASSIGN_OR_RETURN(auto roots, openssl::ReadCertificates(options.client_ca_pem));
    for (const auto& root : roots) SSL_CTX_add_client_CA(context, root.get());
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, &AcceptAnyCertificate);
  }
  if (!options.proxy_ca_pem.empty()) {
    Result<std::vector<openssl::CertificatePtr>> roots =
        openssl::ReadCertificates(options.proxy_ca_pem);
    if (!roots.ok()) return roots.error().Prefixed("CA of proxies");
    impl->proxies = X509_STORE_new();
    CHECK(impl->proxies != nullptr);
    for (const auto& root : *roots) {
      if (X509_STORE_add_cert(impl->proxies, root.get()) != 1) {
        return InvalidArgument("CA of proxies: " + openssl::LastError());
      }
      SSL_CTX_add_client_CA(context, root.get());
    }
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, &AcceptAnyCertificate);
  }
  SSL_CTX_set_alpn_select_cb(context, &SelectProtocol, options.offer_http2 ? context : nullptr);
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(impl)));
}

Result<std::shared_ptr<const TlsContext>> TlsContext::Client(const TlsClientOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->context = SSL_CTX_new(TLS_client_method());
  impl->server_name = options.server_name;
  impl->insecure = options.insecure;
  impl->check_peer = options.check_peer;
  SSL_CTX* context = impl->context;
  CHECK(context != nullptr);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set1_groups_list(context, "X25519:P-256:P-384");
  if (!options.ca_pem.empty()) {
    Result<void> trusted = TrustRoots(context, options.ca_pem);
    if (!trusted.ok()) return trusted.error().Prefixed("CA");
  } else if (!options.insecure) {
    SSL_CTX_set_default_verify_paths(context);
  }
  impl->source = options.source;
  const CertificateAndKey own =
      FirstCertificate(options.source, options.certificate_pem, options.key_pem);
  if (!own.certificate_pem.empty()) {
    Result<void> used = UseCertificate(context, own.certificate_pem, own.key_pem);
    if (!used.ok()) return used.error().Prefixed("client certificate");
  }
  SSL_CTX_set_verify(context, options.insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  const unsigned char* protocols = options.offer_http2 ? kHttp2AndHttp1 : kHttp1;
  constexpr unsigned int kHttp10Bytes = 9;  // clients do not offer it
  const unsigned int length =
      (options.offer_http2 ? sizeof(kHttp2AndHttp1) - 1 : sizeof(kHttp1) - 1) - kHttp10Bytes;
  CHECK(SSL_CTX_set_alpn_protos(context, protocols, length) == 0);
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(impl)));
}

struct TlsFilter::Impl {
  std::shared_ptr<const TlsContext> context;
  SSL* ssl = nullptr;
  std::string_view input;  // during Receive
  std::string output;
  bool ready = false;
  bool peer_closed = false;
  bool failed = false;
  std::optional<PeerIdentity> peer;
  std::string peer_error;
  std::optional<PeerIdentity> proxy;
  std::string alpn;
  std::function<Result<void>(const PeerIdentity&)> check_peer;  // of a client; may be empty

  ~Impl() { SSL_free(ssl); }

  // A BIO that reads from `input` and appends to `output`, which avoids copies between OpenSSL's
  // buffers and ours.
  static int BioRead(BIO* bio, char* data, int length) {
    auto* self = static_cast<Impl*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    if (self->input.empty()) {
      BIO_set_retry_read(bio);
      return -1;
    }
    const std::size_t part = std::min(self->input.size(), static_cast<std::size_t>(length));
    std::memcpy(data, self->input.data(), part);
    self->input.remove_prefix(part);
    return static_cast<int>(part);
  }
  static int BioWrite(BIO* bio, const char* data, int length) {
    BIO_clear_retry_flags(bio);
    static_cast<Impl*>(BIO_get_data(bio))->output.append(data, static_cast<std::size_t>(length));
    return length;
  }
  static long BioControl(BIO*, int command, long, void*) {
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }
  static const BIO_METHOD* Method() {
    static BIO_METHOD* const kMethod = [] {
      BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "drakkar");
      BIO_meth_set_read(made, &BioRead);
      BIO_meth_set_write(made, &BioWrite);
      BIO_meth_set_ctrl(made, &BioControl);
      return made;
    }();
    return kMethod;
  }

  void Init(std::shared_ptr<const TlsContext> shared, SSL_CTX* native) {
    context = std::move(shared);
    ssl = SSL_new(native);
    CHECK(ssl != nullptr);
    SSL_set_read_ahead(ssl, 1);
    BIO* bio = BIO_new(Method());
    CHECK(bio != nullptr);
    BIO_set_data(bio, this);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
  }

  Error Failure() {
    failed = true;
    const long verify = SSL_get_verify_result(ssl);
    const bool verifying = ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_CERTIFICATE_VERIFY_FAILED;
    std::string reason = openssl::LastError();
    if (verifying && verify != X509_V_OK) {
      return Error{ErrorCode::kUnavailable,
                   StrCat("TLS: certificate: ", X509_verify_cert_error_string(verify))};
    }
    return Error{ErrorCode::kUnavailable, StrCat("TLS: ", reason)};
  }

  static PeerIdentity SubjectOf(const X509* certificate) {
    const X509_NAME* subject = X509_get_subject_name(certificate);
    return {openssl::NameEntry(subject, NID_commonName),
            openssl::NameEntries(subject, NID_organizationName)};
  }

  Result<void> CheckServer() {
    const X509* certificate = SSL_get0_peer_certificate(ssl);
    if (!check_peer || certificate == nullptr) return Ok();
    Result<void> checked = check_peer(SubjectOf(certificate));
    if (checked.ok()) return Ok();
    failed = true;
    return Error{ErrorCode::kUnavailable, StrCat("TLS: certificate: ", checked.error().message)};
  }

  void FinishHandshake() {
    ready = true;
    const unsigned char* protocol = nullptr;
    unsigned int length = 0;
    SSL_get0_alpn_selected(ssl, &protocol, &length);
    alpn.assign(reinterpret_cast<const char*>(protocol), length);
    if (!SSL_is_server(ssl)) return;
    X509* certificate = SSL_get0_peer_certificate(ssl);
    if (!certificate) return;
    if (context->impl_->IsProxy(ssl, certificate)) proxy = SubjectOf(certificate);
    const long verify = SSL_get_verify_result(ssl);
    if (verify != X509_V_OK) {
      peer_error = X509_verify_cert_error_string(verify);
      return;
    }
    peer = SubjectOf(certificate);
  }

  Result<void> Handshake() {
    ERR_clear_error();
    const int code = SSL_do_handshake(ssl);
    if (code == 1) {
      FinishHandshake();
      return SSL_is_server(ssl) ? Result<void>(Ok()) : CheckServer();
    }
    const int error = SSL_get_error(ssl, code);
    if (error == SSL_ERROR_WANT_READ) return Ok();
    return Failure();
  }
};

TlsFilter::TlsFilter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsFilter::~TlsFilter() = default;

std::unique_ptr<TlsFilter> TlsFilter::Accept(std::shared_ptr<const TlsContext> context) {
  auto impl = std::make_unique<Impl>();
  SSL_CTX* native = context->impl_->context;
  const TlsContext::Impl& settings = *context->impl_;
  impl->Init(std::move(context), native);
  settings.UseCurrent(impl->ssl);
  SSL_set_accept_state(impl->ssl);
  return std::unique_ptr<TlsFilter>(new TlsFilter(std::move(impl)));
}

std::unique_ptr<TlsFilter> TlsFilter::Connect(std::shared_ptr<const TlsContext> context,
                                              const std::string& host, std::string peer) {
  auto impl = std::make_unique<Impl>();
  const TlsContext::Impl& settings = *context->impl_;
  SSL_CTX* native = settings.context;
  if (settings.check_peer) {
    impl->check_peer = [&settings, peer = std::move(peer)](const PeerIdentity& server) {
      return settings.check_peer(server, peer);
    };
  }
  const std::string name = settings.server_name.empty() ? host : settings.server_name;
  const bool insecure = settings.insecure;
  impl->Init(std::move(context), native);
  settings.UseCurrent(impl->ssl);
  const bool is_ip = IsIpAddress(name);
  if (!is_ip) SSL_set_tlsext_host_name(impl->ssl, name.c_str());
  if (!insecure) {
    if (is_ip) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(impl->ssl), name.c_str());
    } else {
      SSL_set1_host(impl->ssl, name.c_str());
    }
  }
  SSL_set_connect_state(impl->ssl);
  (void)impl->Handshake();  // writes the first flight; cannot fail before input arrives
  return std::unique_ptr<TlsFilter>(new TlsFilter(std::move(impl)));
}

Result<void> TlsFilter::Receive(std::string_view cipher, std::string& plain) {
  return Receive(cipher, [&](std::string_view piece) {
    plain.append(piece);
    return true;
  });
}

Result<void> TlsFilter::Receive(std::string_view cipher,
                                absl::FunctionRef<bool(std::string_view)> on_plain) {
  Impl& self = *impl_;
  if (self.failed) return Unavailable("TLS: the connection has failed");
  self.input = cipher;
  if (!self.ready) {
    RETURN_IF_ERROR(self.Handshake());
    if (!self.ready) return Ok();
  }
  // One buffer per thread, used during the call, so that a record is processed while it is in the
  // CPU cache.
  thread_local std::unique_ptr<char[]> spare;
  std::unique_ptr<char[]> buffer = std::move(spare);
  if (buffer == nullptr) buffer.reset(new char[kReadBytes]);
  while (!self.peer_closed) {
    ERR_clear_error();
    const int count = SSL_read(self.ssl, buffer.get(), kReadBytes);
    if (count > 0) {
      if (!on_plain(std::string_view(buffer.get(), static_cast<std::size_t>(count)))) {
        spare = std::move(buffer);
        return Ok();  // `self` may be destroyed
      }
      // Usually one read has one record; another call would only confirm that.
      if (self.input.empty() && SSL_has_pending(self.ssl) == 0) break;
      continue;
    }
    const int error = SSL_get_error(self.ssl, count);
    if (error == SSL_ERROR_WANT_READ) break;
    if (error != SSL_ERROR_ZERO_RETURN) {
      self.input = {};
      spare = std::move(buffer);
      return self.Failure();
    }
    self.peer_closed = true;
  }
  self.input = {};
  spare = std::move(buffer);
  return Ok();
}

Result<void> TlsFilter::Send(std::string_view plain) {
  Impl& self = *impl_;
  if (!self.ready || self.failed) return Unavailable("TLS: the connection is not ready");
  while (!plain.empty()) {
    ERR_clear_error();
    std::size_t written = 0;
    if (SSL_write_ex(self.ssl, plain.data(), plain.size(), &written) != 1) return self.Failure();
    plain.remove_prefix(written);
  }
  return Ok();
}

void TlsFilter::Close() {
  if (impl_->ready && !impl_->failed) {
    ERR_clear_error();
    SSL_shutdown(impl_->ssl);
    ERR_clear_error();
  }
}

std::string& TlsFilter::output() {
  return impl_->output;
}
void TlsFilter::ReleaseBuffers() {
  SSL_free_buffers(impl_->ssl);  // a no-op while they hold data
  if (impl_->output.empty()) impl_->output = std::string();
}
bool TlsFilter::is_ready() const {
  return impl_->ready;
}
bool TlsFilter::peer_closed() const {
  return impl_->peer_closed;
}
std::string_view TlsFilter::alpn() const {
  return impl_->alpn;
}
const std::optional<PeerIdentity>& TlsFilter::peer() const {
  return impl_->peer;
}
const std::string& TlsFilter::peer_error() const {
  return impl_->peer_error;
}
const std::optional<PeerIdentity>& TlsFilter::proxy() const {
  return impl_->proxy;
}

}  // namespace drakkar::net
