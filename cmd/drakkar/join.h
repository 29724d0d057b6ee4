#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "client/kubeconfig.h"
#include "cmd/drakkar/daemon.h"
#include "net/tls/certificate_source.h"

namespace drakkar::cmd {

// --join, --token and --ca-hash.
std::vector<cli::Flag> JoinFlags();

// What a node that has joined keeps in its data directory.
std::string JoinedKubeconfigPath(const std::string& data_dir);

struct JoinOptions {
  std::vector<std::string> servers;  // "https://10.0.0.1:6443"; empty: do not join
  std::string token;                 // needed until the node has joined
  std::string ca_hash;               // the same
  std::string node_name;
  std::string data_dir;
};
// Reads the flags. Without --join there are no servers; a token without it is an error.
Result<JoinOptions> ReadJoinFlags(const cli::Arguments& arguments, const std::string& data_dir);

// Gets this machine a client certificate as a node, and writes the kubeconfig for it. The token is
// sent only to a server whose CA has the hash. Returns at once if the node has joined one of these
// servers before and its certificate is valid. Blocks; runs a loop of its own.
Result<void> JoinCluster(const JoinOptions& options);

// Keeps the certificates of a node that has joined: renews that of its kubeconfig, and gets and
// renews that of its port.
class CertificatesPart : public Part {
 public:
  // What the node's port serves with; until the cluster has issued one, a certificate that nobody
  // trusts.
  virtual std::shared_ptr<net::CertificateSource> serving() const = 0;
};
struct CertificatesOptions {
  UvLoop& main_loop;
  client::ClusterAccess access;
  std::string node_name;
  std::string address;
  std::string data_dir;
};
Result<std::unique_ptr<CertificatesPart>> MakeCertificatesPart(CertificatesOptions options);

}  // namespace drakkar::cmd
