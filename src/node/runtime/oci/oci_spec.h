#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"
#include "node/runtime/runtime_config.h"

namespace drakkar::node {

// What this process can grant. A container that asks for more gets what is available, with a
// warning, and still starts.
struct HostLimits {
  std::uint64_t capabilities = ~std::uint64_t{0};  // the bounding set, a bit per capability
  int lowest_oom_score = -1000;
  bool may_raise_rlimits = true;
  std::vector<Rlimit> rlimits;  // our own, for limits that cannot be raised
};

struct NamespacePath {
  std::string type;  // "ipc", "uts", "network", "pid", "mount", "cgroup"
  std::string path;  // empty: a new one
};

// Everything in the bundle that is not in the ContainerConfig. It is resolved in advance, so that
// writing needs no I/O.
struct OciSpecInput {
  std::string rootfs;
  std::string hostname;
  std::vector<std::string> arguments;    // the command line; never empty
  std::vector<std::string> environment;  // "K=V"
  std::string working_directory;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> additional_gids;
  std::vector<NamespacePath> namespaces;
  std::string cgroups_path;
  bool cgroup_namespace_mount = false;  // cgroup v2: show the container its own subtree
  std::vector<Mount>
      sandbox_mounts;  // resolv.conf and the like; a config mount of the same path wins
  std::vector<DeviceNode> devices;  // with type, major and minor filled in
  std::vector<std::pair<std::string, std::string>> sysctls;
  std::string seccomp_profile;  // the content of SecurityContext::seccomp_path
};

struct OciSpec {
  std::string json;
  std::vector<std::string> warnings;  // requests that could not be granted
};

// The config.json of an OCI bundle (runtime specification 1.0.2). Refuses what it cannot express:
// an unknown capability or hook name, a mount without a path.
Result<OciSpec> WriteOciSpec(const ContainerConfig& config, const OciSpecInput& input,
                             const HostLimits& limits);

// The process section of a container's config.json with other arguments and without a terminal, for
// exec.
Result<std::string> WriteExecProcess(std::string_view spec_json,
                                     const std::vector<std::string>& arguments,
                                     bool terminal = false);

// "NET_ADMIN" or "CAP_NET_ADMIN", any case -> bit; nothing for an unknown name.
std::optional<int> CapabilityBit(std::string_view name);

}  // namespace drakkar::node
