#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "node/pods/pod_dns.h"
#include "node/runtime/network/built_in_network.h"

namespace drakkar::cmd {

// Where the pods of a node get their network from.
struct PodNetworkOptions {
  std::string config_directory;
  std::vector<std::string> plugin_directories;
  bool shares_host = false;  // --pod-network=host
  std::optional<node::BuiltInPlan> built_in;
  std::string shared_because;  // see CniNetwork::Options
  node::DnsSettings dns;
};

// --pod-network, --cni-conf-dir, --cni-bin-dir, --cluster-dns, --cluster-domain, --resolv-conf.
std::vector<cli::Flag> PodNetworkFlags();
// `data_dir` is absolute. Plans the built-in network unless the flags rule it out.
Result<PodNetworkOptions> ReadPodNetwork(const cli::Arguments& arguments, FileSystem& files,
                                         const std::string& data_dir);

std::string PodNetworkDirectory(const std::string& data_dir);

}  // namespace drakkar::cmd
