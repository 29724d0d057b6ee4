#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace drakkar::node {

// What a pod's sandbox and containers are created from. Plain values modelled on CRI v1, so that a
// CRI implementation can map them field by field. The caller merges a container's CDI plan (env,
// mounts, device nodes, hooks, additional gids, cgroup device rules) into ContainerConfig.

// The cgroup around everything that Drakkar starts on a machine.
inline constexpr char kPodsCgroup[] = "/drakkar";

struct DnsConfig {
  std::vector<std::string> servers;
  std::vector<std::string> searches;
  std::vector<std::string> options;
};

// Zero or empty: not set, the kernel's default applies.
struct CgroupResources {
  std::int64_t cpu_shares = 0;
  std::int64_t cpu_quota_us = 0;  // per period; -1 is unlimited
  std::int64_t cpu_period_us = 0;
  std::string cpuset_cpus;
  std::string cpuset_mems;
  std::int64_t memory_limit_bytes = 0;
  std::int64_t pids_limit = 0;
  // Memory and swap together; without a memory limit it has no effect. Cgroup v1 only.
  std::int64_t memory_swap_limit_bytes = 0;
  std::map<std::string, std::int64_t> hugepage_limits_bytes;  // "2MB" -> bytes
  std::map<std::string, std::string> unified;                 // cgroup v2 only: file -> value
  std::optional<int> oom_score_adjust;  // lowering it below our own needs CAP_SYS_RESOURCE
};

// Cgroup settings that somebody asks for on top of CgroupResources; what is not set or empty stays
// as it is. Values are the kernel's for cgroup v1; a v2 runtime converts them.
struct CgroupChanges {
  using Number = std::optional<std::int64_t>;

  Number memory_limit_bytes;  // -1 is unlimited
  Number memory_reservation_bytes;
  Number memory_swap_bytes;  // memory and swap together
  Number memory_swappiness;
  std::optional<bool> disable_oom_killer;  // cgroup v1 only
  Number cpu_shares;
  Number cpu_quota_us;  // -1 is unlimited
  Number cpu_period_us;
  Number realtime_runtime_us;  // cgroup v1 only
  Number realtime_period_us;
  std::string cpuset_cpus;
  std::string cpuset_mems;
  Number pids_limit;                                           // -1 is unlimited
  std::map<std::string, std::uint64_t> hugepage_limits_bytes;  // "2MB" -> bytes
  std::map<std::string, std::string> unified;                  // cgroup v2 only: file -> value

  bool empty() const { return *this == CgroupChanges(); }
  bool operator==(const CgroupChanges&) const = default;
};
// Adds `later` to `changes`; where both set a value, `later` wins.
void Merge(const CgroupChanges& later, CgroupChanges& changes);

// Connections to a port of the host that lead to a port of the pod.
struct PortMapping {
  int host_port = 0;
  int container_port = 0;
  std::string protocol = "TCP";  // or "UDP", "SCTP"
  std::string host_ip;           // empty: all addresses of the host
};

// Bits per second; 0: not limited.
struct Bandwidth {
  std::int64_t ingress_bits = 0;
  std::int64_t egress_bits = 0;
};

struct PodSandboxConfig {
  std::string name;
  std::string namespace_name;
  std::string uid;
  std::uint32_t attempt = 0;
  std::string hostname;       // empty: the pod shares the host's UTS namespace
  std::string log_directory;  // absolute; a container's log_path is relative to it
  // A path in cgroupfs; a runtime that uses systemd's names converts it. Empty: /drakkar/pod<uid>.
  std::string cgroup_parent;
  bool host_network = true;        // false: its own, if the node has a network for pods
  std::vector<PortMapping> ports;  // without effect on the host's network
  Bandwidth bandwidth;
  bool host_pid = false;
  bool host_ipc = false;
  bool share_process_namespace = false;
  CgroupResources resources;  // for the whole pod
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::string runtime_handler;  // empty: the default one
  // Not set: the host's resolv.conf.
  std::optional<DnsConfig> dns;
  std::map<std::string, std::string> sysctls;
};

enum class MountPropagation { kPrivate, kHostToContainer, kBidirectional };

struct Mount {
  std::string host_path;  // the source: a path, or "tmpfs" and the like for a type
  std::string container_path;
  std::string type = "bind";
  bool readonly = false;
  // A name or an id: the files of this image, always read-only and without programs to run.
  // `host_path` is then a path in it, or empty.
  std::string image;
  std::vector<std::string> options;  // besides ro/rw, bind and propagation
  MountPropagation propagation = MountPropagation::kPrivate;
};

struct DeviceNode {
  std::string host_path;       // source of major, minor and type if they are not given
  std::string container_path;  // empty: host_path
  char type = 0;               // 'b', 'c', 'u', 'p'; 0: as on the host
  std::int64_t major = -1;
  std::int64_t minor = -1;
  std::optional<std::uint32_t> file_mode;
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::string permissions = "rwm";  // for the cgroup
};

struct CgroupDeviceRule {
  bool allow = true;
  char type = 'a';
  std::optional<std::int64_t> major;  // not set: all
  std::optional<std::int64_t> minor;
  std::string access = "rwm";
};

// `name` as in the OCI specification: prestart, createRuntime, createContainer, startContainer,
// poststart, poststop.
struct Hook {
  std::string name;
  std::string path;
  std::vector<std::string> arguments;  // arguments[0] is the program's name
  std::vector<std::string> environment;
  std::optional<int> timeout_seconds;
};

struct Rlimit {
  std::string type;  // "RLIMIT_NOFILE"
  std::uint64_t hard = 0;
  std::uint64_t soft = 0;
};

enum class SeccompKind { kUnconfined, kRuntimeDefault, kLocalhost };

struct SecurityContext {
  // A number, or a name looked up in the image's passwd; empty: the image's user.
  std::string user;
  std::optional<std::int64_t> group;
  std::vector<std::int64_t> supplemental_groups;  // CDI's additional gids belong here too
  bool only_given_groups = false;                 // not those of the user in the image
  std::vector<std::string> add_capabilities;      // "NET_ADMIN" or "CAP_NET_ADMIN"; "ALL"
  std::vector<std::string> drop_capabilities;
  bool privileged = false;
  bool readonly_rootfs = false;
  bool no_new_privileges = false;
  bool run_as_non_root = false;           // refuse to start as user 0
  std::vector<std::string> masked_paths;  // empty: the usual ones, unless privileged
  std::vector<std::string> readonly_paths;
  SeccompKind seccomp = SeccompKind::kUnconfined;
  std::string seccomp_path;     // of kLocalhost: a file of the node
  std::string seccomp_profile;  // of kLocalhost, without a path: the profile itself
};

struct EnvironmentVariable {
  std::string name;
  std::string value;
};

struct ContainerConfig {
  std::string id;  // must be unique; empty: generated by the runtime
  std::string name;
  std::uint32_t attempt = 0;
  std::string image;                             // a name or an image id
  std::vector<std::string> command;              // replaces the image's entrypoint
  std::vector<std::string> arguments;            // replaces the image's command
  std::string working_directory;                 // empty: the image's
  std::vector<EnvironmentVariable> environment;  // later entries win, over the image's too
  std::vector<Mount> mounts;
  std::vector<DeviceNode> devices;
  // CDI devices that the runtime resolves itself; see Runtime::CdiDirectories.
  std::vector<std::string> cdi_devices;
  std::vector<CgroupDeviceRule> device_rules;
  std::vector<Hook> hooks;
  CgroupResources resources;
  CgroupChanges cgroup_changes;  // override the resources
  SecurityContext security;
  std::vector<Rlimit> rlimits;
  std::map<std::string, std::string> sysctls;  // besides the sandbox's
  // Namespaces that differ from the sandbox's, by type ("network"): a path to join, "new", or empty
  // for the host's.
  std::map<std::string, std::string> namespaces;
  std::string cgroup_path;       // empty: below the sandbox's; its last part must be the id
  int process_namespace_of = 0;  // join the pid namespace of this process; 0: a new one
  bool tty = false;
  bool standard_input = false;
  bool standard_input_once = false;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::string log_path;     // relative to the sandbox's log directory
  std::string stop_signal;  // "SIGTERM", "15"; empty: the image's, else SIGTERM
};

}  // namespace drakkar::node
