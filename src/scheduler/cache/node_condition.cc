#include "scheduler/cache/node_condition.h"

#include "api/json/writer.h"
#include "base/text/text.h"
#include "device/from_api.h"

namespace drakkar::scheduler {

using api::Value;

namespace {

Value RequiredAffinity(Value pod_spec) {
  return pod_spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
}

bool IsTrue(const Result<bool>& matches) {
  return matches.ok() && *matches;
}

}  // namespace

bool IsMatch(const device::NodeSelector& selector, Value node) {
  return IsTrue(device::Matches(selector, node));
}

bool IsMatch(const device::NodeSelectorTerm& term, Value node) {
  return IsTrue(device::Matches(term, node));
}

NodeCondition NodeCondition::Read(Value spec) {
  NodeCondition read;
  for (const auto& [k, name, value] : spec["nodeSelector"].members()) {
    if (!read.labels) read.labels.emplace();
    read.labels->match_expressions.push_back({std::string(name), "In", {std::string(value.str())}});
  }
  if (const Value required = RequiredAffinity(spec); required.has_value()) {
    Result<device::NodeSelector> selector = device::NodeSelectorFromApi(required);
    read.affinity = selector.ok() ? *std::move(selector) : device::NodeSelector();
  }
  return read;
}

bool NodeCondition::Matches(Value node) const {
  return (!labels || IsMatch(*labels, node)) && (!affinity || IsMatch(*affinity, node));
}

const NodeSet* NodeMatches::FindFor(Value spec) {
  const Value selector = spec["nodeSelector"];
  const Value required = RequiredAffinity(spec);
  if (selector.empty() && !required.has_value()) return nullptr;
  std::string text = selector.exists() ? api::WriteJson(selector) : std::string();
  if (required.has_value()) text += StrCat("\n", api::WriteJson(required));
  return &Find(text, [&]() -> Matcher {
    return [condition = NodeCondition::Read(spec)](Value node) { return condition.Matches(node); };
  });
}

const NodeSet& NodeMatches::Find(const std::string& text, const std::function<Matcher()>& make) {
  auto found = entries_.find(text);
  if (found == entries_.end()) {
    if (entries_.size() >= kMaxRemembered) entries_.clear();
    found = entries_.emplace(text, Entry{.matcher = make()}).first;
  }
  Entry& entry = found->second;
  entry.matching.Resize(nodes_.size());
  if (entry.version == nodes_.label_version()) return entry.matching;
  const std::vector<std::uint64_t>& versions = nodes_.label_versions();
  for (NodeIndex node = 0; node < versions.size(); ++node) {
    if (versions[node] <= entry.version) continue;
    entry.matching.Put(node,
                       nodes_.known().Contains(node) && entry.matcher(nodes_.object(node)->root()));
  }
  entry.version = nodes_.label_version();
  return entry.matching;
}

}  // namespace drakkar::scheduler
