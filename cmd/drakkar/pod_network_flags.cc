#include "cmd/drakkar/pod_network_flags.h"

#include <unistd.h>

#include "base/env/absolute_path.h"
#include "base/text/text.h"
#include "node/runtime/network/cni_result.h"

namespace drakkar::cmd {
namespace {

constexpr char kConfigDirectory[] = "/etc/cni/net.d";
// Where the plugins' own releases and Debian's package put them.
constexpr char kPluginDirectories[] = "/opt/cni/bin,/usr/lib/cni";
constexpr std::uint32_t kAnyExecuteBit = 0111;

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  for (std::string_view word : Split(text, ',')) {
    if (!Trim(word).empty()) words.emplace_back(Trim(word));
  }
  return words;
}

bool HasPlugin(FileSystem& files, const std::vector<std::string>& directories,
               const std::string& name) {
  for (const std::string& directory : directories) {
    const auto info = files.Stat(JoinPath(directory, name));
    if (info.ok() && (info->mode & kAnyExecuteBit) != 0) return true;
  }
  return false;
}

}  // namespace

std::vector<cli::Flag> PodNetworkFlags() {
  return {
      {.name = "pod-network",
       .help = "Network of pods that do not request the host's. cni: the configuration in "
               "--cni-conf-dir; pods wait until there is one. auto: the same, but without a "
               "configuration pods join a bridge network of this node, or share the host's "
               "network if the plugins for the bridge are not installed. host: pods share the "
               "host's network.",
       .default_value = "auto",
       .placeholder = "auto|cni|host"},
      {.name = "cni-conf-dir",
       .help = "Directory of CNI network configurations; the first file by name is used.",
       .default_value = kConfigDirectory,
       .placeholder = "DIR"},
      {.name = "cni-bin-dir",
       .help = "Directories of CNI plugins, separated by commas.",
       .default_value = kPluginDirectories,
       .placeholder = "DIRS"},
      {.name = "cluster-dns",
       .help = "Addresses of the cluster's DNS servers, separated by commas, for pods with "
               "dnsPolicy ClusterFirst. Without them these pods use the host's.",
       .placeholder = "IPS"},
      {.name = "cluster-domain",
       .help = "Domain of the cluster, for the host names and DNS search lists of pods.",
       .default_value = "cluster.local",
       .placeholder = "DOMAIN"},
      {.name = "resolv-conf",
       .help = "Resolver configuration of pods with dnsPolicy Default. Defaults to the host's.",
       .placeholder = "FILE"},
  };
}

Result<PodNetworkOptions> ReadPodNetwork(const cli::Arguments& arguments, FileSystem& files,
                                         const std::string& data_dir) {
  PodNetworkOptions options;
  options.config_directory = AbsolutePath(arguments.Text("cni-conf-dir"));
  for (const std::string& word : Words(arguments.Text("cni-bin-dir"))) {
    options.plugin_directories.push_back(AbsolutePath(word));
  }
  options.dns.cluster_dns = Words(arguments.Text("cluster-dns"));
  for (const std::string& address : options.dns.cluster_dns) {
    if (node::IsIpAddress(address)) continue;
    return InvalidArgument(
        StrCat("--cluster-dns must be a list of IP addresses, not ", Quote(address)));
  }
  options.dns.cluster_domain = arguments.Text("cluster-domain");
  if (const std::string& path = arguments.Text("resolv-conf"); !path.empty()) {
    options.dns.resolv_conf = AbsolutePath(path);
  }
  const std::string& mode = arguments.Text("pod-network");
  if (mode == "cni") return options;
  if (mode == "host") {
    options.shares_host = true;
    return options;
  }
  if (mode != "auto") {
    return InvalidArgument(StrCat("--pod-network must be auto, cni or host, not ", Quote(mode)));
  }
  std::vector<std::string> missing;
  for (const std::string& plugin : node::kBuiltInPlugins) {
    if (!HasPlugin(files, options.plugin_directories, plugin)) missing.push_back(plugin);
  }
  if (!missing.empty()) {
    options.shared_because =
        StrCat("network plugins are not installed in ", Join(options.plugin_directories, " or "),
               " (", Join(missing, ", "),
               "); install them, for example with the package "
               "containernetworking-plugins, and restart the node");
    return options;
  }
  auto plan = node::PlanBuiltInNetwork(files, PodNetworkDirectory(data_dir));
  if (plan.ok()) {
    options.built_in = *std::move(plan);
  } else {
    options.shared_because = plan.error().message;
  }
  return options;
}

std::string PodNetworkDirectory(const std::string& data_dir) {
  return JoinPath(data_dir, "network");
}

}  // namespace drakkar::cmd
