#include "scheduler/plugins/dynamic_resources/node_verdicts.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/text/text.h"

namespace drakkar::scheduler {

void NodeVerdicts::Search(const allocator::Problem& problem,
                          const allocator::SearchBudget& budget) {
  devices_.allocator().Filter(problem, budget, verdicts_);
  ReadKinds();
}

void NodeVerdicts::Search(std::span<const Part> parts, const allocator::SearchBudget& budget) {
  constexpr std::uint32_t kNone = allocator::Allocator::Verdicts::kNotANode;
  verdicts_.by_node.clear();
  verdicts_.distinct.clear();
  for (const Part& part : parts) {
    if (part.problem != nullptr) {
      devices_.allocator().Filter(*part.problem, budget, part_);
    } else {
      part_.distinct = {{.kind = Verdict::Kind::kFits}};
    }
    // Verdicts that no node of the part has must not count.
    std::vector<std::uint32_t> taken(part_.distinct.size(), kNone);
    part.nodes.ForEach([&](NodeIndex node) {
      const allocator::NodeNumber number = devices_.NumberOf(node);
      const std::uint32_t at = part.problem != nullptr ? part_.by_node[number] : 0;
      if (taken[at] == kNone) {
        taken[at] = static_cast<std::uint32_t>(verdicts_.distinct.size());
        verdicts_.distinct.push_back(part_.distinct[at]);
      }
      if (number >= verdicts_.by_node.size()) verdicts_.by_node.resize(number + 1, kNone);
      verdicts_.by_node[number] = taken[at];
    });
  }
  ReadKinds();
}

void NodeVerdicts::ReadKinds() {
  kinds_.clear();
  for (const Verdict& verdict : verdicts_.distinct) kinds_.push_back(verdict.kind);
}

Status NodeVerdicts::Restrict(NodeSet& nodes) const {
  if (std::all_of(kinds_.begin(), kinds_.end(),
                  [](Verdict::Kind kind) { return kind == Verdict::Kind::kFits; })) {
    return Status::Success();
  }
  for (std::size_t word = 0; word < nodes.word_count(); ++word) {
    std::uint64_t bits = nodes.word(word);
    std::uint64_t kept = bits;
    for (; bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<unsigned>(std::countr_zero(bits));
      const auto node = static_cast<NodeIndex>(word * 64 + bit);
      const std::uint32_t at = IndexOf(node);
      switch (kinds_[at]) {
        case Verdict::Kind::kFits:
          continue;
        case Verdict::Kind::kUnsatisfiable:
          break;
        case Verdict::Kind::kBudgetExceeded:
          return Status::Error(
              StrCat("node ", nodes_.name(node), ": timed out trying to allocate devices"));
        case Verdict::Kind::kFatal:
          return Status::Error(verdicts_.distinct[at].error->message);
      }
      kept &= ~(std::uint64_t{1} << bit);
    }
    nodes.set_word(word, kept);
  }
  return Status::Success();
}

bool NodeVerdicts::AnyFits(const NodeSet& nodes) const {
  bool fits = false;
  nodes.ForEach([&](NodeIndex node) { fits = fits || Of(node).kind == Verdict::Kind::kFits; });
  return fits;
}

bool NodeVerdicts::AnyFitsReady(const NodeSet& nodes) const {
  bool fits = false;
  nodes.ForEach([&](NodeIndex node) {
    fits = fits || (Of(node).kind == Verdict::Kind::kFits && !Of(node).waits);
  });
  return fits;
}

bool NodeVerdicts::AnyWaits() const {
  return std::any_of(verdicts_.distinct.begin(), verdicts_.distinct.end(),
                     [](const Verdict& verdict) { return verdict.waits; });
}

bool NodeVerdicts::PreferReady(NodeSet& nodes) const {
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
  std::int64_t best_ready = kNone;
  std::int64_t best_waiting = kNone;
  nodes.ForEach([&](NodeIndex node) {
    const Verdict& verdict = Of(node);
    std::int64_t& best = verdict.waits ? best_waiting : best_ready;
    best = std::max(best, verdict.score);
  });
  const bool wait = best_waiting > best_ready;
  NodeSet preferred = nodes;
  nodes.ForEach([&](NodeIndex node) {
    const Verdict& verdict = Of(node);
    if (wait ? verdict.score <= best_ready : verdict.waits) preferred.Remove(node);
  });
  nodes = std::move(preferred);
  return wait;
}

bool NodeVerdicts::Score(std::span<const NodeIndex> nodes, std::span<std::int64_t> scores) const {
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  std::int64_t highest = 0;
  for (const Verdict& verdict : verdicts_.distinct) {
    if (verdict.kind != Verdict::Kind::kFits) continue;
    lowest = std::min(lowest, verdict.score);
    highest = std::max(highest, verdict.score);
  }
  if (lowest >= highest) return false;
  for (std::size_t i = 0; i < nodes.size(); ++i) scores[i] = Of(nodes[i]).score * 100 / highest;
  return true;
}

void NodeVerdicts::Explain(const NodeSet& rejected, Diagnosis& diagnosis) const {
  // Count by verdict first: there are few of them, regardless of the number of nodes.
  std::vector<std::size_t> counts(verdicts_.distinct.size(), 0);
  rejected.ForEach([&](NodeIndex node) { ++counts[IndexOf(node)]; });
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) diagnosis.Count(verdicts_.distinct[i].why.message, counts[i]);
  }
}

}  // namespace drakkar::scheduler
