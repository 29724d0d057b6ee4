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

// Which claims are worth waiting for before a pod is bound, and until when (KEP-5007). Only reads:
// ConditionWaits does the waiting.
class WaitPolicy {
 public:
  struct Options {
    const Clock& clock;
    const ClaimCache& claims;
    bool is_enabled = true;  // false: nobody waits (feature gates)
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

  // What a pod whose claims are written has to wait for.
  struct Plan {
    struct Claim : ConditionWaits::Claim {
      std::optional<MonotonicTime> began = std::nullopt;  // when its conditions were first due
    };
    std::vector<Claim> claims;
    bool has_conditions = false;  // false: nothing to wait for
    bool is_ready = true;         // all conditions are True already
    std::string missing_claim;    // key of a claim that is gone: the plan is void
  };
  Plan MakePlan(std::span<const ClaimItem> items) const;

  // "waiting for binding conditions for device on node n1: claim=..., device=..., condition=..."
  std::string Describe(std::span<const ClaimItem> items, std::string_view node_name) const;

 private:
  MonotonicTime BeganAt(const CachedClaim& claim) const;

  const Options options_;
};

}  // namespace drakkar::scheduler
