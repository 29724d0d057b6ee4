#include "bootstrap/cluster_info.h"

#include <algorithm>

#include "api/codec/yaml_reader.h"
#include "base/hash/base64.h"
#include "base/text/text.h"
#include "net/tls/certificates.h"

namespace drakkar::bootstrap {
namespace {

constexpr std::string_view kHashPrefix = "sha256:";
constexpr std::size_t kHashDigits = 64;
constexpr std::string_view kCaData = "certificate-authority-data";
// Larger than any bundle. The document comes from a server that nobody has verified yet.
constexpr std::size_t kMaxInfoBytes = 256 * 1024;

}  // namespace

std::string WriteClusterInfo(const ClusterInfo& info) {
  return StrCat("apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: ",
                Base64Encode(info.ca_pem), "\n    server: ", info.server,
                "\n  name: \"\"\ncontexts: null\ncurrent-context: \"\"\nkind: Config\n"
                "preferences: {}\nusers: null\n");
}

Result<ClusterInfo> ReadClusterInfo(std::string_view kubeconfig) {
  Result<std::vector<api::TreePtr>> documents =
      api::ParseYaml(kubeconfig, {.max_depth = 20,
                                  .max_size_bytes = kMaxInfoBytes,
                                  .max_expanded_bytes = 4 * kMaxInfoBytes,
                                  .max_documents = 1});
  if (!documents.ok()) return documents.error().Prefixed("cluster-info");
  if (documents->empty()) return InvalidArgument("cluster-info has no kubeconfig");
  const api::Value clusters = documents->front()->root()["clusters"];
  if (clusters.size() != 1) return InvalidArgument("cluster-info must have exactly one cluster");
  const api::Value cluster = clusters.at(0)["cluster"];
  ClusterInfo info;
  info.server = cluster["server"].str();
  ASSIGN_OR_RETURN(info.ca_pem, Base64Decode(cluster.Entry(kCaData).str()));
  if (info.ca_pem.empty()) return InvalidArgument("cluster-info has no CA");
  return info;
}

Result<std::vector<std::string>> CaHashes(std::string_view ca_pem) {
  ASSIGN_OR_RETURN(const std::vector<net::PinnedCertificate> pinned, net::PinCertificates(ca_pem));
  std::vector<std::string> hashes;
  for (const net::PinnedCertificate& each : pinned) {
    hashes.push_back(StrCat(kHashPrefix, each.public_key_sha256_hex));
  }
  return hashes;
}

Result<std::string> SelectCa(std::string_view ca_pem, std::string_view hash) {
  const std::string wanted = ToLower(hash);
  if (!wanted.starts_with(kHashPrefix) || wanted.size() != kHashPrefix.size() + kHashDigits) {
    return InvalidArgument(
        StrCat("a CA hash is sha256: and 64 hexadecimal digits, not ", Quote(hash)));
  }
  ASSIGN_OR_RETURN(const std::vector<net::PinnedCertificate> pinned, net::PinCertificates(ca_pem));
  std::string selected;
  for (const net::PinnedCertificate& each : pinned) {
    if (StrCat(kHashPrefix, each.public_key_sha256_hex) == wanted) selected += each.pem;
  }
  if (selected.empty()) {
    return FailedPrecondition(StrCat("the server's CA has the hash ", kHashPrefix,
                                     pinned.front().public_key_sha256_hex, " and not ", wanted,
                                     ", so it is not the cluster that the hash was printed by"));
  }
  return selected;
}

}  // namespace drakkar::bootstrap
