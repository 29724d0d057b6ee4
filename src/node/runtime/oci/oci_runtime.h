#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/env/file_system.h"
#include "base/env/random.h"
#include "base/exec/uv_loop.h"
#include "base/exec/worker_pool.h"
#include "node/runtime/images/image_store.h"
#include "node/runtime/network/pod_network.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// Where conmon truncates a log by default: far above what rotation leaves.
inline constexpr std::uint64_t kMaxLogBytes = 128u << 20;

// The embedded runtime: OCI bundles run by runc (or crun), each under its own conmon.
//
// A pod's sandbox has no process. Its UTS and IPC namespaces are pinned by bind mounts, so there is
// nothing to spawn, keep alive or adopt, and nothing that can be OOM-killed. (A shared PID
// namespace needs an init process and is rejected for now.) With a PodNetwork, so is its network
// namespace, unless the pod asks for the host's; without one, pods share the host's network.
// Containers survive the agent; a new runtime on the same directory adopts them. Negative OOM
// scores, raised rlimits and capabilities that the host cannot grant are omitted and logged once.
//
// Lives on its UvLoop. Blocking work runs on `workers`. Everything passed in must outlive the last
// task of the loop and of the workers: destroy the runtime, then the pool, then the rest.
// Destroying the runtime leaves every container running.
struct OciRuntimeOptions {
  std::string root;     // <data>/runtime; no commas, colons or backslashes
  std::string runtime;  // "runc", "crun" or a path; empty: the one installed
  // Programs for pods with a RuntimeClass, by handler: like `runtime`, which they must resemble in
  // that the container's process is a process of this machine (runc, crun, youki).
  std::map<std::string, std::string> handlers = {};
  std::string runtime_state;  // empty: <root>/state
  // The size at which a container's log is truncated; more than its rotation allows.
  std::uint64_t max_log_bytes = kMaxLogBytes;
  PodNetwork* network = nullptr;                // null: pods share the host's
  std::function<void(const std::string&)> log;  // one sentence each; may be empty
  // Fetches an image into the store; empty: images can only be imported.
  std::function<void(PullRequest, RuntimeCallback<Image>)> pull = nullptr;
};

std::unique_ptr<Runtime> MakeOciRuntime(UvLoop& loop, WorkerPool& workers, FileSystem& files,
                                        Random& random, ImageStore& images,
                                        OciRuntimeOptions options);

}  // namespace drakkar::node
