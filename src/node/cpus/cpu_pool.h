#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/env/file_system.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "node/cpus/cpu_manager.h"

namespace drakkar::node {

class Runtime;

// Applies the decisions of the CPU manager: writes the checkpoint before a pod starts, and moves
// the containers that share CPUs when the shared set changes, immediately and again every
// `reconcile_every`, because a container may have been created in between. Loop-bound; remembers
// one list of CPUs per running container.
class CpuPool {
 public:
  struct Options {
    EventLoop& loop;
    FileSystem& files;
    Runtime& runtime;
    std::string directory;  // of the checkpoint
    Duration reconcile_every = std::chrono::seconds(10);
    // UIDs of the node's pods; not set until they are known.
    std::function<std::optional<std::set<std::string>>()> pods;
  };

  CpuPool(CpuManager manager, Options options)
      : manager_(std::move(manager)), options_(std::move(options)) {}

  // Continues from the checkpoint. Blocks; an error says what to do.
  Result<void> Load();
  // Call once the runtime is open.
  void Start() { Reconcile(); }

  std::optional<PodVerdict> Admit(api::Value pod);
  // The pod's containers have ended.
  void Release(const std::string& pod_uid);

  const CpuManager& manager() const { return manager_; }

 private:
  Result<void> Store() const;
  void Reconcile();
  void Move();

  CpuManager manager_;
  const Options options_;
  std::map<std::string, std::string> applied_;  // by container id
  TimerHandle timer_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
