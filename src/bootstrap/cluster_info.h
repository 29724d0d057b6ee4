#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

// The ConfigMap kube-public/cluster-info, which anybody may read: where the API server is and which
// CA it has. Whoever joins knows a hash of the CA and believes nothing else in it.
namespace drakkar::bootstrap {

inline constexpr std::string_view kInfoNamespace = "kube-public";
inline constexpr std::string_view kInfoName = "cluster-info";
// Keys of its data.
inline constexpr std::string_view kInfoKubeconfig = "kubeconfig";
// Ours: the names and addresses in the API servers' certificates, separated by commas. No node gets
// a certificate for them.
inline constexpr std::string_view kInfoServerNames = "drakkar-server-names";
inline constexpr std::string_view kInfoSignaturePrefix = "jws-kubeconfig-";  // then the token's ID

struct ClusterInfo {
  std::string server;  // "https://10.0.0.1:6443"
  std::string ca_pem;
};

// The kubeconfig in the ConfigMap: a cluster without users.
std::string WriteClusterInfo(const ClusterInfo& info);
Result<ClusterInfo> ReadClusterInfo(std::string_view kubeconfig);

// "sha256:..." of the public key of each CA certificate, as in kubeadm's
// --discovery-token-ca-cert-hash.
Result<std::vector<std::string>> CaHashes(std::string_view ca_pem);
// The certificates of the bundle with that hash and no others: an attacker may have added one.
// Fails in one sentence if there is none.
Result<std::string> SelectCa(std::string_view ca_pem, std::string_view hash);

}  // namespace drakkar::bootstrap
