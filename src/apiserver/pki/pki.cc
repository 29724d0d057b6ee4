#include "apiserver/pki/pki.h"

#include <algorithm>

#include "base/hash/base64.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using std::chrono::hours;

constexpr Duration kCaLifetime = hours(24 * 3650);
constexpr Duration kLeafLifetime = hours(24 * 365);
constexpr Duration kRenewBefore = hours(24 * 30);
// Allows for small clock differences between the machines of a cluster.
constexpr Duration kBackdate = std::chrono::minutes(5);

net::Validity ValidFor(const Clock& clock, Duration lifetime) {
  return {clock.Now() - kBackdate, clock.Now() + lifetime};
}

Result<void> WritePair(FileSystem& files, const std::string& stem,
                       const net::CertificateAndKey& pair) {
  // The key first: a certificate without its key would look complete after a crash.
  RETURN_IF_ERROR(files.WriteFileAtomically(stem + ".key", pair.key_pem, 0600));
  return files.WriteFileAtomically(stem + ".crt", pair.certificate_pem, 0644);
}

Result<net::CertificateAndKey> ReadPair(FileSystem& files, const std::string& stem) {
  ASSIGN_OR_RETURN(std::string certificate, files.ReadFile(stem + ".crt"));
  ASSIGN_OR_RETURN(std::string key, files.ReadFile(stem + ".key"));
  return net::CertificateAndKey{std::move(certificate), std::move(key)};
}

// Whether the certificate was issued by `ca`, is valid long enough and covers all wanted names.
bool StillGood(const net::CertificateAndKey& pair, const net::CertificateAndKey& ca,
               const net::CertificateSubject& wanted, WallTime now) {
  Result<net::CertificateInfo> info = net::ParseCertificate(pair.certificate_pem);
  Result<net::CertificateInfo> issuer = net::ParseCertificate(ca.certificate_pem);
  if (!info.ok() || !issuer.ok()) return false;
  if (info->issuer_common_name != issuer->subject.common_name) return false;
  if (info->validity.not_after < now + kRenewBefore) return false;
  auto covers = [](const std::vector<std::string>& have, const std::vector<std::string>& want) {
    return std::all_of(want.begin(), want.end(), [&](const std::string& each) {
      return std::find(have.begin(), have.end(), each) != have.end();
    });
  };
  return covers(info->subject.dns_names, wanted.dns_names) &&
         covers(info->subject.ip_addresses, wanted.ip_addresses);
}

void AddUnique(std::vector<std::string>& list, std::string value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(std::move(value));
}

Result<net::CertificateAndKey> ReadOrMakeCa(FileSystem& files, const Clock& clock,
                                            const std::string& stem, std::string_view name) {
  if (files.Exists(stem + ".crt")) return ReadPair(files, stem);
  // The CAs of two clusters have the same name and differ in their random serial numbers.
  ASSIGN_OR_RETURN(net::CertificateAndKey made,
                   net::CreateCa(std::string(name), ValidFor(clock, kCaLifetime)));
  RETURN_IF_ERROR(WritePair(files, stem, made));
  return made;
}

}  // namespace

Result<Pki> Pki::Open(FileSystem& files, const Clock& clock, const Options& options) {
  Pki pki(clock);
  RETURN_IF_ERROR(files.MakeDirectories(options.directory, 0700));
  ASSIGN_OR_RETURN(pki.ca_,
                   ReadOrMakeCa(files, clock, JoinPath(options.directory, "ca"), "drakkar-ca"));
  ASSIGN_OR_RETURN(pki.front_proxy_ca_,
                   ReadOrMakeCa(files, clock, JoinPath(options.directory, "front-proxy-ca"),
                                "drakkar-front-proxy-ca"));

  net::CertificateSubject subject;
  subject.common_name = "drakkar-apiserver";
  subject.dns_names = options.server_names;
  for (std::string_view name : {"localhost", "kubernetes", "kubernetes.default",
                                "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}) {
    AddUnique(subject.dns_names, std::string(name));
  }
  subject.ip_addresses = options.server_addresses;
  AddUnique(subject.ip_addresses, "127.0.0.1");
  AddUnique(subject.ip_addresses, "::1");
  const std::string server_stem = JoinPath(options.directory, "apiserver");
  Result<net::CertificateAndKey> existing = ReadPair(files, server_stem);
  if (existing.ok() && StillGood(*existing, pki.ca_, subject, clock.Now())) {
    pki.server_ = std::move(*existing);
  } else {
    ASSIGN_OR_RETURN(pki.server_,
                     net::IssueCertificate(pki.ca_, subject, net::CertificateUse::kServer,
                                           ValidFor(clock, kLeafLifetime)));
    RETURN_IF_ERROR(WritePair(files, server_stem, pki.server_));
  }

  const std::string token_path = JoinPath(options.directory, "service-accounts.key");
  if (files.Exists(token_path)) {
    ASSIGN_OR_RETURN(pki.token_key_, files.ReadFile(token_path));
  } else {
    ASSIGN_OR_RETURN(pki.token_key_, net::GenerateKeyPem());
    RETURN_IF_ERROR(files.WriteFileAtomically(token_path, pki.token_key_, 0600));
  }
  return pki;
}

Result<net::CertificateAndKey> Pki::IssueClient(std::string_view user,
                                                std::vector<std::string> groups) const {
  net::CertificateSubject subject;
  subject.common_name = user;
  subject.organizations = std::move(groups);
  return net::IssueCertificate(ca_, subject, net::CertificateUse::kClient,
                               ValidFor(*clock_, kLeafLifetime));
}

Result<net::CertificateAndKey> Pki::IssueServer(std::string_view common_name,
                                                std::vector<std::string> names,
                                                std::vector<std::string> addresses) const {
  net::CertificateSubject subject;
  subject.common_name = common_name;
  subject.dns_names = std::move(names);
  subject.ip_addresses = std::move(addresses);
  return net::IssueCertificate(ca_, subject, net::CertificateUse::kServer,
                               ValidFor(*clock_, kLeafLifetime));
}

std::string MakeKubeconfig(std::string_view server_url, std::string_view ca_pem,
                           const net::CertificateAndKey& client, std::string_view user) {
  return StrCat(
      "apiVersion: v1\nkind: Config\nclusters:\n- name: drakkar\n  cluster:\n    server: ",
      server_url, "\n    certificate-authority-data: ", Base64Encode(ca_pem),
      "\nusers:\n- name: ", user,
      "\n  user:\n    client-certificate-data: ", Base64Encode(client.certificate_pem),
      "\n    client-key-data: ", Base64Encode(client.key_pem),
      "\ncontexts:\n- name: drakkar\n  context:\n    cluster: drakkar\n    user: ", user,
      "\ncurrent-context: drakkar\n");
}

}  // namespace drakkar::apiserver
