#include "net/tls/openssl.h"

#include <openssl/err.h>
#include <openssl/pem.h>

namespace drakkar::net::openssl {

std::string LastError() {
  unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "unknown TLS error";
  const char* reason = ERR_reason_error_string(code);
  return reason ? reason : "unknown TLS error";
}

BioPtr ReadBio(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string BioText(BIO* bio) {
  char* data = nullptr;
  const long length = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<std::size_t>(length));
}

int NoPassword(char*, int, int, void*) {
  return -1;
}

Result<KeyPtr> ReadPrivateKey(std::string_view pem) {
  KeyPtr key(PEM_read_bio_PrivateKey(ReadBio(pem).get(), nullptr, &NoPassword, nullptr));
  if (!key) return InvalidArgument("no valid PEM private key: " + LastError());
  return key;
}

Result<KeyPtr> ReadPublicKey(std::string_view pem) {
  KeyPtr key(PEM_read_bio_PUBKEY(ReadBio(pem).get(), nullptr, &NoPassword, nullptr));
  if (!key) return InvalidArgument("no valid PEM public key: " + LastError());
  return key;
}

Result<CertificatePtr> ReadCertificate(std::string_view pem) {
  CertificatePtr certificate(PEM_read_bio_X509(ReadBio(pem).get(), nullptr, &NoPassword, nullptr));
  if (!certificate) return InvalidArgument("no valid PEM certificate: " + LastError());
  return certificate;
}

Result<std::vector<CertificatePtr>> ReadCertificates(std::string_view pem) {
  std::vector<CertificatePtr> certificates;
  BioPtr bio = ReadBio(pem);
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, &NoPassword, nullptr)) {
    certificates.emplace_back(next);
  }
  const unsigned long code = ERR_peek_last_error();
  if (certificates.empty() || ERR_GET_REASON(code) != PEM_R_NO_START_LINE) {
    return InvalidArgument("no valid PEM certificate: " + LastError());
  }
  ERR_clear_error();
  return certificates;
}

std::vector<std::string> NameEntries(const X509_NAME* name, int nid) {
  std::vector<std::string> values;
  for (int at = -1; (at = X509_NAME_get_index_by_NID(name, nid, at)) >= 0;) {
    unsigned char* text = nullptr;
    const int length =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    if (length < 0) continue;
    values.emplace_back(reinterpret_cast<char*>(text), static_cast<std::size_t>(length));
    OPENSSL_free(text);
  }
  return values;
}

std::string NameEntry(const X509_NAME* name, int nid) {
  std::vector<std::string> values = NameEntries(name, nid);
  return values.empty() ? std::string() : values.back();
}

}  // namespace drakkar::net::openssl
