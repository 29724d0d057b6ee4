#include "net/tls/certificates.h"

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
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
  const auto add_texts = [&](const std::vector<std::string>& texts, int type) {
    for (const std::string& each : texts) {
      ASN1_IA5STRING* text = ASN1_IA5STRING_new();
      ASN1_STRING_set(text, each.data(), static_cast<int>(each.size()));
      GENERAL_NAME* name = GENERAL_NAME_new();
      GENERAL_NAME_set0_value(name, type, text);
      sk_GENERAL_NAME_push(names.get(), name);
    }
  };
  add_texts(subject.email_addresses, GEN_EMAIL);
  add_texts(subject.uris, GEN_URI);
  return names;
}

bool HasAlternativeNames(const CertificateSubject& subject) {
  return !subject.dns_names.empty() || !subject.ip_addresses.empty() ||
         !subject.email_addresses.empty() || !subject.uris.empty();
}

void ReadAlternativeNames(const GENERAL_NAMES* names, CertificateSubject& subject) {
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    int type = 0;
    const void* content = GENERAL_NAME_get0_value(name, &type);
    // Other types have no text.
    if (type != GEN_DNS && type != GEN_EMAIL && type != GEN_URI && type != GEN_IPADD) continue;
    const auto* value = static_cast<const ASN1_STRING*>(content);
    const unsigned char* data = ASN1_STRING_get0_data(value);
    const int length = ASN1_STRING_length(value);
    if (type != GEN_IPADD) {
      auto& texts = type == GEN_DNS     ? subject.dns_names
                    : type == GEN_EMAIL ? subject.email_addresses
                                        : subject.uris;
      texts.emplace_back(reinterpret_cast<const char*>(data), static_cast<std::size_t>(length));
    } else if (type == GEN_IPADD && length == 4) {
      subject.ip_addresses.push_back(
          StrCat(int{data[0]}, ".", int{data[1]}, ".", int{data[2]}, ".", int{data[3]}));
    } else if (type == GEN_IPADD && length == 16) {
      char text[INET6_ADDRSTRLEN] = {};
      subject.ip_addresses.emplace_back(::inet_ntop(AF_INET6, data, text, sizeof(text)));
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

CertificateUsages UsagesOf(CertificateUse use) {
  CertificateUsages usages{.key = {"digitalSignature"}, .extended = {}};
  if (use != CertificateUse::kClient) usages.extended.emplace_back("serverAuth");
  if (use != CertificateUse::kServer) usages.extended.emplace_back("clientAuth");
  return usages;
}

Result<std::string> SignLeaf(const CertificateAndKey& ca, EVP_PKEY* key,
                             const CertificateSubject& subject, const CertificateUsages& usages,
                             Validity validity) {
  ASSIGN_OR_RETURN(CertificatePtr issuer, openssl::ReadCertificate(ca.certificate_pem));
  ASSIGN_OR_RETURN(KeyPtr issuer_key, openssl::ReadPrivateKey(ca.key_pem));
  ASSIGN_OR_RETURN(CertificatePtr certificate, NewCertificate(key, validity));
  X509* leaf = certificate.get();
  RETURN_IF_ERROR(FillName(X509_get_subject_name(leaf), subject));
  X509_set_issuer_name(leaf, X509_get_subject_name(issuer.get()));
  RETURN_IF_ERROR(AddExtension(leaf, issuer.get(), NID_basic_constraints, "critical,CA:FALSE"));
  if (!usages.key.empty()) {
    RETURN_IF_ERROR(AddExtension(leaf, issuer.get(), NID_key_usage,
                                 StrCat("critical,", Join(usages.key, ",")).c_str()));
  }
  if (!usages.extended.empty()) {
    RETURN_IF_ERROR(
        AddExtension(leaf, issuer.get(), NID_ext_key_usage, Join(usages.extended, ",").c_str()));
  }
  RETURN_IF_ERROR(AddExtension(leaf, issuer.get(), NID_authority_key_identifier, "keyid"));
  if (HasAlternativeNames(subject)) {
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

// Whether a signature of this key can be checked in a bounded time.
bool IsAcceptableKey(EVP_PKEY* key) {
  switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
      return EVP_PKEY_get_bits(key) >= 1024 && EVP_PKEY_get_bits(key) <= 8192;
    case EVP_PKEY_EC: {
      char curve[32] = {};
      std::size_t length = 0;
      if (EVP_PKEY_get_group_name(key, curve, sizeof(curve), &length) != 1) return false;
      const std::string_view name(curve);
      return name == "prime256v1" || name == "secp224r1" || name == "secp384r1" ||
             name == "secp521r1";
    }
    case EVP_PKEY_ED25519:
      return true;
    default:
      return false;
  }
}

Result<RequestPtr> ReadRequest(std::string_view pem) {
  if (pem.size() > kMaxRequestBytes) {
    return InvalidArgument(
        StrCat("the certificate request is longer than ", kMaxRequestBytes, " bytes"));
  }
  // As in Kubernetes, only this name of the block and not the older "NEW CERTIFICATE REQUEST".
  const std::size_t begin = pem.find("-----BEGIN ");
  if (begin == std::string_view::npos ||
      !pem.substr(begin).starts_with("-----BEGIN CERTIFICATE REQUEST-----")) {
    return InvalidArgument("PEM block type must be CERTIFICATE REQUEST");
  }
  RequestPtr request(PEM_read_bio_X509_REQ(openssl::ReadBio(pem.substr(begin)).get(), nullptr,
                                           &openssl::NoPassword, nullptr));
  if (!request) return InvalidArgument("no valid PEM certificate request: " + LastError());
  EVP_PKEY* key = X509_REQ_get0_pubkey(request.get());
  if (key == nullptr || !IsAcceptableKey(key)) {
    (void)LastError();
    return InvalidArgument(
        "the key of the certificate request must be RSA with 1024 to 8192 bits, ECDSA on a NIST "
        "curve or Ed25519");
  }
  if (X509_REQ_verify(request.get(), key) != 1) {
    (void)LastError();
    return InvalidArgument("the certificate request is not signed by its own key");
  }
  return request;
}

Result<CertificateSubject> SubjectOf(X509_REQ* request) {
  CertificateSubject subject = SubjectOf(X509_REQ_get_subject_name(request));
  STACK_OF(X509_EXTENSION)* extensions = X509_REQ_get_extensions(request);
  int critical = 0;
  NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509V3_get_d2i(extensions, NID_subject_alt_name, &critical, nullptr)));
  sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
  constexpr int kNotPresent = -1;
  if (!names && critical != kNotPresent) {
    (void)LastError();
    return InvalidArgument("the certificate request has invalid alternative names");
  }
  ReadAlternativeNames(names.get(), subject);
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

Result<std::string> GenerateRsaKeyPem(unsigned bits) {
  KeyPtr key(EVP_RSA_gen(bits));
  if (!key) return Failure("generate key");
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
  ASSIGN_OR_RETURN(made.certificate_pem, SignLeaf(ca, key.get(), subject, UsagesOf(use), validity));
  ASSIGN_OR_RETURN(made.key_pem, KeyPem(key.get()));
  return made;
}

Result<std::string> CreateSigningRequest(std::string_view key_pem,
                                         const CertificateSubject& subject) {
  ASSIGN_OR_RETURN(KeyPtr key, openssl::ReadPrivateKey(key_pem));
  RequestPtr request(X509_REQ_new());
  X509_REQ_set_version(request.get(), 0);
  RETURN_IF_ERROR(FillName(X509_REQ_get_subject_name(request.get()), subject));
  if (HasAlternativeNames(subject)) {
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
                                const CertificateUsages& usages, Validity validity) {
  ASSIGN_OR_RETURN(RequestPtr request, ReadRequest(request_pem));
  ASSIGN_OR_RETURN(const CertificateSubject subject, SubjectOf(request.get()));
  return SignLeaf(ca, X509_REQ_get0_pubkey(request.get()), subject, usages, validity);
}

Result<std::string> SignRequest(const CertificateAndKey& ca, std::string_view request_pem,
                                CertificateUse use, Validity validity) {
  return SignRequest(ca, request_pem, UsagesOf(use), validity);
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

Result<void> CheckCertificates(std::string_view pem) {
  openssl::BioPtr bio = openssl::ReadBio(pem);
  std::size_t count = 0;
  for (;;) {
    char* name = nullptr;
    char* header = nullptr;
    unsigned char* data = nullptr;
    long length = 0;
    if (PEM_read_bio(bio.get(), &name, &header, &data, &length) != 1) break;
    const std::string type(name);
    const bool has_headers = header != nullptr && *header != '\0';
    const unsigned char* at = data;
    const CertificatePtr certificate(d2i_X509(nullptr, &at, length));
    const bool is_complete = at == data + length;
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_free(data);
    if (type != "CERTIFICATE") {
      return InvalidArgument(
          StrCat("only CERTIFICATE PEM blocks are allowed, found ", Quote(type)));
    }
    if (has_headers) return InvalidArgument("no PEM block headers are permitted");
    if (!certificate || !is_complete) {
      return InvalidArgument("no valid PEM certificate: " + LastError());
    }
    ++count;
  }
  (void)LastError();
  if (count == 0) return InvalidArgument("must contain at least one CERTIFICATE PEM block");
  return Ok();
}

Result<std::vector<PinnedCertificate>> PinCertificates(std::string_view bundle_pem) {
  ASSIGN_OR_RETURN(const std::vector<CertificatePtr> certificates,
                   openssl::ReadCertificates(bundle_pem));
  if (certificates.size() > kMaxBundleCertificates) {
    return InvalidArgument(StrCat("more than ", kMaxBundleCertificates, " certificates"));
  }
  std::vector<PinnedCertificate> pinned;
  for (const CertificatePtr& certificate : certificates) {
    unsigned char* der = nullptr;
    const int length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate.get()), &der);
    if (length <= 0) return Failure("public key");
    PinnedCertificate& next = pinned.emplace_back();
    next.public_key_sha256_hex =
        Sha256Hex(std::string_view(reinterpret_cast<char*>(der), static_cast<std::size_t>(length)));
    OPENSSL_free(der);
    ASSIGN_OR_RETURN(next.pem, CertificatePem(certificate.get()));
  }
  return pinned;
}

}  // namespace drakkar::net
