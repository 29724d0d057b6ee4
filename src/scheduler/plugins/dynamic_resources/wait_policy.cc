#include "scheduler/plugins/dynamic_resources/wait_policy.h"

#include <algorithm>

#include "api/meta/time.h"
#include "base/text/text.h"
#include "scheduler/binding/binding_conditions.h"

namespace drakkar::scheduler {
namespace {

// Further conditions are only counted: an event has no room for them.
constexpr std::size_t kMaxNamedConditions = 4;

}  // namespace

bool WaitPolicy::IsUsable(const CachedClaim& claim) const {
  if (!options_.is_enabled) return true;
  const BindingState binding = EvaluateBinding(claim);
  if (binding.kind == BindingState::Kind::kFailed) return false;
  if (binding.kind != BindingState::Kind::kWaiting) return true;
  return BeganAt(claim) + options_.timeout > options_.clock.Monotonic();
}

bool WaitPolicy::HasConditions(std::span<const ClaimItem> items) const {
  if (!options_.is_enabled) return false;
  for (const ClaimItem& item : items) {
    AllocationPtr allocation = item.chosen;
    if (allocation == nullptr) {
      const CachedClaim* claim = options_.claims.Find(item.key);
      if (claim != nullptr) allocation = claim->allocation;
    }
    if (allocation == nullptr) continue;
    for (const device::DeviceResult& result : allocation->results) {
      if (!result.binding_conditions.empty() || !result.binding_failure_conditions.empty()) {
        return true;
      }
    }
  }
  return false;
}

bool WaitPolicy::IsGone(std::span<const ClaimItem> items) const {
  return std::any_of(items.begin(), items.end(), [&](const ClaimItem& item) {
    if (item.key.empty()) return false;  // not created yet
    const CachedClaim* claim = options_.claims.Find(item.key);
    return claim == nullptr || claim->latest->uid() != item.uid ||
           claim->latest->is_being_deleted();
  });
}

MonotonicTime WaitPolicy::BeganAt(const CachedClaim& claim) const {
  if (claim.wait_began) return *claim.wait_began;
  // The timestamp is the wall time of whoever allocated. A timestamp in the future does not extend
  // the wait. It has whole seconds and may mean any moment within its second. The end of the second
  // counts, so that no wait is cut short.
  const MonotonicTime now = options_.clock.Monotonic();
  const auto allocated = api::ParseTime(claim.allocation->allocation_timestamp);
  if (!allocated.ok()) return now;
  return now -
         std::max(options_.clock.Now() - (*allocated + std::chrono::seconds(1)), Duration::zero());
}

WaitPolicy::Plan WaitPolicy::MakePlan(std::span<const ClaimItem> items) const {
  Plan plan;
  if (!options_.is_enabled) return plan;
  for (const ClaimItem& item : items) {
    const CachedClaim* claim = options_.claims.Find(item.key);
    if (claim == nullptr || claim->latest->uid() != item.uid) {
      plan.missing_claim = item.key;
      return plan;
    }
    const BindingState binding = EvaluateBinding(*claim);
    Plan::Claim& wait = plan.claims.emplace_back();
    wait.key = item.key;
    wait.uid = item.uid;
    if (claim->allocation != nullptr && binding.kind == BindingState::Kind::kNone) {
      // There is nothing to wait for, but if this claim is deleted, waiting for the others is
      // pointless.
      wait.deadline = ConditionWaits::kNoDeadline;
      continue;
    }
    plan.has_conditions = true;
    plan.is_ready = plan.is_ready && binding.kind == BindingState::Kind::kReady;
    if (claim->allocation == nullptr) continue;  // the wait notices and ends
    wait.began = BeganAt(*claim);
    wait.deadline = *wait.began + options_.timeout;
  }
  return plan;
}

std::string WaitPolicy::Describe(std::span<const ClaimItem> items,
                                 std::string_view node_name) const {
  std::vector<std::string> named;
  std::size_t more = 0;
  for (const ClaimItem& item : items) {
    const CachedClaim* claim = options_.claims.Find(item.key);
    if (claim == nullptr) continue;
    for (const PendingCondition& pending : PendingConditions(*claim)) {
      if (named.size() == kMaxNamedConditions) {
        ++more;
        continue;
      }
      named.push_back(StrCat("claim=", claim->latest->name(), ", device=",
                             pending.device.ToString(), ", condition=", pending.condition));
    }
  }
  std::string text = StrCat("waiting for binding conditions for device on node ", node_name);
  if (!named.empty()) text += StrCat(": ", Join(named, "; "));
  if (more > 0) text += StrCat("; and ", more, " more");
  return text;
}

}  // namespace drakkar::scheduler
