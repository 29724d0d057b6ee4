#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/cache/placements.h"
#include "scheduler/plugins/inter_pod_affinity/affinity_terms.h"

namespace drakkar::scheduler {

// The terms of the placed pods, each with the nodes on which such pods run. Equal terms share one
// entry, so a thousand replicas cost no more to match than one.
//
// Lives on the scheduler's loop; one entry per distinct term, with a number per node.
class PlacedTerms {
 public:
  enum class Kind : std::uint8_t { kAffinity, kAntiAffinity, kPreferred };
  struct Entry {
    Kind kind = Kind::kAffinity;
    AffinityTerm term;
    std::int64_t weight = 0;             // of kPreferred
    std::map<NodeIndex, int> pods;       // number of pods, by node
    std::vector<std::string> listed_in;  // namespaces, or "" if it selects them by label
  };

  explicit PlacedTerms(const Placements& placements) : placements_(placements) {}

  // Catches up with the placements. Processes only the nodes whose terms may have changed.
  void Update();
  bool empty() const { return entries_.empty(); }
  // Calls `visit` for each entry whose term matches the pod.
  void ForEachMatching(const api::Object& pod, const NamespaceLabels& namespaces,
                       const std::function<void(const Entry&)>& visit) const;

 private:
  void Add(NodeIndex node, Kind kind, const AffinityTerm& term, std::int64_t weight);
  void Clear(NodeIndex node);

  const Placements& placements_;
  std::map<std::string, Entry> entries_;  // by kind, weight and text
  // Entries by namespace; "" has those with a namespace selector.
  std::map<std::string, std::map<std::string, Entry*>, std::less<>> by_namespace_;
  std::map<NodeIndex, std::vector<std::string>> of_node_;  // keys of entries_, with repetitions
  std::uint64_t version_ = 0;
};

}  // namespace drakkar::scheduler
