#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

// Owning pointers and conversions for net/tls only.
namespace drakkar::net::openssl {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using BioPtr = std::unique_ptr<BIO, Deleter<&BIO_free_all>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Deleter<&EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, Deleter<&X509_free>>;
using RequestPtr = std::unique_ptr<X509_REQ, Deleter<&X509_REQ_free>>;
using DigestContextPtr = std::unique_ptr<EVP_MD_CTX, Deleter<&EVP_MD_CTX_free>>;

// The newest entry of OpenSSL's error queue as text; clears the queue.
std::string LastError();

// A pass phrase callback that never prompts.
int NoPassword(char*, int, int, void*);
BioPtr ReadBio(std::string_view text);  // the text must outlive it
std::string BioText(BIO* bio);
Result<KeyPtr> ReadPrivateKey(std::string_view pem);
Result<KeyPtr> ReadPublicKey(std::string_view pem);
Result<CertificatePtr> ReadCertificate(std::string_view pem);                // the first one
Result<std::vector<CertificatePtr>> ReadCertificates(std::string_view pem);  // at least one

std::string NameEntry(const X509_NAME* name, int nid);  // the last entry, or ""
std::vector<std::string> NameEntries(const X509_NAME* name, int nid);

}  // namespace drakkar::net::openssl
