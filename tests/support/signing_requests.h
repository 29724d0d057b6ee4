#pragma once

#include <string>
#include <string_view>

#include "base/hash/base64.h"
#include "base/text/text.h"
#include "net/tls/certificates.h"

namespace drakkar::testing {

// The PEM of a request for this subject, as base64; with a key of its own.
inline std::string EncodedRequest(const net::CertificateSubject& subject) {
  const std::string key = net::GenerateKeyPem().value();
  return Base64Encode(net::CreateSigningRequest(key, subject).value());
}

// A CertificateSigningRequest as JSON. `usages` is a JSON list, `more` further members of the spec.
inline std::string SigningRequestJson(std::string_view name, std::string_view signer,
                                      const net::CertificateSubject& subject,
                                      std::string_view usages, std::string_view more = "") {
  return StrCat(R"({"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest",)",
                R"("metadata":{"name":")", name, R"("},"spec":{"signerName":")", signer,
                R"(","request":")", EncodedRequest(subject), R"(","usages":)", usages, more, "}}");
}

}  // namespace drakkar::testing
