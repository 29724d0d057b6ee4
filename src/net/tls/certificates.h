#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/env/clock.h"
#include "base/result/result.h"

namespace drakkar::net {

// X.509 with P-256 keys and ECDSA-SHA256. All inputs and outputs are PEM. Serial numbers and keys
// come from OpenSSL's generator, which the kernel seeds.

struct CertificateAndKey {
  std::string certificate_pem;
  std::string key_pem;
};

struct Validity {
  WallTime not_before;
  WallTime not_after;
};

struct CertificateSubject {
  std::string common_name;
  std::vector<std::string> organizations;
  std::vector<std::string> dns_names;
  std::vector<std::string> ip_addresses;
  std::vector<std::string> email_addresses = {};
  std::vector<std::string> uris = {};
};

enum class CertificateUse { kServer, kClient, kBoth };

Result<std::string> GenerateKeyPem();
// For tests of what others use; our own keys are P-256.
Result<std::string> GenerateRsaKeyPem(unsigned bits);
Result<std::string> PublicKeyPem(std::string_view private_key_pem);

// Creates a self-signed CA.
Result<CertificateAndKey> CreateCa(std::string_view common_name, Validity validity);
// Creates a key with a certificate signed by `ca`.
Result<CertificateAndKey> IssueCertificate(const CertificateAndKey& ca,
                                           const CertificateSubject& subject, CertificateUse use,
                                           Validity validity);

Result<std::string> CreateSigningRequest(std::string_view key_pem,
                                         const CertificateSubject& subject);
// Requests come from users. A longer one is not parsed, and keys of other kinds and sizes than
// RSA with 1,024 to 8,192 bits, ECDSA on a NIST curve and Ed25519 are refused, so that checking a
// signature takes a bounded time.
inline constexpr std::size_t kMaxRequestBytes = 64 * 1024;
// The subject of a request; verifies the request's own signature.
Result<CertificateSubject> ParseSigningRequest(std::string_view request_pem);
// What a certificate may be used for, in OpenSSL's short names ("digitalSignature", "serverAuth").
struct CertificateUsages {
  std::vector<std::string> key;
  std::vector<std::string> extended;
};
// Signs the request's key with the requested subject: its common name, organizations and
// alternative names. Returns the certificate.
Result<std::string> SignRequest(const CertificateAndKey& ca, std::string_view request_pem,
                                const CertificateUsages& usages, Validity validity);
Result<std::string> SignRequest(const CertificateAndKey& ca, std::string_view request_pem,
                                CertificateUse use, Validity validity);

struct CertificateInfo {
  CertificateSubject subject;
  std::string issuer_common_name;
  std::string serial_hex;
  std::string sha256_hex;  // of the DER encoding
  Validity validity;
  bool is_ca = false;
};
// Whether the key is that of the first certificate.
bool BelongTogether(const CertificateAndKey& pair);
// Parses the first certificate in the text.
Result<CertificateInfo> ParseCertificate(std::string_view pem);
// Fails unless the text has certificates, and no other PEM blocks and no PEM headers.
Result<void> CheckCertificates(std::string_view pem);

// A certificate of a bundle and the SHA-256 of its public key (SubjectPublicKeyInfo), by which
// whoever joins a cluster recognizes its CA.
struct PinnedCertificate {
  std::string pem;
  std::string public_key_sha256_hex;
};
inline constexpr std::size_t kMaxBundleCertificates = 64;
Result<std::vector<PinnedCertificate>> PinCertificates(std::string_view bundle_pem);

}  // namespace drakkar::net
