#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/label_selector.h"
#include "base/result/result.h"
#include "scheduler/cache/namespace_labels.h"
#include "scheduler/cache/pod_info.h"

namespace drakkar::scheduler {

// One PodAffinityTerm: the pods that it selects, and the node label whose values are the domains in
// which they count.
struct AffinityTerm {
  std::string topology_key;
  api::LabelSelector selector;
  std::set<std::string, std::less<>> namespaces;
  api::LabelSelector namespace_selector = api::LabelSelector::Nothing();

  bool Matches(const api::Object& pod, const NamespaceLabels& all) const;
  // Equal for terms that match the same pods in the same domains.
  std::string Text() const;
};

struct AffinityTerms {
  struct Preferred {
    AffinityTerm term;
    std::int64_t weight = 0;  // negative for anti-affinity
  };
  std::vector<AffinityTerm> affinity;       // required
  std::vector<AffinityTerm> anti_affinity;  // required
  std::vector<Preferred> preferred;
};

// The terms of a pod. A term without namespaces selects from the pod's own namespace. An error for
// pods with more than kMaxAffinityTerms: all other pods are matched with each of them.
inline constexpr std::size_t kMaxAffinityTerms = 64;
Result<AffinityTerms> ReadAffinityTerms(const PodInfo& pod);

}  // namespace drakkar::scheduler
