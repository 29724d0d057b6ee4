#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "answers/cluster/snapshot.h"

namespace drakkar::answers {

// A pod that does not run yet, or that is on its way out.
struct PendingPod {
  enum class Stage : std::uint8_t {
    kUnschedulable,  // the scheduler tried and found no node
    kQueued,         // the scheduler has not tried it yet
    kGated,          // scheduling gates hold it back
    kStarting,       // bound to a node; its devices or containers are not ready
    kTerminating,    // being deleted, and still holds devices
  };
  std::string namespace_;
  std::string name;
  Stage stage = Stage::kQueued;
  std::string since;    // RFC 3339: its creation, or when its deletion was due
  std::string node;     // empty: none yet
  std::string owner;    // "Job/train"; empty: none
  std::string message;  // the scheduler's words; empty if it has said nothing
  std::size_t claims = 0;
};

std::string_view StageName(PendingPod::Stage stage);  // "Unschedulable", "Queued" ...

// Pods without a node, and pods with claims that are starting or terminating. Unschedulable pods
// come first, then by age, oldest first.
std::vector<PendingPod> FindPending(const Snapshot& snapshot);

}  // namespace drakkar::answers
