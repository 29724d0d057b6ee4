#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// What a simulated container does once started.
struct HollowProgram {
  std::optional<Duration> runs_for;  // unset: until stopped
  int exit_code = 0;
  std::string reason;  // empty: from the exit code
  bool ignores_stop_signal = false;
  Duration stops_within{};  // from the stop signal to its end
  // What the container uses while it runs.
  std::uint64_t nano_cores = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t processes = 1;
  std::optional<ContainerIdentity> user;
  std::optional<Error> create_error;
  std::optional<Error> start_error;
  // The output and exit code of a command. One with input echoes it first.
  std::function<ExecResult(const std::vector<std::string>&)> exec;
};

struct HollowContainer {
  ContainerStatus status;
  ContainerConfig config;
  HollowProgram program;
  std::optional<WallTime> ends_at;
  int end_code = 0;
};

// The simulated machine, which survives the agent. Several runtimes may be opened on it, one after
// the other; containers keep running, and exit, while none is open.
struct HollowMachine {
  std::vector<Image> images;
  std::map<std::string, Image> registry;  // what can be pulled, by full name
  bool has_every_image = false;           // of any name, without a pull
  std::vector<PullRequest> pulls;         // all that were asked for
  features::RuntimeFeatures features;
  bool has_groups_policy = true;
  std::optional<std::vector<RuntimeHandler>> handlers = std::vector<RuntimeHandler>();
  // Empty: every container runs until stopped.
  std::function<HollowProgram(const ContainerConfig&)> program_of;
  // The same by the pod as well; takes precedence.
  std::function<HollowProgram(const PodSandboxConfig&, const ContainerConfig&)> program_in_pod;
  Duration start_takes{};
  Duration pull_takes{};
  // The addresses of pods that do not ask for the host's network; empty: they share it.
  std::vector<std::string> pod_ips;
  std::uint16_t closed_port = 1;  // every other port of a pod echoes
  std::map<std::string, PodSandbox> sandboxes;
  std::map<std::string, PodSandboxConfig> sandbox_configs;
  std::map<std::string, HollowContainer> containers;
  std::uint64_t next_id = 1;
  int next_pid = 1000;

  // Makes the next call of this method ("CreateContainer") fail with this error; several faults
  // queue up.
  void FailNext(const std::string& method, Error error) {
    faults[method].push_back(std::move(error));
  }
  std::map<std::string, std::deque<Error>> faults;
};

// A runtime without processes, for tests and simulation: containers run for a programmed time on
// the loop's clock. Satisfies the contract of Runtime. `machine` must outlive it.
std::unique_ptr<Runtime> MakeHollowRuntime(EventLoop& loop, HollowMachine& machine);

}  // namespace drakkar::node
