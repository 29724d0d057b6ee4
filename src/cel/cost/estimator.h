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
  // The size of the value at a path, such as device, attributes, @values: a variable, then field
  // names, @keys, @values, @items or @indices.
  std::function<std::optional<Estimate>(std::span<const std::string> path)> size_of_path;
};

// The minimum and maximum cost of an evaluation.
Estimate EstimateCost(const CheckedAst& checked, const EstimatorOptions& options);

}  // namespace drakkar::cel
