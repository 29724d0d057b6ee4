#pragma once

#include <string>
#include <string_view>

#include "base/result/result.h"
#include "node/cpus/cpu_manager.h"

namespace drakkar::node {

inline constexpr char kCpuStateFile[] = "cpu_manager_state";

// A kubelet's cpu_manager_state, format v4: kubelets of all releases since 1.18 read it. The
// checksums are Kubernetes': FNV-1a of how Go prints the data.
std::string WriteCpuCheckpoint(const CpuState& state);

// Reads formats v2 and v4 of the static policy. A checkpoint of the policy "none" has no state. An
// error for a wrong checksum, a policy that is neither, and what is no checkpoint.
Result<CpuState> ReadCpuCheckpoint(std::string_view text);

}  // namespace drakkar::node
