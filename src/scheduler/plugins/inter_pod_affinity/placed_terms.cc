#include "scheduler/plugins/inter_pod_affinity/placed_terms.h"

#include "base/text/text.h"

namespace drakkar::scheduler {

void PlacedTerms::Update() {
  if (version_ == placements_.affinity_version()) return;
  const std::vector<std::uint64_t>& versions = placements_.affinity_versions();
  for (NodeIndex node = 0; node < versions.size(); ++node) {
    if (versions[node] <= version_) continue;
    Clear(node);
    for (const PodInfoPtr& pod : placements_.PodsOn(node)) {
      if (!pod->has_pod_affinity) continue;
      const Result<AffinityTerms> terms = ReadAffinityTerms(*pod);
      if (!terms.ok()) continue;  // the server admits no such pod
      for (const AffinityTerm& each : terms->affinity) Add(node, Kind::kAffinity, each, 0);
      for (const AffinityTerm& each : terms->anti_affinity) Add(node, Kind::kAntiAffinity, each, 0);
      for (const AffinityTerms::Preferred& each : terms->preferred) {
        Add(node, Kind::kPreferred, each.term, each.weight);
      }
    }
  }
  version_ = placements_.affinity_version();
}

void PlacedTerms::Add(NodeIndex node, Kind kind, const AffinityTerm& term, std::int64_t weight) {
  std::string key = StrCat(static_cast<int>(kind), " ", weight, " ", term.Text());
  const auto [at, is_new] = entries_.try_emplace(key);
  Entry& entry = at->second;
  if (is_new) {
    entry.kind = kind;
    entry.term = term;
    entry.weight = weight;
    entry.listed_in.assign(term.namespaces.begin(), term.namespaces.end());
    if (!term.namespace_selector.matches_nothing()) entry.listed_in = {""};
    for (const std::string& ns : entry.listed_in) by_namespace_[ns][key] = &entry;
  }
  ++entry.pods[node];
  of_node_[node].push_back(std::move(key));
}

void PlacedTerms::Clear(NodeIndex node) {
  const auto listed = of_node_.find(node);
  if (listed == of_node_.end()) return;
  for (const std::string& key : listed->second) {
    const auto found = entries_.find(key);
    Entry& entry = found->second;
    if (const auto pods = entry.pods.find(node); --pods->second == 0) entry.pods.erase(pods);
    if (!entry.pods.empty()) continue;
    for (const std::string& ns : entry.listed_in) {
      const auto names = by_namespace_.find(ns);
      names->second.erase(key);
      if (names->second.empty()) by_namespace_.erase(names);
    }
    entries_.erase(found);
  }
  of_node_.erase(listed);
}

void PlacedTerms::ForEachMatching(const api::Object& pod, const NamespaceLabels& namespaces,
                                  const std::function<void(const Entry&)>& visit) const {
  for (const std::string_view ns : {pod.namespace_(), std::string_view()}) {
    const auto found = by_namespace_.find(ns);
    if (found == by_namespace_.end()) continue;
    for (const auto& [key, entry] : found->second) {
      if (entry->term.Matches(pod, namespaces)) visit(*entry);
    }
  }
}

}  // namespace drakkar::scheduler
