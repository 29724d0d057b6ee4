#pragma once

#include <gtest/gtest.h>

#include "allocator/testing/harness.h"
#include "allocator/testing/workload.h"

namespace drakkar::allocator {

using ClaimPtr = std::shared_ptr<const device::Claim>;

// A cluster of scheduler_perf nodes.
struct Cluster : Harness {
  explicit Cluster(int nodes, Features features = {}) : Harness(features) {
    for (int i = 0; i < nodes; ++i) {
      inventory.SetSlice(PerfSlice(i));
      allocator.SetNode({NodeName(i), {}, {}});
    }
  }
  // With one node that has this slice.
  explicit Cluster(const std::shared_ptr<device::Slice>& slice, Features features = {})
      : Cluster(0, features) {
    inventory.SetSlice(slice);
    allocator.SetNode({NodeName(0), {}, {}});
  }

  Problem PrepareOne(const ClaimPtr& claim) {
    return allocator.Prepare(std::span(&claim, 1), OneClass(device_class));
  }
  Result<Outcome> Allocate(const ClaimPtr& claim, int node = 0, const SearchBudget& budget = {}) {
    return allocator.Allocate(PrepareOne(claim), NodeName(node), budget);
  }
  Explanation Explain(const ClaimPtr& claim, int node = 0) {
    auto explanation = allocator.Explain(PrepareOne(claim), NodeName(node), {});
    EXPECT_TRUE(explanation.ok());
    return *std::move(explanation);
  }
  // The message of an error, or of a claim that does not fit.
  std::string WhyNot(const ClaimPtr& claim) {
    const auto outcome = Allocate(claim);
    if (!outcome.ok()) return outcome.error().message;
    const auto* no = std::get_if<Unsatisfiable>(&*outcome);
    return no == nullptr ? "no error" : no->message;
  }
  // The claim's allocation; fails the test if there is none.
  device::AllocationResult MustAllocate(const ClaimPtr& claim) {
    const auto outcome = Allocate(claim);
    if (!outcome.ok() || !std::holds_alternative<Allocation>(*outcome)) {
      ADD_FAILURE() << "does not fit: " << WhyNot(claim);
      return {};
    }
    return std::get<Allocation>(*outcome).results[0];
  }

  std::shared_ptr<const device::DeviceClass> device_class = PerfClass();
};

inline const Unsatisfiable* AsNo(const Result<Outcome>& outcome) {
  return outcome.ok() ? std::get_if<Unsatisfiable>(&*outcome) : nullptr;
}
inline const Allocation* AsYes(const Result<Outcome>& outcome) {
  return outcome.ok() ? std::get_if<Allocation>(&*outcome) : nullptr;
}

}  // namespace drakkar::allocator
