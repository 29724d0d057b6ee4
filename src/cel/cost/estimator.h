#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cel/checker/checker.h"
#include "cel/cost/estimate.h"

namespace drakkar::cel {

// What an environment knows about its variables.
struct EstimatorOptions {
  // The size of what a path leads to, such as device, attributes, @values: a variable, then field
  // names, @keys, @values, @items or @indices.
  std::function<std::optional<Estimate>(std::span<const std::string> path)> size_of_path;
};

// The least and the most an evaluation can cost.
Estimate EstimateCost(const CheckedAst& checked, const EstimatorOptions& options);

}  // namespace drakkar::cel
