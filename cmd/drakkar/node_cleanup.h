#pragma once

#include <string>
#include <vector>

#include "base/result/result.h"

namespace drakkar::cmd {

// What was removed from a machine.
struct Cleanup {
  std::size_t pods = 0;
  std::size_t mounts = 0;
};

// Ends all pods that a node agent with this data directory left running in the host's network, with
// their containers and cgroups, and unmounts what is mounted in `directories`. The agent must not
// be running.
Result<Cleanup> CleanUpNode(const std::string& data_dir,
                            const std::vector<std::string>& directories);

// The process to end for the data directory to be free, or 0. Of `up --separate-processes` that is
// the one that starts the others again.
Result<int> OwnerOf(const std::string& data_dir);

// Ends a process with SIGTERM, and with SIGKILL if it has not ended after `seconds`. Waits for its
// end. No such process is not an error.
Result<void> EndProcess(int pid, int seconds);

}  // namespace drakkar::cmd
