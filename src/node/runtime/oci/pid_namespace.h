#pragma once

#include <string>
#include <vector>

#include "base/result/result.h"

namespace drakkar::node {

// PID namespaces that the containers of a pod share. Such a namespace ends with its first process,
// so one that does nothing holds it: `sleep` of this machine. It is no child of ours and outlives
// the agent. What containers leave without a parent becomes its child, and the kernel reaps it.

// Makes a namespace and pins it at `path`. The name, which must be unique, finds the holder again.
// The file exists before the holder does.
Result<void> HoldPidNamespace(const std::string& path, const std::string& name);

// The processes that hold the namespace of this name.
Result<std::vector<int>> FindHolders(const std::string& name);

// Ends the namespace with every process in it. Succeeds if it has ended.
Result<void> EndPidNamespace(const std::string& name);

}  // namespace drakkar::node
