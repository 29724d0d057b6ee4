#include "allocator/request/plan.h"

#include <algorithm>

#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar::allocator {
namespace {

using device::Expression;

constexpr std::string_view kMissingKey = "no such key:";
constexpr std::string_view kMissingKeyHint =
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with "
    "has() for optional fields";

std::string WithHint(std::string message) {
  if (message.find(kMissingKey) != std::string::npos) message += kMissingKeyHint;
  return message;
}

Selection Ask(const std::vector<std::shared_ptr<const Expression>>& selectors,
              std::string_view driver, const device::Device& device, Selection no) {
  for (const auto& selector : selectors) {
    if (selector->compile_error()) return Selection::kError;
    const Result<bool> matches = selector->Matches(driver, device);
    if (!matches.ok()) return Selection::kError;
    if (!*matches) return no;
  }
  return Selection::kYes;
}

// Evaluates selectors up to the first one that fails or does not match.
Result<void> Evaluate(const std::vector<std::shared_ptr<const Expression>>& selectors,
                      std::string_view driver, const device::DeviceId& id,
                      const device::Device& device) {
  for (std::size_t i = 0; i < selectors.size(); ++i) {
    if (selectors[i]->compile_error()) {
      return InvalidArgument(
          StrCat("selector #", i, ": CEL compile error: ", *selectors[i]->compile_error()));
    }
    const Result<bool> matches = selectors[i]->Matches(driver, device);
    if (!matches.ok()) {
      return InvalidArgument(StrCat("selector #", i, " on device ", id.ToString(),
                                    ": CEL runtime error: ", WithHint(matches.error().message)));
    }
    if (!*matches) return Ok();
  }
  return Ok();
}

// The derived attribute with this name, or nothing.
std::optional<std::size_t> FindDerived(const Alternative& alternative, std::string_view name) {
  const auto& derived = alternative.spec.derived_attributes;
  for (std::size_t i = 0; i < alternative.derived.size(); ++i) {
    if (derived[i].name == name) return i;
  }
  return std::nullopt;
}

}  // namespace

std::string Alternative::full_name() const {
  return parent.empty() ? spec.name : StrCat(parent, "/", spec.name);
}

void Plan::Sync(std::uint64_t shape_epoch, std::size_t shape_count) {
  if (shape_epoch == shape_epoch_ && shape_count == shape_count_) return;
  const bool renumbered = shape_epoch != shape_epoch_;
  shape_epoch_ = shape_epoch;
  shape_count_ = shape_count;
  for (ClaimPlan& claim : claims_) {
    for (RequestPlan& request : claim.requests) {
      for (Alternative& alternative : request.alternatives) {
        if (renumbered) {
          alternative.selection.clear();
          alternative.tolerates.clear();
          alternative.capacity.clear();
          alternative.values.clear();
        }
        alternative.selection.resize(shape_count, Selection::kUnknown);
        alternative.tolerates.resize(shape_count, 0);
        alternative.capacity.resize(shape_count);
        alternative.values.resize(alternative.constraints.size());
        for (auto& values : alternative.values) values.resize(shape_count, ValueTable::kUnknown);
      }
    }
  }
}

Selection Plan::SelectionOf(Alternative& alternative, std::string_view driver,
                            const ViewDevice& device) {
  Selection& known = alternative.selection[device.shape];
  if (known != Selection::kUnknown) return known;
  known = Ask(alternative.class_selectors, driver, *device.device, Selection::kNotByClass);
  if (known == Selection::kYes) {
    known = Ask(alternative.selectors, driver, *device.device, Selection::kNotByRequest);
  }
  return known;
}

bool Plan::Tolerates(Alternative& alternative, const std::vector<device::Taint>& taints,
                     std::uint32_t shape) {
  std::uint8_t& known = alternative.tolerates[shape];
  if (known == 0) {
    known = device::FindUntolerated(taints, alternative.spec.tolerations) == nullptr ? 2 : 1;
  }
  return known == 2;
}

const CapacityNeed& Plan::CapacityOf(Alternative& alternative, const ViewDevice& device) {
  std::unique_ptr<CapacityNeed>& known = alternative.capacity[device.shape];
  if (known == nullptr) {
    const auto& requests = alternative.spec.capacity;
    known = std::make_unique<CapacityNeed>(
        ComputeCapacityNeed(device.device->capacity, requests ? &*requests : nullptr,
                            features_.fractional_capacity_range));
  }
  return *known;
}

std::int32_t Plan::ValueOf(const ClaimPlan& claim, Alternative& alternative, std::size_t n,
                           std::string_view driver, const ViewDevice& device) {
  std::int32_t& known = alternative.values[n][device.shape];
  if (known != ValueTable::kUnknown) return known;
  const std::string& name = claim.constraints[alternative.constraints[n]].attribute;
  const std::optional<std::size_t> derived = FindDerived(alternative, name);
  const bool lists = features_.list_type_attributes;
  if (!derived) {
    const device::AttributeValue* value =
        device::FindAttribute(device.device->attributes, driver, name);
    known = value == nullptr ? ValueTable::kNone : values_.Intern(*value, lists);
    return known;
  }
  const Expression& expression = *alternative.derived[*derived];
  known = ValueTable::kError;
  if (expression.compile_error()) return known;
  const Result<device::AttributeValue> value = expression.Derive(driver, *device.device);
  if (value.ok()) known = values_.Intern(*value, lists);
  return known;
}

std::string SelectionError(const Alternative& alternative, std::string_view claim,
                           std::string_view driver, const device::DeviceId& id,
                           const device::Device& device) {
  if (const auto evaluated = Evaluate(alternative.class_selectors, driver, id, device);
      !evaluated.ok()) {
    return StrCat("class ", alternative.class_name, ": ", evaluated.error().message);
  }
  const auto evaluated = Evaluate(alternative.selectors, driver, id, device);
  CHECK(!evaluated.ok());  // expressions are pure: a failed one fails again
  return StrCat("claim ", claim, ": ", evaluated.error().message);
}

std::string DerivedError(const ClaimPlan& claim, const Alternative& alternative, std::size_t n,
                         std::string_view driver, const device::DeviceId& id,
                         const device::Device& device) {
  const std::string& name = claim.constraints[alternative.constraints[n]].attribute;
  const std::optional<std::size_t> derived = FindDerived(alternative, name);
  CHECK(derived.has_value());
  const Expression& expression = *alternative.derived[*derived];
  if (expression.compile_error()) {
    return StrCat("compile derived attribute ", name, " failed: ", *expression.compile_error());
  }
  const Result<device::AttributeValue> value = expression.Derive(driver, device);
  CHECK(!value.ok());
  return StrCat("evaluate derived attribute ", name, " on device ", id.ToString(),
                " failed: ", value.error().message);
}

}  // namespace drakkar::allocator
