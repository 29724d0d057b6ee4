#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::net {

// JSON Web Signatures (RFC 7518) with the algorithm that follows from the key: ES256 for P-256,
// RS256 for RSA with 2,048 to 8,192 bits. Immutable and thread-safe.
class JwsSigner {
 public:
  static Result<std::unique_ptr<const JwsSigner>> Create(std::string_view private_key_pem);
  virtual ~JwsSigner() = default;
  virtual std::string_view algorithm() const = 0;
  virtual Result<std::string> Sign(std::string_view bytes) const = 0;
};

class JwsVerifier {
 public:
  // A public key, or a private key or a certificate that contains it.
  static Result<std::unique_ptr<const JwsVerifier>> Create(std::string_view key_pem);
  virtual ~JwsVerifier() = default;
  virtual std::string_view algorithm() const = 0;
  virtual bool Verify(std::string_view bytes, std::string_view signature) const = 0;
  virtual std::string PublicKeyDer() const = 0;  // SubjectPublicKeyInfo
  // The members of a JSON Web Key that describe the key, with values ready to be written: kty and
  // crv, x, y or n, e.
  struct Parameter {
    std::string name;
    std::string value;
  };
  virtual std::vector<Parameter> KeyParameters() const = 0;
};

}  // namespace drakkar::net
