#include "net/tls/crypto.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ecdsa.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include "net/tls/openssl.h"

namespace drakkar::net {
namespace {

using SignaturePtr = std::unique_ptr<ECDSA_SIG, openssl::Deleter<&ECDSA_SIG_free>>;
constexpr int kCoordinateBytes = 32;

Result<void> RequireP256(EVP_PKEY* key) {
  char group[64] = {};
  std::size_t length = 0;
  if (EVP_PKEY_get_group_name(key, group, sizeof(group), &length) != 1 ||
      std::string_view(group, length) != "prime256v1") {
    openssl::LastError();
    return InvalidArgument("the key is not a P-256 key");
  }
  return Ok();
}

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string Coordinate(const EVP_PKEY* key, const char* name) {
  BIGNUM* number = nullptr;
  if (EVP_PKEY_get_bn_param(key, name, &number) != 1) return {};
  std::string bytes(kCoordinateBytes, '\0');
  BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()), kCoordinateBytes);
  BN_free(number);
  return bytes;
}

}  // namespace

std::string Sha256(std::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(Bytes(bytes), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string Sha256Hex(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (char c : Sha256(bytes)) {
    text += kHex[static_cast<unsigned char>(c) >> 4];
    text += kHex[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

std::string Sha1(std::string_view bytes) {
  std::string digest(SHA_DIGEST_LENGTH, '\0');
  SHA1(Bytes(bytes), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string HmacSha256(std::string_view key, std::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  unsigned int length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), Bytes(bytes), bytes.size(),
       reinterpret_cast<unsigned char*>(digest.data()), &length);
  return digest;
}

bool EqualsConstantTime(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

struct Es256Signer::Impl {
  openssl::KeyPtr key;
};
Es256Signer::Es256Signer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Es256Signer::~Es256Signer() = default;

Result<std::unique_ptr<const Es256Signer>> Es256Signer::Create(std::string_view private_key_pem) {
  auto impl = std::make_unique<Impl>();
  ASSIGN_OR_RETURN(impl->key, openssl::ReadPrivateKey(private_key_pem));
  RETURN_IF_ERROR(RequireP256(impl->key.get()));
  return std::unique_ptr<const Es256Signer>(new Es256Signer(std::move(impl)));
}

Result<std::string> Es256Signer::Sign(std::string_view bytes) const {
  openssl::DigestContextPtr context(EVP_MD_CTX_new());
  unsigned char der[128];
  std::size_t length = sizeof(der);
  if (EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, impl_->key.get()) != 1 ||
      EVP_DigestSign(context.get(), der, &length, Bytes(bytes), bytes.size()) != 1) {
    return Internal("sign: " + openssl::LastError());
  }
  const unsigned char* at = der;
  SignaturePtr signature(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(length)));
  if (!signature) return Internal("sign: " + openssl::LastError());
  std::string raw(2 * kCoordinateBytes, '\0');
  auto* out = reinterpret_cast<unsigned char*>(raw.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(signature.get()), out, kCoordinateBytes);
  BN_bn2binpad(ECDSA_SIG_get0_s(signature.get()), out + kCoordinateBytes, kCoordinateBytes);
  return raw;
}

struct Es256Verifier::Impl {
  openssl::KeyPtr key;
};
Es256Verifier::Es256Verifier(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Es256Verifier::~Es256Verifier() = default;

Result<std::unique_ptr<const Es256Verifier>> Es256Verifier::Create(
    std::string_view public_key_pem) {
  auto impl = std::make_unique<Impl>();
  ASSIGN_OR_RETURN(impl->key, openssl::ReadPublicKey(public_key_pem));
  RETURN_IF_ERROR(RequireP256(impl->key.get()));
  return std::unique_ptr<const Es256Verifier>(new Es256Verifier(std::move(impl)));
}

bool Es256Verifier::Verify(std::string_view bytes, std::string_view signature) const {
  if (signature.size() != 2 * kCoordinateBytes) return false;
  SignaturePtr parsed(ECDSA_SIG_new());
  ECDSA_SIG_set0(parsed.get(), BN_bin2bn(Bytes(signature), kCoordinateBytes, nullptr),
                 BN_bin2bn(Bytes(signature) + kCoordinateBytes, kCoordinateBytes, nullptr));
  unsigned char* der = nullptr;
  const int length = i2d_ECDSA_SIG(parsed.get(), &der);
  if (length <= 0) return false;
  openssl::DigestContextPtr context(EVP_MD_CTX_new());
  const bool valid =
      EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, impl_->key.get()) == 1 &&
      EVP_DigestVerify(context.get(), der, static_cast<std::size_t>(length), Bytes(bytes),
                       bytes.size()) == 1;
  OPENSSL_free(der);
  openssl::LastError();
  return valid;
}

std::string Es256Verifier::x() const {
  return Coordinate(impl_->key.get(), OSSL_PKEY_PARAM_EC_PUB_X);
}
std::string Es256Verifier::y() const {
  return Coordinate(impl_->key.get(), OSSL_PKEY_PARAM_EC_PUB_Y);
}

std::string Es256Verifier::PublicKeyDer() const {
  unsigned char* der = nullptr;
  const int length = i2d_PUBKEY(impl_->key.get(), &der);
  std::string text(reinterpret_cast<char*>(der), static_cast<std::size_t>(std::max(length, 0)));
  OPENSSL_free(der);
  return text;
}

}  // namespace drakkar::net
