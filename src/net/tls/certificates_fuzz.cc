// Certificates, requests and keys in PEM, and compressed bodies, are read within their limits or
// rejected.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result/check.h"
#include "net/compress/gzip.h"
#include "net/tls/certificates.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::net;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto certificate = ParseCertificate(text); certificate.ok()) {
    CHECK(certificate->sha256_hex.size() == 64 &&
          ParseCertificate(text)->sha256_hex == certificate->sha256_hex);
  }
  static_cast<void>(ParseSigningRequest(text).ok());
  if (const auto pinned = PinCertificates(text); pinned.ok()) {
    CHECK(!pinned->empty() && CheckCertificates(pinned->front().pem).ok());
  }
  if (const auto key = PublicKeyPem(text); key.ok())
    CHECK(key->starts_with("-----BEGIN PUBLIC KEY"));
  constexpr std::size_t kMost = 1 << 16;
  if (const auto plain = Gunzip(text, kMost)) {
    CHECK(plain->size() <= kMost && Gunzip(Gzip(Body{MakeSegment(*plain)}), kMost) == plain);
  }
  return 0;
}
