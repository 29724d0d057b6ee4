#include "apiserver/pki/pki.h"

#include <algorithm>

#include "apiserver/pki/cluster_keys.h"
#include "base/hash/base64.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::apiserver {
namespace {

using std::chrono::hours;

constexpr Duration kLeafLifetime = hours(24 * 365);
using net::kRenewBefore;
constexpr Logger kLog("pki");
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

// Logs a renewal, or that it failed.
std::function<void(const Result<void>&)> NoteRenewal(std::string of) {
  return [of = std::move(of)](const Result<void>& renewed) {
    if (renewed.ok()) {
      kLog.Info("renewed a certificate before it expires", {{"certificate", of}});
    } else {
      kLog.Error("could not renew a certificate; it stays in use until it expires",
                 {{"certificate", of}, {"error", renewed.error().message}});
    }
  };
}

// An expired CA makes every certificate worthless, and nothing here can replace it.
Result<void> CheckCa(const net::CertificateAndKey& ca, const Clock& clock,
                     const std::string& stem) {
  if (const auto why = net::WhyNotValid(ca.certificate_pem, clock.Now(),
                                        StrCat("the cluster's CA ", stem, ".crt"))) {
    return FailedPrecondition(StrCat(why->message,
                                     "; move the ca and apiserver files beside it away to create "
                                     "new ones at the next start, and give nodes and users new "
                                     "kubeconfigs"));
  }
  const Result<net::CertificateInfo> info = net::ParseCertificate(ca.certificate_pem);
  if (info.ok() && info->validity.not_after < clock.Now() + kRenewBefore) {
    kLog.Warning("the cluster's CA expires soon; plan for another one, which nodes and users need",
                 {{"file", StrCat(stem, ".crt")}});
  }
  return Ok();
}

void AddUnique(std::vector<std::string>& list, std::string value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(std::move(value));
}

}  // namespace

Result<Pki> Pki::Open(FileSystem& files, const Clock& clock, const Options& options) {
  Pki pki(clock);
  RETURN_IF_ERROR(files.MakeDirectories(options.directory, 0700));
  ASSIGN_OR_RETURN(const ClusterKeys keys, OpenClusterKeys(files, clock, options.directory));
  pki.ca_ = {keys.at(kCaFile), keys.at(kCaKeyFile)};
  pki.front_proxy_ca_ = {keys.at(kFrontProxyCaFile), keys.at(kFrontProxyCaKeyFile)};
  pki.token_key_ = keys.at(kTokenKeyFile);
  RETURN_IF_ERROR(CheckCa(pki.ca_, clock, JoinPath(options.directory, "ca")));

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

  ASSIGN_OR_RETURN(
      pki.server_source_,
      net::RenewedCertificate::Make(
          clock,
          [&files, &clock, ca = pki.ca_, subject, server_stem]() -> Result<net::CertificateAndKey> {
            ASSIGN_OR_RETURN(net::CertificateAndKey issued,
                             net::IssueCertificate(ca, subject, net::CertificateUse::kServer,
                                                   ValidFor(clock, kLeafLifetime)));
            RETURN_IF_ERROR(WritePair(files, server_stem, issued));
            return issued;
          },
          pki.server_, NoteRenewal("apiserver")));
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

Result<Pki::Source> Pki::ClientSource(std::string user, std::vector<std::string> groups) const {
  // The source must not depend on this object, which can be moved.
  const auto issue = [clock = clock_, ca = ca_, user, groups = std::move(groups)] {
    net::CertificateSubject subject;
    subject.common_name = user;
    subject.organizations = groups;
    return net::IssueCertificate(ca, subject, net::CertificateUse::kClient,
                                 ValidFor(*clock, kLeafLifetime));
  };
  ASSIGN_OR_RETURN(Source source,
                   net::RenewedCertificate::Make(*clock_, issue, {}, NoteRenewal(user)));
  return source;
}

Result<Pki::Source> Pki::FrontProxySource() const {
  const auto issue = [clock = clock_, ca = front_proxy_ca_] {
    net::CertificateSubject subject;
    subject.common_name = kFrontProxyName;
    return net::IssueCertificate(ca, subject, net::CertificateUse::kClient,
                                 ValidFor(*clock, kLeafLifetime));
  };
  ASSIGN_OR_RETURN(
      Source source,
      net::RenewedCertificate::Make(*clock_, issue, {}, NoteRenewal(std::string(kFrontProxyName))));
  return source;
}

Result<Pki::Source> Pki::ServerSource(std::string common_name, std::vector<std::string> names,
                                      std::vector<std::string> addresses) const {
  const auto issue = [clock = clock_, ca = ca_, common_name, names = std::move(names),
                      addresses = std::move(addresses)] {
    net::CertificateSubject subject;
    subject.common_name = common_name;
    subject.dns_names = names;
    subject.ip_addresses = addresses;
    return net::IssueCertificate(ca, subject, net::CertificateUse::kServer,
                                 ValidFor(*clock, kLeafLifetime));
  };
  ASSIGN_OR_RETURN(Source source,
                   net::RenewedCertificate::Make(*clock_, issue, {}, NoteRenewal(common_name)));
  return source;
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
