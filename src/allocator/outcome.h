#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "device/allocation.h"

namespace drakkar::allocator {

// One result per claim, in the order of the claims.
struct Allocation {
  std::vector<device::AllocationResult> results;
};

// Why a node cannot serve the claims, as a scheduling event reports it. Explain gives the details.
enum class Reason : std::uint8_t {
  kNoDevices,        // "cannot allocate all claims"
  kInvalidPools,     // "invalid resource pools were encountered"
  kSkipUndeclared,   // would fit if the node declared that it can skip node operations
  kSkipDisabled,     // would fit if the gate for skipping node operations were on
  kBindingDisabled,  // would fit if the gates for binding conditions were on
};

struct Unsatisfiable {
  Reason reason = Reason::kNoDevices;
  std::string message;
};

// Neither yes nor no: the search was stopped before it finished.
struct BudgetExceeded {
  std::uint64_t steps = 0;
};

using Outcome = std::variant<Allocation, Unsatisfiable, BudgetExceeded>;

}  // namespace drakkar::allocator
