#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/env/clock.h"
#include "scheduler/binding/condition_waits.h"
#include "scheduler/cache/claim_cache.h"
#include "scheduler/plugins/dynamic_resources/pod_devices.h"

namespace drakkar::scheduler {

// Which claims a pod waits for before it is bound, and until when (KEP-5007). Read-only:
// ConditionWaits does the waiting.
class WaitPolicy {
 public:
  struct Options {
    const Clock& clock;
    const ClaimCache& claims;
    bool is_enabled = true;  // false: no pod waits (feature gates)
    Duration timeout;
  };
  explicit WaitPolicy(Options options) : options_(options) {}

  // Whether an allocated claim may still become ready: no failure condition is True, and the
  // deadline has not passed with a condition missing.
  bool IsUsable(const CachedClaim& claim) const;
  // Whether a device of the claims, chosen or allocated, has binding conditions.
  bool HasConditions(std::span<const ClaimItem> items) const;
  // Whether one of the claims is deleted, being deleted or replaced.
  bool IsGone(std::span<const ClaimItem> items) const;

  // What a pod has to wait for after its claims were written.
  struct Plan {
    struct Claim : ConditionWaits::Claim {
      std::optional<MonotonicTime> began = std::nullopt;  // when the wait for its conditions began
    };
    std::vector<Claim> claims;
    bool has_conditions = false;  // false: nothing to wait for
    bool is_ready = true;         // all conditions are already True
    std::string missing_claim;    // key of a claim that no longer exists: the plan is void
  };
  Plan MakePlan(std::span<const ClaimItem> items) const;

  // "waiting for binding conditions for device on node n1: claim=..., device=..., condition=..."
  std::string Describe(std::span<const ClaimItem> items, std::string_view node_name) const;

 private:
  MonotonicTime BeganAt(const CachedClaim& claim) const;

  const Options options_;
};

}  // namespace drakkar::scheduler
