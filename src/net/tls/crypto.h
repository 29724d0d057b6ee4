#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result/result.h"

namespace drakkar::net {

std::string Sha256(std::string_view bytes);     // 32 bytes
std::string Sha256Hex(std::string_view bytes);  // 64 lower-case digits
// Required by the WebSocket handshake; protects nothing.
std::string Sha1(std::string_view bytes);  // 20 bytes
std::string HmacSha256(std::string_view key, std::string_view bytes);
// Takes a time that depends only on the lengths; for tokens.
bool EqualsConstantTime(std::string_view a, std::string_view b);

// ECDSA on P-256 with SHA-256 as in JSON Web Signatures (RFC 7518 section 3.4): a signature is r
// and s, 32 bytes each. Immutable and thread-safe.
class Es256Signer {
 public:
  static Result<std::unique_ptr<const Es256Signer>> Create(std::string_view private_key_pem);
  ~Es256Signer();
  Result<std::string> Sign(std::string_view bytes) const;

 private:
  struct Impl;
  explicit Es256Signer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class Es256Verifier {
 public:
  static Result<std::unique_ptr<const Es256Verifier>> Create(std::string_view public_key_pem);
  ~Es256Verifier();
  bool Verify(std::string_view bytes, std::string_view signature) const;
  // The point's coordinates, 32 bytes each, for a JSON Web Key.
  std::string x() const;
  std::string y() const;
  std::string PublicKeyDer() const;  // SubjectPublicKeyInfo, from which key IDs are derived

 private:
  struct Impl;
  explicit Es256Verifier(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace drakkar::net
