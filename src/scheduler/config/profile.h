#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/tree/value.h"
#include "base/env/clock.h"

namespace drakkar::scheduler {

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

// What one profile does with a plugin; see Point in framework/plugin.h for the bits.
struct PluginChoice {
  std::uint16_t points = 0xffff;        // those it takes part in, of those it has
  std::int64_t weight = 0;              // of its score; 0: the plugin's default
  std::map<std::uint16_t, int> places;  // by point: its place in the order; empty: ours
  bool operator==(const PluginChoice&) const = default;
};

// How pods with one spec.schedulerName are scheduled. The defaults are Kubernetes'.
struct ProfileConfig {
  std::string name = "default-scheduler";
  std::map<std::string, PluginChoice, std::less<>> plugins;  // by name; not there: as it is
  Duration filter_timeout = std::chrono::seconds(10);        // zero: none
  Duration binding_timeout = std::chrono::minutes(10);
  FitScoring fit;
  // Of NodeResourcesFit: extended resources (or their groups, "example.com") that others look
  // after.
  std::vector<std::string> ignored_resources;
  std::vector<std::string> ignored_groups;
  // Of NodeAffinity: a NodeAffinity that every pod of the profile has besides its own; null: none.
  api::TreePtr added_affinity;
  int percentage_of_nodes_to_score = 0;  // 0: by the number of nodes
};

}  // namespace drakkar::scheduler
