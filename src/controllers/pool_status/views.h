#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/quantity.h"
#include "api/tree/draft.h"

namespace drakkar::controllers {

// What the numbers of one complete pool are computed from, besides its devices' names.
struct PoolView {
  std::string_view driver;
  std::string_view name;
  std::vector<api::Value> slices;                      // their specs
  std::set<std::string_view> in_use;                   // devices
  std::map<std::string_view, api::Quantity> consumed;  // by capacity
  std::string_view default_attribute;                  // of the request; empty: none
};

// At most so many types of partitions, or names of capacities; a pool with more has an error
// instead.
inline constexpr std::size_t kMaxViewItems = 32;

// Adds partitionSummary and shareableSummary to the status of a pool, where it has partitions or
// devices that several claims can share, or validationError. Worded as in Kubernetes. Pure.
void AddPoolViews(const PoolView& view, api::Draft& status);

}  // namespace drakkar::controllers
