#pragma once

#include <string>
#include <string_view>

#include "base/result/result.h"
#include "node/cpus/cpu_manager.h"

namespace drakkar::node {

inline constexpr char kCpuStateFile[] = "cpu_manager_state";

// A kubelet's cpu_manager_state, format v4, which kubelets of all releases since 1.18 read. The
// checksums are Kubernetes': FNV-1a of the data as Go prints it.
std::string WriteCpuCheckpoint(const CpuState& state);

// Reads formats v2 and v4 of the static policy. A checkpoint of the policy "none" has no state. A
// wrong checksum, any other policy, or a malformed file is an error.
Result<CpuState> ReadCpuCheckpoint(std::string_view text);

}  // namespace drakkar::node
