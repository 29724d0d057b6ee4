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

// The input for the numbers of one complete pool, besides its devices' names.
struct PoolView {
  std::string_view driver;
  std::string_view name;
  std::vector<api::Value> slices;                      // their specs
  std::set<std::string_view> in_use;                   // devices
  std::map<std::string_view, api::Quantity> consumed;  // by capacity
  std::string_view default_attribute;                  // of the request; empty: none
};

// Maximum number of partition types or capacity names; a pool with more gets an error instead.
inline constexpr std::size_t kMaxViewItems = 32;

// Adds partitionSummary and shareableSummary to the status of a pool, where it has partitions or
// devices that several claims can share, or validationError. Worded as in Kubernetes. Pure.
void AddPoolViews(const PoolView& view, api::Draft& status);

}  // namespace drakkar::controllers
