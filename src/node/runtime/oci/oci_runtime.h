#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/env/file_system.h"
#include "base/env/random.h"
#include "base/exec/uv_loop.h"
#include "base/exec/worker_pool.h"
#include "node/runtime/images/image_store.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// The embedded runtime: OCI bundles run by runc (or crun), each under its own conmon.
//
// A pod's sandbox has no process: its UTS and IPC namespaces are pinned by bind mounts, so there is
// nothing to keep alive, to adopt or to be killed for lack of memory, and a sandbox costs no spawn.
// (A shared PID namespace needs an init process; sharing it is refused for now.) Pods share the
// host's network. Containers survive the agent; a new runtime on the same directory adopts them.
// Negative oom scores, raised rlimits and capabilities the host lacks are left out and logged once.
//
// Lives on its UvLoop. Blocking work runs on `workers`; everything given must outlive the loop's
// last task and the workers' last one: destroy the runtime, then the pool, then the rest.
// Destroying it leaves every container as it is.
struct OciRuntimeOptions {
  std::string root;           // <data>/runtime; no commas, colons or backslashes
  std::string runtime;        // "runc", "crun" or a path; empty: the one installed
  std::string runtime_state;  // empty: <root>/state
  std::function<void(const std::string&)> log;  // one sentence each; may be empty
};

std::unique_ptr<Runtime> MakeOciRuntime(UvLoop& loop, WorkerPool& workers, FileSystem& files,
                                        Random& random, ImageStore& images,
                                        OciRuntimeOptions options);

}  // namespace drakkar::node
