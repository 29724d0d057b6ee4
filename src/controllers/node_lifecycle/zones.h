#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "api/meta/object.h"
#include "base/env/clock.h"

namespace drakkar::controllers {

// Failure zones, and how fast nodes of each may be evicted. If many nodes of a zone stop responding
// at once, the network or the control plane is a more likely cause than the nodes, and evicting
// their pods would only make things worse.
//
// One node per kEvictionInterval and zone; ten times slower in a zone in which kThreshold of the
// nodes are not ready (not at all if the zone is small); none while no node of the cluster is
// ready. Pure, without a clock.
class Zones {
 public:
  static constexpr Duration kEvictionInterval = std::chrono::seconds(10);
  static constexpr Duration kSlowEvictionInterval = std::chrono::seconds(100);
  static constexpr double kThreshold = 0.55;
  static constexpr int kLargeZone = 50;

  // Counts all nodes from scratch. Call Count for each node between Begin and End.
  void Begin();
  void Count(const api::Object& node);
  // Whether no node is ready, and whether that was so at the previous count.
  struct Change {
    bool all_down = false;
    bool were_all_down = false;
  };
  Change End();

  bool all_down() const { return all_down_; }
  // Whether the last count found the node not ready. Only then was its eviction considered together
  // with the state of all others.
  bool IsCountedDown(std::string_view node) const { return down_.contains(node); }
  // How long the next node of this zone must wait. Zero: evict it now, and call Evicted. Max: until
  // the zone recovers.
  Duration UntilEviction(const api::Object& node, MonotonicTime now) const;
  void Evicted(const api::Object& node, MonotonicTime now);

  static std::string KeyOf(const api::Object& node);

 private:
  struct Zone {
    int ready = 0;
    int not_ready = 0;
    MonotonicTime next{};  // the earliest eviction
  };
  static Duration IntervalOf(const Zone& zone);

  std::map<std::string, Zone> zones_;
  std::set<std::string, std::less<>> down_;  // nodes
  bool all_down_ = false;
};

}  // namespace drakkar::controllers
