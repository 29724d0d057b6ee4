#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/env/clock.h"
#include "base/result/result.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// The on-disk record of a sandbox or container: everything needed to adopt it, or to clean up after
// the agent was killed. Written before the side effect it announces. Replaced atomically but not
// synced: the page cache outlives the agent, and what a power failure loses describes containers
// that it ended too. An unreadable record belongs to an incomplete container, which is cleaned up.

// "removing" is final: whoever finds it completes the removal.
enum class Phase { kCreating, kCreated, kStarting, kRunning, kExited, kRemoving };

struct SandboxRecord {
  std::string id;
  Phase phase = Phase::kCreating;  // creating, running (ready), exited (stopped), removing
  std::string name;
  std::string namespace_name;
  std::string uid;
  std::uint32_t attempt = 0;
  std::string hostname;
  std::string log_directory;
  std::string cgroup_parent;
  bool host_pid = false;
  bool host_ipc = false;
  bool shares_processes = false;  // its containers have one PID namespace
  std::string network_namespace;  // a path; empty: the host's
  std::vector<std::string> ips;
  WallTime created_at{};
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::map<std::string, std::string> sysctls;
  std::string runtime_handler;  // empty: the default one
  std::string runtime_program;  // of the handler, so that its containers can always be ended
  // The pod's limits, for those who ask; of CgroupResources, only these four.
  std::int64_t cpu_shares = 0;
  std::int64_t cpu_quota_us = 0;
  std::int64_t cpu_period_us = 0;
  std::int64_t memory_limit_bytes = 0;

  bool operator==(const SandboxRecord&) const = default;
};

struct ContainerRecord {
  std::string id;
  std::string sandbox_id;
  Phase phase = Phase::kCreating;
  std::string name;
  std::uint32_t attempt = 0;
  std::string image;
  std::string image_id;
  std::string image_reference;  // see ContainerStatus::image_id
  std::string log_path;
  std::string cgroup_path;
  bool terminal = false;
  bool standard_input = false;
  bool standard_input_once = false;
  bool has_poststop_hooks = false;
  bool released = false;  // cgroup and runtime state were removed after the exit
  int stop_signal = 15;
  int pid = 0;
  std::uint64_t pid_start_ticks = 0;
  WallTime created_at{};
  WallTime started_at{};
  WallTime finished_at{};
  int exit_code = 0;
  std::string reason;
  std::string message;
  std::optional<ContainerIdentity> user;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;

  bool operator==(const ContainerRecord&) const = default;
};

std::string WriteRecord(const SandboxRecord& record);
std::string WriteRecord(const ContainerRecord& record);
Result<SandboxRecord> ParseSandboxRecord(std::string_view text);
Result<ContainerRecord> ParseContainerRecord(std::string_view text);

ContainerStatus StatusOf(const ContainerRecord& record);
PodSandbox SandboxOf(const SandboxRecord& record);

}  // namespace drakkar::node
