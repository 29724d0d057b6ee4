#include "allocator/view/shape_table.h"

#include "api/meta/semver.h"

namespace drakkar::allocator {
namespace {

struct ValueWriter {
  KeyBuilder& key;

  void operator()(std::monostate) const {}
  void operator()(std::int64_t value) const { key.Number(static_cast<std::uint64_t>(value)); }
  void operator()(bool value) const { key.Flag(value); }
  void operator()(const std::string& value) const { key.Text(value); }
  void operator()(const device::VersionText& value) const { key.Text(value.text); }
  void operator()(const std::vector<bool>& values) const {
    key.Small(static_cast<std::uint32_t>(values.size()));
    for (const bool value : values) key.Flag(value);
  }
  template <typename T>
  void operator()(const std::vector<T>& values) const {
    key.Small(static_cast<std::uint32_t>(values.size()));
    for (const T& value : values) (*this)(value);
  }
};

void Write(KeyBuilder& key, const device::AttributeValue& value) {
  key.Small(static_cast<std::uint32_t>(value.index()));
  std::visit(ValueWriter{key}, value);
}

void Write(KeyBuilder& key, const std::optional<api::Quantity>& quantity) {
  key.Flag(quantity.has_value());
  if (quantity) key.Text(quantity->ToString());
}

void Write(KeyBuilder& key, const device::Capacity& capacity) {
  key.Text(capacity.name);
  key.Text(capacity.value.ToString());
  key.Flag(capacity.policy.has_value());
  if (!capacity.policy) return;
  Write(key, capacity.policy->default_value);
  key.Small(static_cast<std::uint32_t>(capacity.policy->valid_values.size()));
  for (const api::Quantity& value : capacity.policy->valid_values) key.Text(value.ToString());
  key.Flag(capacity.policy->valid_range.has_value());
  if (!capacity.policy->valid_range) return;
  Write(key, capacity.policy->valid_range->min);
  Write(key, capacity.policy->valid_range->max);
  Write(key, capacity.policy->valid_range->step);
}

void Write(KeyBuilder& key, const device::CounterConsumption& consumption) {
  key.Text(consumption.counter_set);
  key.Small(static_cast<std::uint32_t>(consumption.counters.size()));
  for (const device::Counter& counter : consumption.counters) {
    key.Text(counter.name);
    key.Text(counter.value.ToString());
  }
  key.List(consumption.compatibility_groups);
}

bool IsBroken(const device::VersionText& version) {
  return !api::Semver::Parse(version.text).ok();
}

// A value that cannot be converted fails every expression on the device, even those that do not
// read it. The error names the attribute, so such devices are compared in full.
bool FailsEveryExpression(const device::Device& device) {
  for (const device::Attribute& attribute : device.attributes) {
    if (std::holds_alternative<std::monostate>(attribute.value)) return true;
    if (const auto* version = std::get_if<device::VersionText>(&attribute.value)) {
      if (IsBroken(*version)) return true;
    }
    if (const auto* versions = std::get_if<std::vector<device::VersionText>>(&attribute.value)) {
      for (const device::VersionText& version : *versions) {
        if (IsBroken(version)) return true;
      }
    }
  }
  return false;
}

}  // namespace

std::uint32_t ShapeTable::Intern(std::string_view driver, const device::Device& device,
                                 const std::vector<device::Taint>& taints,
                                 bool skips_node_operations) {
  key_.Clear();
  key_.Flag(device.allow_multiple_allocations);
  key_.Flag(!device.binding_conditions.empty());
  key_.Flag(skips_node_operations);
  key_.Small(static_cast<std::uint32_t>(device.capacity.size()));
  for (const device::Capacity& capacity : device.capacity) Write(key_, capacity);
  key_.Small(static_cast<std::uint32_t>(taints.size()));
  for (const device::Taint& taint : taints) {
    key_.Text(taint.key);
    key_.Text(taint.value);
    key_.Text(taint.effect);
  }
  const std::uint32_t mechanics = mechanics_.Intern(key_.bytes());

  key_.Clear();
  key_.Small(mechanics);
  key_.Text(driver);
  key_.Small(static_cast<std::uint32_t>(device.consumes_counters.size()));
  for (const device::CounterConsumption& consumption : device.consumes_counters) {
    Write(key_, consumption);
  }
  if (everything_ || FailsEveryExpression(device)) {
    key_.Flag(true);
    for (const device::Attribute& attribute : device.attributes) {
      key_.Text(attribute.name);
      Write(key_, attribute.value);
    }
  } else {
    key_.Flag(false);
    std::uint32_t ordinal = 0;
    for (const std::string& name : interest_) {
      ++ordinal;
      const device::AttributeValue* value = device::FindAttribute(device.attributes, driver, name);
      if (value == nullptr) continue;
      key_.Small(ordinal);
      Write(key_, *value);
      // Both spellings of a name in the driver's own domain may be published.
      const std::size_t slash = name.find('/');
      if (std::string_view(name).substr(0, slash) != driver) continue;
      value = device::FindAttribute(device.attributes, driver, name.substr(slash + 1));
      key_.Flag(value != nullptr);
      if (value != nullptr) Write(key_, *value);
    }
  }
  const std::uint32_t shape = shapes_.Intern(key_.bytes());
  if (shape == mechanics_of_.size()) mechanics_of_.push_back(mechanics);
  return shape;
}

void ShapeTable::AddInterest(const device::Reads& reads) {
  if (reads.everything && !everything_) {
    everything_ = true;
    Grow();
  }
  for (const std::string& attribute : reads.attributes) AddInterest(attribute);
}

void ShapeTable::AddInterest(std::string_view attribute) {
  if (everything_ || interest_.contains(attribute)) return;
  interest_.emplace(attribute);
  if (interest_.size() > kMaxInterest) everything_ = true;
  Grow();
}

void ShapeTable::Grow() {
  ++epoch_;
  shapes_.Clear();
  mechanics_.Clear();
  mechanics_of_.clear();
}

}  // namespace drakkar::allocator
