#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace drakkar::scheduler {

// A plugin's index in the registry.
using PluginId = std::uint8_t;
using PluginSet = std::uint32_t;
constexpr PluginSet OnlyPlugin(PluginId id) {
  return PluginSet{1} << id;
}

// Why a pod fits on no node: how many nodes were rejected for each reason, and by which plugins.
class Diagnosis {
 public:
  void Count(std::string_view reason, std::size_t nodes = 1);
  // A reason that applies to the pod as a whole; replaces the counts.
  void SetForAllNodes(std::string reason) { for_all_nodes_ = std::move(reason); }
  void SetPostFilterMessage(std::string message) { post_filter_ = std::move(message); }
  // True if PostFilter has taken an action.
  bool has_post_filter_message() const { return !post_filter_.empty(); }

  // "0/5 nodes are available: 3 Insufficient cpu, 2 node(s) were unschedulable."
  std::string Message(std::size_t node_count) const;

  PluginSet rejected_by = 0;
  const std::map<std::string, std::size_t, std::less<>>& reasons() const { return reasons_; }

 private:
  std::map<std::string, std::size_t, std::less<>> reasons_;
  std::string for_all_nodes_;
  std::string post_filter_;
};

}  // namespace drakkar::scheduler
