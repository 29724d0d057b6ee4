#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/framework/profile.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::scheduler {

class Fields;

// How NodeResourcesFit scores: by what is left on a node, by what is taken, or by a shape, over
// which resources.
struct FitScoring {
  // So much of a resource in use, in percent, is worth so many of 100 points; straight lines
  // between.
  struct ShapePoint {
    std::int64_t utilization = 0;
    std::int64_t score = 0;
    bool operator==(const ShapePoint&) const = default;
  };
  bool most_allocated = false;
  std::vector<ShapePoint> shape;  // RequestedToCapacityRatio; rising in utilization
  std::vector<std::pair<std::string, std::int64_t>> resources = {{"cpu", 1}, {"memory", 1}};
  bool operator==(const FitScoring&) const = default;
};

struct NodeResourcesFitArgs final : PluginArgs {
  FitScoring scoring;
  // Extended resources, or their groups ("example.com"), that others look after.
  std::vector<std::string> ignored_resources;
  std::vector<std::string> ignored_groups;

  static PluginArgsPtr Read(Fields& fields, const FeatureGates& gates);
  void Write(api::Draft& args) const override;
};

// Accepted as long as they say what the plugin does anyway.
struct NodeResourcesBalancedArgs final : PluginArgs {
  static PluginArgsPtr Read(Fields& fields, const FeatureGates& gates);
  void Write(api::Draft& args) const override;
};

}  // namespace drakkar::scheduler
