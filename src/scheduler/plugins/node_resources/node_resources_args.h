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

// How NodeResourcesFit scores: by the free amount, by the used amount, or by a shape; and over
// which resources.
struct FitScoring {
  // Maps a utilization in percent to a score of up to 100, with linear interpolation between
  // points.
  struct ShapePoint {
    std::int64_t utilization = 0;
    std::int64_t score = 0;
    bool operator==(const ShapePoint&) const = default;
  };
  bool most_allocated = false;
  std::vector<ShapePoint> shape;  // for RequestedToCapacityRatio; ascending utilization
  std::vector<std::pair<std::string, std::int64_t>> resources = {{"cpu", 1}, {"memory", 1}};
  bool operator==(const FitScoring&) const = default;
};

struct NodeResourcesFitArgs final : PluginArgs {
  FitScoring scoring;
  // Extended resources, or groups of them ("example.com"), that other components handle.
  std::vector<std::string> ignored_resources;
  std::vector<std::string> ignored_groups;

  static PluginArgsPtr Read(Fields& fields, const FeatureGates& gates);
  void Write(api::Draft& args) const override;
};

// Accepted as long as they match what the plugin does anyway.
struct NodeResourcesBalancedArgs final : PluginArgs {
  static PluginArgsPtr Read(Fields& fields, const FeatureGates& gates);
  void Write(api::Draft& args) const override;
};

}  // namespace drakkar::scheduler
