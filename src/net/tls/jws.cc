#include "net/tls/jws.h"

#include <openssl/core_names.h>
#include <openssl/pem.h>

#include "base/hash/base64.h"
#include "net/tls/crypto.h"
#include "net/tls/openssl.h"

namespace drakkar::net {
namespace {

constexpr int kMinRsaBits = 2048;
constexpr int kMaxRsaBits = 8192;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

bool IsRsa(EVP_PKEY* key) {
  return EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA;
}

Result<void> RequireRsaSize(EVP_PKEY* key) {
  const int bits = EVP_PKEY_get_bits(key);
  if (bits >= kMinRsaBits && bits <= kMaxRsaBits) return Ok();
  return InvalidArgument("an RSA key must have 2048 to 8192 bits");
}

std::string Der(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int length = i2d_PUBKEY(key, &der);
  std::string text(reinterpret_cast<char*>(der), static_cast<std::size_t>(std::max(length, 0)));
  OPENSSL_free(der);
  return text;
}

// The shortest big-endian form.
std::string Number(const EVP_PKEY* key, const char* name) {
  BIGNUM* number = nullptr;
  if (EVP_PKEY_get_bn_param(key, name, &number) != 1) return {};
  std::string bytes(static_cast<std::size_t>(BN_num_bytes(number)), '\0');
  BN_bn2bin(number, reinterpret_cast<unsigned char*>(bytes.data()));
  BN_free(number);
  return bytes;
}

std::string PublicPem(EVP_PKEY* key) {
  openssl::BioPtr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PUBKEY(bio.get(), key);
  return openssl::BioText(bio.get());
}

class EcSigner final : public JwsSigner {
 public:
  explicit EcSigner(std::unique_ptr<const Es256Signer> signer) : signer_(std::move(signer)) {}
  std::string_view algorithm() const override { return "ES256"; }
  Result<std::string> Sign(std::string_view bytes) const override { return signer_->Sign(bytes); }

 private:
  std::unique_ptr<const Es256Signer> signer_;
};

class RsaSigner final : public JwsSigner {
 public:
  explicit RsaSigner(openssl::KeyPtr key) : key_(std::move(key)) {}
  std::string_view algorithm() const override { return "RS256"; }
  Result<std::string> Sign(std::string_view bytes) const override {
    openssl::DigestContextPtr context(EVP_MD_CTX_new());
    std::string signature(static_cast<std::size_t>(EVP_PKEY_get_size(key_.get())), '\0');
    std::size_t length = signature.size();
    if (EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get()) != 1 ||
        EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &length,
                       Bytes(bytes), bytes.size()) != 1) {
      return Internal("sign: " + openssl::LastError());
    }
    signature.resize(length);
    return signature;
  }

 private:
  openssl::KeyPtr key_;
};

class EcVerifier final : public JwsVerifier {
 public:
  explicit EcVerifier(std::unique_ptr<const Es256Verifier> verifier)
      : verifier_(std::move(verifier)) {}
  std::string_view algorithm() const override { return "ES256"; }
  bool Verify(std::string_view bytes, std::string_view signature) const override {
    return verifier_->Verify(bytes, signature);
  }
  std::string PublicKeyDer() const override { return verifier_->PublicKeyDer(); }
  std::vector<Parameter> KeyParameters() const override {
    return {{"kty", "EC"},
            {"crv", "P-256"},
            {"x", Base64UrlEncode(verifier_->x())},
            {"y", Base64UrlEncode(verifier_->y())}};
  }

 private:
  std::unique_ptr<const Es256Verifier> verifier_;
};

class RsaVerifier final : public JwsVerifier {
 public:
  explicit RsaVerifier(openssl::KeyPtr key) : key_(std::move(key)) {}
  std::string_view algorithm() const override { return "RS256"; }
  bool Verify(std::string_view bytes, std::string_view signature) const override {
    openssl::DigestContextPtr context(EVP_MD_CTX_new());
    const bool valid =
        EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get()) == 1 &&
        EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(bytes),
                         bytes.size()) == 1;
    (void)openssl::LastError();
    return valid;
  }
  std::string PublicKeyDer() const override { return Der(key_.get()); }
  std::vector<Parameter> KeyParameters() const override {
    return {{"kty", "RSA"},
            {"n", Base64UrlEncode(Number(key_.get(), OSSL_PKEY_PARAM_RSA_N))},
            {"e", Base64UrlEncode(Number(key_.get(), OSSL_PKEY_PARAM_RSA_E))}};
  }

 private:
  openssl::KeyPtr key_;
};

// The public key of the first PEM block, whatever its type.
Result<openssl::KeyPtr> ReadAnyKey(std::string_view pem) {
  if (pem.find("-----BEGIN CERTIFICATE-----") != std::string_view::npos) {
    ASSIGN_OR_RETURN(const openssl::CertificatePtr certificate, openssl::ReadCertificate(pem));
    openssl::KeyPtr key(X509_get_pubkey(certificate.get()));
    if (!key) return InvalidArgument("no key in the certificate: " + openssl::LastError());
    return key;
  }
  if (pem.find("PRIVATE KEY-----") != std::string_view::npos) return openssl::ReadPrivateKey(pem);
  return openssl::ReadPublicKey(pem);
}

}  // namespace

Result<std::unique_ptr<const JwsSigner>> JwsSigner::Create(std::string_view private_key_pem) {
  ASSIGN_OR_RETURN(openssl::KeyPtr key, openssl::ReadPrivateKey(private_key_pem));
  if (IsRsa(key.get())) {
    RETURN_IF_ERROR(RequireRsaSize(key.get()));
    return std::unique_ptr<const JwsSigner>(std::make_unique<RsaSigner>(std::move(key)));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<const Es256Signer> signer, Es256Signer::Create(private_key_pem));
  return std::unique_ptr<const JwsSigner>(std::make_unique<EcSigner>(std::move(signer)));
}

Result<std::unique_ptr<const JwsVerifier>> JwsVerifier::Create(std::string_view key_pem) {
  ASSIGN_OR_RETURN(openssl::KeyPtr key, ReadAnyKey(key_pem));
  if (IsRsa(key.get())) {
    RETURN_IF_ERROR(RequireRsaSize(key.get()));
    return std::unique_ptr<const JwsVerifier>(std::make_unique<RsaVerifier>(std::move(key)));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<const Es256Verifier> verifier,
                   Es256Verifier::Create(PublicPem(key.get())));
  return std::unique_ptr<const JwsVerifier>(std::make_unique<EcVerifier>(std::move(verifier)));
}

}  // namespace drakkar::net
