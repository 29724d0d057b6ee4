#include "allocator/ledger/capacity_policy.h"

#include <algorithm>
#include <limits>

#include "base/result/result.h"
#include "base/text/text.h"

namespace drakkar::allocator {
namespace {

using api::Quantity;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

Error NotRepresentable(std::string_view why) {
  return InvalidArgument(
      StrCat("capacity request cannot be represented in the device's range arithmetic: ", why));
}

std::optional<std::int64_t> ExactMilli(const Quantity& quantity) {
  const std::int64_t milli = quantity.MilliValue();
  if (Quantity::FromMilli(milli) != quantity) return std::nullopt;
  return milli;
}

// Milli units are used if the whole range can be written in them.
bool UsesMilli(const device::CapacityRange& range, bool fractional) {
  if (!fractional) return false;
  for (const auto* part : {&range.min, &range.max, &range.step}) {
    if (*part && !ExactMilli(**part)) return false;
  }
  return !range.step || *ExactMilli(*range.step) >= 1;
}

// The smallest min + n * step that is at least `requested`; nullopt if that exceeds int64. Computes
// in 128 bits, because stored objects may hold any int64.
std::optional<std::int64_t> RoundUp(std::int64_t requested, std::int64_t min, std::int64_t step) {
  const __int128 added = static_cast<__int128>(requested) - min;
  __int128 n = added / step;
  if (added % step != 0) ++n;
  const __int128 value = min + n * step;
  if (value > kMax || value < std::numeric_limits<std::int64_t>::min()) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

Result<Quantity> RoundUpToRange(const Quantity& requested, const device::CapacityRange& range,
                                bool fractional) {
  if (requested < *range.min) return *range.min;
  if (!range.step) return requested;
  const Quantity::Format format = range.step->format();
  if (UsesMilli(range, fractional)) {
    const std::optional<std::int64_t> milli = ExactMilli(requested);
    if (!milli) {
      return NotRepresentable(
          StrCat("request ", requested.ToString(), " is not a representable milli value"));
    }
    const std::optional<std::int64_t> rounded =
        RoundUp(*milli, range.min->MilliValue(), range.step->MilliValue());
    if (!rounded) {
      return NotRepresentable(StrCat("rounding request ", requested.ToString(),
                                     " up to the next step passes the milli-value range"));
    }
    if (*rounded % 1000 == 0) return Quantity(*rounded / 1000, format);
    return Quantity::FromMilli(*rounded, format);
  }
  if (requested.CompareInt64(kMax) > 0) {
    return NotRepresentable(StrCat("request ", requested.ToString(), " exceeds MaxInt64"));
  }
  const std::int64_t step = range.step->Value();
  if (step == 0) return requested;  // validation admits no such policy
  const std::optional<std::int64_t> rounded = RoundUp(requested.Value(), range.min->Value(), step);
  if (!rounded) {
    return NotRepresentable(
        StrCat("rounding request ", requested.ToString(), " up to the next step passes MaxInt64"));
  }
  return Quantity(*rounded, format);
}

Result<Quantity> Consumed(const device::Capacity& capacity, const Quantity* requested,
                          bool fractional) {
  const auto& policy = capacity.policy;
  if (requested == nullptr) {
    return policy && policy->default_value ? *policy->default_value : capacity.value;
  }
  if (!policy) return *requested;
  // The default is always allowed, even outside the range.
  if (policy->default_value && *requested == *policy->default_value) return *requested;
  if (policy->valid_range && policy->valid_range->min) {
    return RoundUpToRange(*requested, *policy->valid_range, fractional);
  }
  for (const Quantity& value : policy->valid_values) {
    if (*requested <= value) return value;
  }
  return *requested;
}

bool IsInRange(const Quantity& amount, const device::CapacityRange& range, bool fractional) {
  if (range.max && amount > *range.max) return false;
  if (!range.step) return true;
  const Quantity min = range.min.value_or(Quantity());
  __int128 distance = 0;
  std::int64_t step = 0;
  if (UsesMilli(range, fractional)) {
    const std::optional<std::int64_t> milli = ExactMilli(amount);
    if (!milli) return false;
    distance = static_cast<__int128>(*milli) - min.MilliValue();
    step = range.step->MilliValue();
  } else {
    distance = static_cast<__int128>(amount.Value()) - min.Value();
    step = range.step->Value();
  }
  return step == 0 || distance % step == 0;
}

bool IsAllowed(const Quantity& amount, const std::optional<device::CapacityPolicy>& policy,
               bool fractional) {
  if (!policy) return true;
  if (policy->default_value && amount == *policy->default_value) return true;
  if (policy->valid_range) return IsInRange(amount, *policy->valid_range, fractional);
  if (policy->valid_values.empty()) return true;
  return std::find(policy->valid_values.begin(), policy->valid_values.end(), amount) !=
         policy->valid_values.end();
}

const Quantity* FindRequest(const std::vector<device::CapacityRequest>* requests,
                            std::string_view name) {
  if (requests == nullptr) return nullptr;
  for (const device::CapacityRequest& request : *requests) {
    if (request.name == name) return &request.value;
  }
  return nullptr;
}

bool Lacks(const std::vector<device::Capacity>& capacities, std::string_view name) {
  return std::none_of(capacities.begin(), capacities.end(),
                      [&](const device::Capacity& capacity) { return capacity.name == name; });
}

}  // namespace

CapacityNeed ComputeCapacityNeed(const std::vector<device::Capacity>& capacities,
                                 const std::vector<device::CapacityRequest>* requests,
                                 bool fractional) {
  CapacityNeed need;
  if (requests != nullptr) {
    for (const device::CapacityRequest& request : *requests) {
      if (!Lacks(capacities, request.name)) continue;
      need.kind = CapacityNeed::Kind::kRefused;
      return need;
    }
  }
  // An amount that cannot be computed ends the attempt, whatever else is wrong with the device.
  for (const device::Capacity& capacity : capacities) {
    Result<Quantity> amount = Consumed(capacity, FindRequest(requests, capacity.name), fractional);
    if (amount.ok() && amount->Sign() < 0) amount = InvalidArgument("capacity value is negative");
    if (!amount.ok()) {
      need.kind = CapacityNeed::Kind::kFatal;
      need.error = StrCat("capacity ", Quote(capacity.name), ": ", amount.error().message);
      return need;
    }
    need.amounts.push_back(*std::move(amount));
  }
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    if (!IsAllowed(need.amounts[i], capacities[i].policy, fractional)) {
      need.kind = CapacityNeed::Kind::kRefused;
      return need;
    }
    if (need.amounts[i] > capacities[i].value) need.kind = CapacityNeed::Kind::kTooBig;
  }
  return need;
}

}  // namespace drakkar::allocator
