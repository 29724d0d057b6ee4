#include "net/tls/certificates.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/text/text.h"
#include "net/tls/crypto.h"
#include "net/tls/openssl.h"

namespace drakkar::net {
namespace {

using openssl::CertificatePtr;
using openssl::KeyPtr;
using openssl::LastError;
using openssl::RequestPtr;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, openssl::Deleter<&GENERAL_NAMES_free>>;

Error Failure(std::string_view what) {
  return Internal(StrCat(what, ": ", LastError()));
}

Result<KeyPtr> NewKey() {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return Failure("generate key");
  return key;
}

Result<std::string> KeyPem(EVP_PKEY* key) {
  openssl::BioPtr bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return Failure("write key");
  }
  return openssl::BioText(bio.get());
}

Result<std::string> CertificatePem(X509* certificate) {
  openssl::BioPtr bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(bio.get(), certificate) != 1) return Failure("write certificate");
  return openssl::BioText(bio.get());
}

Result<void> AddName(X509_NAME* name, const char* field, std::string_view value) {
  if (X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(value.data()),
                                 static_cast<int>(value.size()), -1, 0) != 1) {
    return InvalidArgument(StrCat("subject ", field, " ", Quote(value), ": ", LastError()));
  }
  return Ok();
}

Result<void> FillName(X509_NAME* name, const CertificateSubject& subject) {
  for (const std::string& organization : subject.organizations) {
    RETURN_IF_ERROR(AddName(name, "O", organization));
  }
  if (!subject.common_name.empty()) RETURN_IF_ERROR(AddName(name, "CN", subject.common_name));
  return Ok();
}

// Built from values instead of configuration text, so that no name can inject a second one.
Result<NamesPtr> AlternativeNames(const CertificateSubject& subject) {
  NamesPtr names(GENERAL_NAMES_new());
  for (const std::string& dns : subject.dns_names) {
    for (char c : dns) {
      if (c <= 0x20 || c >= 0x7f)
        return InvalidArgument(StrCat("DNS name ", Quote(dns), " is not valid"));
    }
    ASN1_IA5STRING* text = ASN1_IA5STRING_new();
    ASN1_STRING_set(text, dns.data(), static_cast<int>(dns.size()));
    GENERAL_NAME* name = GENERAL_NAME_new();
    GENERAL_NAME_set0_value(name, GEN_DNS, text);
    sk_GENERAL_NAME_push(names.get(), name);
  }
  for (const std::string& ip : subject.ip_addresses) {
    ASN1_OCTET_STRING* address = a2i_IPADDRESS(ip.c_str());
    if (!address) {
      LastError();
      return InvalidArgument(StrCat("IP address ", Quote(ip), " is not valid"));
    }
    GENERAL_NAME* name = GENERAL_NAME_new();
    GENERAL_NAME_set0_value(name, GEN_IPADD, address);
    sk_GENERAL_NAME_push(names.get(), name);
  }
  return names;
}

void ReadAlternativeNames(const GENERAL_NAMES* names, CertificateSubject& subject) {
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    int type = 0;
    const auto* value = static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(name, &type));
    const unsigned char* data = ASN1_STRING_get0_data(value);
    const int length = ASN1_STRING_length(value);
    if (type == GEN_DNS) {
      subject.dns_names.emplace_back(reinterpret_cast<const char*>(data),
                                     static_cast<std::size_t>(length));
    } else if (type == GEN_IPADD && length == 4) {
      subject.ip_addresses.push_back(
          StrCat(int{data[0]}, ".", int{data[1]}, ".", int{data[2]}, ".", int{data[3]}));
    } else if (type == GEN_IPADD && length == 16) {
      static constexpr char kHex[] = "0123456789abcdef";
      std::string text;
      for (int at = 0; at < 16; at += 2) {
        if (at > 0) text += ':';
        const int group = data[at] * 256 + data[at + 1];
        bool started = false;
        for (int shift = 12; shift >= 0; shift -= 4) {
          const int digit = (group >> shift) & 15;
          if (digit != 0 || started || shift == 0) {
            text += kHex[digit];
            started = true;
          }
        }
      }
      subject.ip_addresses.push_back(std::move(text));
    }
  }
}

Result<void> AddExtension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
  if (!extension) return Failure("certificate extension");
  const int code = X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
  if (code != 1) return Failure("certificate extension");
  return Ok();
}

std::time_t Seconds(WallTime time) {
  return static_cast<std::time_t>(
      std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count());
}

Result<CertificatePtr> NewCertificate(EVP_PKEY* key, Validity validity) {
  if (validity.not_after <= validity.not_before) {
    return InvalidArgument("the certificate would expire before it becomes valid");
  }
  CertificatePtr certificate(X509_new());
  X509_set_version(certificate.get(), 2);
  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof(serial)) != 1) return Failure("serial number");
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7f) | 0x40);  // positive, full length
  BIGNUM* number = BN_bin2bn(serial, sizeof(serial), nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate.get()));
  BN_free(number);
  ASN1_TIME_set(X509_getm_notBefore(certificate.get()), Seconds(validity.not_before));
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()), Seconds(validity.not_after));
  if (X509_set_pubkey(certificate.get(), key) != 1) return Failure("public key");
  return certificate;
}

Result<std::string> SignLeaf(const CertificateAndKey& ca, EVP_PKEY* key,
                             const CertificateSubject& subject, CertificateUse use,
                             Validity validity) {
  ASSIGN_OR_RETURN(CertificatePtr issuer, openssl::ReadCertificate(ca.certificate_pem));
  ASSIGN_OR_RETURN(KeyPtr issuer_key, openssl::ReadPrivateKey(ca.key_pem));
  ASSIGN_OR_RETURN(CertificatePtr certificate, NewCertificate(key, validity));
  X509* leaf = certificate.get();
  RETURN_IF_ERROR(FillName(X509_get_subject_name(leaf), subject));
  X509_set_issuer_name(leaf, X509_get_subject_name(issuer.get()));
  RETURN_IF_ERROR(AddExtension(leaf, issuer.get(), NID_basic_constraints, "critical,CA:FALSE"));
  RETURN_IF_ERROR(AddExtension(leaf, issuer.get(), NID_key_usage, "critical,digitalSignature"));
  const char* uses = use == CertificateUse::kServer   ? "serverAuth"
                     : use == CertificateUse::kClient ? "clientAuth"
                                                      : "serverAuth,clientAuth";
  RETURN_IF_ERROR(AddExtension(leaf, issuer.get(), NID_ext_key_usage, uses));
  RETURN_IF_ERROR(AddExtension(leaf, issuer.get(), NID_authority_key_identifier, "keyid"));
  if (!subject.dns_names.empty() || !subject.ip_addresses.empty()) {
    ASSIGN_OR_RETURN(NamesPtr names, AlternativeNames(subject));
    if (X509_add1_ext_i2d(leaf, NID_subject_alt_name, names.get(), 0, 0) != 1) {
      return Failure("alternative names");
    }
  }
  if (X509_sign(leaf, issuer_key.get(), EVP_sha256()) == 0) return Failure("sign certificate");
  return CertificatePem(leaf);
}

CertificateSubject SubjectOf(const X509_NAME* name) {
  CertificateSubject subject;
  subject.common_name = openssl::NameEntry(name, NID_commonName);
  subject.organizations = openssl::NameEntries(name, NID_organizationName);
  return subject;
}

Result<RequestPtr> ReadRequest(std::string_view pem) {
  RequestPtr request(PEM_read_bio_X509_REQ(openssl::ReadBio(pem).get(), nullptr, nullptr, nullptr));
  if (!request) return InvalidArgument("no valid PEM certificate request: " + LastError());
  if (X509_REQ_verify(request.get(), X509_REQ_get0_pubkey(request.get())) != 1) {
    LastError();
    return InvalidArgument("the certificate request is not signed by its own key");
  }
  return request;
}

CertificateSubject SubjectOf(X509_REQ* request) {
  CertificateSubject subject = SubjectOf(X509_REQ_get_subject_name(request));
  STACK_OF(X509_EXTENSION)* extensions = X509_REQ_get_extensions(request);
  NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509V3_get_d2i(extensions, NID_subject_alt_name, nullptr, nullptr)));
  ReadAlternativeNames(names.get(), subject);
  sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
  return subject;
}

Result<WallTime> TimeOf(const ASN1_TIME* time) {
  ASN1_TIME* epoch = ASN1_TIME_set(nullptr, 0);
  int days = 0;
  int seconds = 0;
  const int code = ASN1_TIME_diff(&days, &seconds, epoch, time);
  ASN1_TIME_free(epoch);
  if (code != 1) return InvalidArgument("the certificate has an invalid validity period");
  return WallTime(std::chrono::seconds(std::int64_t{days} * 86400 + seconds));
}

}  // namespace

Result<std::string> GenerateKeyPem() {
  ASSIGN_OR_RETURN(KeyPtr key, NewKey());
  return KeyPem(key.get());
}

Result<std::string> PublicKeyPem(std::string_view private_key_pem) {
  ASSIGN_OR_RETURN(KeyPtr key, openssl::ReadPrivateKey(private_key_pem));
  openssl::BioPtr bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PUBKEY(bio.get(), key.get()) != 1) return Failure("write public key");
  return openssl::BioText(bio.get());
}

Result<CertificateAndKey> CreateCa(std::string_view common_name, Validity validity) {
  ASSIGN_OR_RETURN(KeyPtr key, NewKey());
  ASSIGN_OR_RETURN(CertificatePtr certificate, NewCertificate(key.get(), validity));
  X509* own = certificate.get();
  RETURN_IF_ERROR(AddName(X509_get_subject_name(own), "CN", common_name));
  X509_set_issuer_name(own, X509_get_subject_name(own));
  RETURN_IF_ERROR(AddExtension(own, own, NID_basic_constraints, "critical,CA:TRUE"));
  RETURN_IF_ERROR(AddExtension(own, own, NID_key_usage,
                               "critical,digitalSignature,keyEncipherment,keyCertSign"));
  RETURN_IF_ERROR(AddExtension(own, own, NID_subject_key_identifier, "hash"));
  if (X509_sign(own, key.get(), EVP_sha256()) == 0) return Failure("sign certificate");
  CertificateAndKey made;
  ASSIGN_OR_RETURN(made.certificate_pem, CertificatePem(own));
  ASSIGN_OR_RETURN(made.key_pem, KeyPem(key.get()));
  return made;
}

Result<CertificateAndKey> IssueCertificate(const CertificateAndKey& ca,
                                           const CertificateSubject& subject, CertificateUse use,
                                           Validity validity) {
  ASSIGN_OR_RETURN(KeyPtr key, NewKey());
  CertificateAndKey made;
  ASSIGN_OR_RETURN(made.certificate_pem, SignLeaf(ca, key.get(), subject, use, validity));
  ASSIGN_OR_RETURN(made.key_pem, KeyPem(key.get()));
  return made;
}

Result<std::string> CreateSigningRequest(std::string_view key_pem,
                                         const CertificateSubject& subject) {
  ASSIGN_OR_RETURN(KeyPtr key, openssl::ReadPrivateKey(key_pem));
  RequestPtr request(X509_REQ_new());
  X509_REQ_set_version(request.get(), 0);
  RETURN_IF_ERROR(FillName(X509_REQ_get_subject_name(request.get()), subject));
  if (!subject.dns_names.empty() || !subject.ip_addresses.empty()) {
    ASSIGN_OR_RETURN(NamesPtr names, AlternativeNames(subject));
    STACK_OF(X509_EXTENSION)* extensions = nullptr;
    X509V3_add1_i2d(&extensions, NID_subject_alt_name, names.get(), 0, 0);
    X509_REQ_add_extensions(request.get(), extensions);
    sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
  }
  if (X509_REQ_set_pubkey(request.get(), key.get()) != 1 ||
      X509_REQ_sign(request.get(), key.get(), EVP_sha256()) == 0) {
    return Failure("sign certificate request");
  }
  openssl::BioPtr bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509_REQ(bio.get(), request.get()) != 1) return Failure("write request");
  return openssl::BioText(bio.get());
}

Result<CertificateSubject> ParseSigningRequest(std::string_view request_pem) {
  ASSIGN_OR_RETURN(RequestPtr request, ReadRequest(request_pem));
  return SubjectOf(request.get());
}

Result<std::string> SignRequest(const CertificateAndKey& ca, std::string_view request_pem,
                                CertificateUse use, Validity validity) {
  ASSIGN_OR_RETURN(RequestPtr request, ReadRequest(request_pem));
  return SignLeaf(ca, X509_REQ_get0_pubkey(request.get()), SubjectOf(request.get()), use, validity);
}

bool BelongTogether(const CertificateAndKey& pair) {
  const Result<CertificatePtr> certificate = openssl::ReadCertificate(pair.certificate_pem);
  const Result<KeyPtr> key = openssl::ReadPrivateKey(pair.key_pem);
  if (!certificate.ok() || !key.ok()) return false;
  const bool match = X509_check_private_key(certificate->get(), key->get()) == 1;
  (void)LastError();
  return match;
}

Result<CertificateInfo> ParseCertificate(std::string_view pem) {
  ASSIGN_OR_RETURN(CertificatePtr certificate, openssl::ReadCertificate(pem));
  CertificateInfo info;
  info.subject = SubjectOf(X509_get_subject_name(certificate.get()));
  info.issuer_common_name =
      openssl::NameEntry(X509_get_issuer_name(certificate.get()), NID_commonName);
  NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  ReadAlternativeNames(names.get(), info.subject);
  BIGNUM* serial = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate.get()), nullptr);
  char* hex = BN_bn2hex(serial);
  info.serial_hex = hex;
  OPENSSL_free(hex);
  BN_free(serial);
  unsigned char* der = nullptr;
  const int length = i2d_X509(certificate.get(), &der);
  info.sha256_hex = Sha256Hex(std::string_view(reinterpret_cast<char*>(der),
                                               static_cast<std::size_t>(std::max(length, 0))));
  OPENSSL_free(der);
  ASSIGN_OR_RETURN(info.validity.not_before, TimeOf(X509_get0_notBefore(certificate.get())));
  ASSIGN_OR_RETURN(info.validity.not_after, TimeOf(X509_get0_notAfter(certificate.get())));
  info.is_ca = X509_check_ca(certificate.get()) == 1;
  return info;
}

}  // namespace drakkar::net
