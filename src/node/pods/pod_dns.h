#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/env/file_system.h"
#include "node/runtime/runtime_config.h"

namespace drakkar::node {

// A node's settings for name resolution, named as a kubelet's.
struct DnsSettings {
  std::vector<std::string> cluster_dns;  // addresses; empty: ClusterFirst behaves like Default
  std::string cluster_domain = "cluster.local";
  std::string resolv_conf;  // of policy Default; empty: the host's, see HostResolvConf
};

// More than a resolver reads is cut off, as a kubelet does.
constexpr std::size_t kMaxDnsServers = 3;
constexpr std::size_t kMaxDnsSearches = 32;
constexpr std::size_t kMaxDnsSearchBytes = 2048;

struct PodDns {
  DnsConfig config;
  std::vector<std::string> remarks;  // what was cut off, for an event each
};

DnsConfig ParseResolvConf(std::string_view text);

// Name resolution of a pod according to dnsPolicy and dnsConfig. `host` is the host's.
PodDns MakePodDns(api::Value pod, const DnsSettings& settings, const DnsConfig& host);

// Reads the host's resolv.conf. Where it only names a resolver on the host's loopback interface,
// which pods cannot reach, systemd-resolved's list of the real ones is used instead, if there is
// one.
Result<DnsConfig> HostResolvConf(FileSystem& files, const DnsSettings& settings);

}  // namespace drakkar::node
