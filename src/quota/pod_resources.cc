#include "quota/pod_resources.h"

namespace drakkar::quota {

namespace {

using api::Value;

void Raise(Amounts& most, const Amounts& to) {
  for (const auto& [name, amount] : to) {
    const auto [found, is_new] = most.emplace(name, amount);
    if (!is_new && found->second < amount) found->second = amount;
  }
}

bool IsPodLevel(std::string_view name) {
  return name == "cpu" || name == "memory" || name.starts_with("hugepages-");
}

}  // namespace

Amounts ReadAmounts(Value map) {
  Amounts amounts;
  for (const auto& [key, name, value] : map.members()) {
    Result<api::Quantity> amount = api::Quantity::Parse(value.str());
    if (amount.ok()) amounts.emplace(name, std::move(*amount));
  }
  return amounts;
}

void Add(Amounts& sum, const Amounts& more) {
  for (const auto& [name, amount] : more) {
    const auto [found, is_new] = sum.emplace(name, amount);
    if (!is_new) found->second.Add(amount);
  }
}

Amounts ContainerAmounts(Value pod_spec, api::FieldName field) {
  Amounts sum, sidecars, initial;
  for (Value container : pod_spec["containers"].elements()) {
    Add(sum, ReadAmounts(container["resources"][field]));
  }
  for (Value container : pod_spec["initContainers"].elements()) {
    Amounts own = ReadAmounts(container["resources"][field]);
    if (container["restartPolicy"].str() == "Always") {
      Add(sum, own);
      Add(sidecars, own);
      own = sidecars;
    } else {
      Add(own, sidecars);
    }
    Raise(initial, own);
  }
  Raise(sum, initial);
  return sum;
}

Amounts PodAmounts(Value pod_spec, api::FieldName field, bool with_overhead) {
  Amounts sum = ContainerAmounts(pod_spec, field);
  for (auto& [name, amount] : ReadAmounts(pod_spec["resources"][field])) {
    if (IsPodLevel(name)) sum.insert_or_assign(name, amount);
  }
  if (with_overhead) {
    for (const auto& [name, amount] : ReadAmounts(pod_spec["overhead"])) {
      // An unlimited resource stays unlimited.
      const auto found = sum.find(name);
      if (found != sum.end()) {
        found->second.Add(amount);
      } else if (field.view() == "requests") {
        sum.emplace(name, amount);
      }
    }
  }
  return sum;
}

}  // namespace drakkar::quota
