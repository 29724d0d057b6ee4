#include "scheduler/framework/framework.h"

#include <algorithm>

#include "base/result/check.h"
#include "scheduler/framework/metrics.h"

namespace drakkar::scheduler {
namespace {

constexpr std::size_t kScoreAllUpTo = 100;
constexpr std::size_t kLeastPercentage = 5;
constexpr std::uint64_t kMeasureEvery = 10;

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kSuccess:
      return "Success";
    case Code::kUnschedulable:
      return "Unschedulable";
    case Code::kUnresolvable:
      return "UnschedulableAndUnresolvable";
    case Code::kError:
      return "Error";
    case Code::kSkip:
      return "Skip";
  }
  return "";
}

}  // namespace

Framework::Framework(EventLoop& loop, const NodeTable& nodes,
                     std::span<const std::unique_ptr<Plugin>> plugins, SchedulerMetrics* metrics,
                     int percentage_of_nodes_to_score)
    : loop_(loop),
      nodes_(nodes),
      metrics_(metrics),
      percentage_of_nodes_to_score_(percentage_of_nodes_to_score) {
  const auto collect = [&](Point point, std::vector<Plugin*>& list) {
    for (const auto& plugin : plugins) {
      if (plugin->Has(point)) list.push_back(plugin.get());
    }
    std::stable_sort(list.begin(), list.end(), [&](const Plugin* a, const Plugin* b) {
      return a->PlaceAt(point) < b->PlaceAt(point);
    });
  };
  collect(Point::kPreFilter, pre_filter_);
  collect(Point::kFilter, filter_);
  collect(Point::kPostFilter, post_filter_);
  collect(Point::kPrefer, prefer_);
  collect(Point::kScore, score_);
  collect(Point::kReserve, reserve_);
  collect(Point::kPreBind, pre_bind_);
  collect(Point::kBind, bind_);
  before_.resize(filter_.size());
}

std::size_t Framework::NodesToScore(std::size_t node_count, int wanted_percentage) {
  if (node_count <= kScoreAllUpTo) return node_count;
  const std::size_t less = node_count / 125;
  std::size_t percentage = less + kLeastPercentage >= 50 ? kLeastPercentage : 50 - less;
  if (wanted_percentage > 0) percentage = static_cast<std::size_t>(wanted_percentage);
  return std::max(kScoreAllUpTo, node_count * percentage / 100);
}

bool Framework::IsMeasured() const {
  return metrics_ != nullptr && cycles_ % kMeasureEvery == 0;
}

template <typename Run>
bool Framework::MeasuredPoint(std::string_view point, const Decision& decision, Run run) {
  if (!IsMeasured()) return run();
  const MonotonicTime start = loop_.clock().Monotonic();
  const bool goes_on = run();
  metrics_->ObservePoint(point, CodeName(goes_on ? Code::kSuccess : decision.status.code),
                         loop_.clock().Monotonic() - start);
  return goes_on;
}

StatusCallback Framework::MeasuredCallback(std::string_view point, StatusCallback done) {
  if (!IsMeasured()) return done;
  return [this, point, start = loop_.clock().Monotonic(), done = std::move(done)](Status status) {
    metrics_->ObservePoint(point, CodeName(status.code), loop_.clock().Monotonic() - start);
    done(std::move(status));
  };
}

template <typename Run>
Status Framework::Measured(const Plugin& plugin, std::string_view point, Run run) {
  if (!IsMeasured()) return run();
  const MonotonicTime start = loop_.clock().Monotonic();
  Status status = run();
  metrics_->ObservePlugin(plugin.name(), point, CodeName(status.code),
                          loop_.clock().Monotonic() - start);
  return status;
}

Decision Framework::Decide(Cycle& cycle, NodeIndex preferred_node) {
  ++cycles_;
  Decision decision;
  if (!MeasuredPoint("PreFilter", decision, [&] { return RunPreFilter(cycle, decision); })) {
    return decision;
  }
  if (!MeasuredPoint("Filter", decision, [&] { return RunFilter(cycle, decision); })) {
    return decision;
  }
  for (Plugin* plugin : prefer_) {
    if (IsAsked(*plugin, cycle)) plugin->Prefer(cycle, left_);
  }
  if (left_.Contains(preferred_node)) {
    decision.node = preferred_node;
    decision.feasible_nodes = 1;
    return decision;
  }
  MeasuredPoint("Score", decision, [&] {
    decision.node = Choose(cycle);
    return true;
  });
  decision.feasible_nodes = chosen_.size();
  return decision;
}

bool Framework::RunPreFilter(Cycle& cycle, Decision& decision) {
  for (Plugin* plugin : pre_filter_) {
    Status status = Measured(*plugin, "PreFilter", [&] { return plugin->PreFilter(cycle); });
    if (status.ok()) continue;
    if (status.IsSkip()) {
      cycle.skipped |= OnlyPlugin(plugin->id());
      continue;
    }
    decision.diagnosis.rejected_by |= OnlyPlugin(plugin->id());
    decision.diagnosis.SetForAllNodes(status.Message());
    decision.status = std::move(status);
    return false;
  }
  return true;
}

bool Framework::RunFilter(Cycle& cycle, Decision& decision) {
  left_ = nodes_.known();
  for (std::size_t i = 0; i < filter_.size(); ++i) {
    Plugin* plugin = filter_[i];
    before_[i] = left_;
    if (!IsAsked(*plugin, cycle)) continue;
    Status status = Measured(*plugin, "Filter", [&] { return plugin->Filter(cycle, left_); });
    if (!status.ok()) {
      decision.status = std::move(status);
      return false;
    }
    if (left_.IsEmpty()) {
      Explain(cycle, i, decision);
      return false;
    }
  }
  return true;
}

void Framework::Explain(Cycle& cycle, std::size_t last, Decision& decision) {
  Diagnosis& diagnosis = decision.diagnosis;
  if (nodes_.node_count() == 0) {
    // Any filter may reject the first node that is added.
    for (const Plugin* plugin : filter_) diagnosis.rejected_by |= OnlyPlugin(plugin->id());
  }
  cycle.resolvable.Resize(nodes_.size());
  decision.status.code = nodes_.node_count() == 0 ? Code::kUnschedulable : Code::kUnresolvable;
  for (std::size_t i = 0; i <= last; ++i) {
    NodeSet rejected = before_[i];
    rejected.RemoveAll(i == last ? left_ : before_[i + 1]);
    if (rejected.IsEmpty()) continue;
    diagnosis.rejected_by |= OnlyPlugin(filter_[i]->id());
    // One node that could become feasible is enough.
    if (filter_[i]->refusal() == Code::kUnschedulable) {
      decision.status.code = Code::kUnschedulable;
      cycle.resolvable.AddAll(rejected);
    }
    filter_[i]->Explain(cycle, rejected, diagnosis);
  }
  MeasuredPoint("PostFilter", decision, [&] {
    for (Plugin* plugin : post_filter_) {
      if (!IsAsked(*plugin, cycle)) continue;
      Status status = Measured(*plugin, "PostFilter", [&] { return plugin->PostFilter(cycle); });
      if (status.reasons.empty()) continue;
      // It has acted, so the outcome must be known before another plugin acts.
      diagnosis.SetPostFilterMessage(status.Message());
      break;
    }
    return false;
  });
}

Framework::Survey Framework::Look(Cycle& cycle) {
  Survey survey;
  Decision decision;
  if (!RunPreFilter(cycle, decision)) {
    survey.status = std::move(decision.status);
    return survey;
  }
  NodeSet accepted = nodes_.known();  // by all filters so far
  for (Plugin* plugin : filter_) {
    if (!IsAsked(*plugin, cycle)) continue;
    NodeSet rejected = nodes_.known();
    NodeSet left = rejected;
    survey.status = plugin->Filter(cycle, left);
    if (!survey.status.ok()) {
      // An attempt does not get to nodes that an earlier filter rejects, so their errors do not
      // count.
      rejected = left = accepted;
      survey.status = plugin->Filter(cycle, left);
      if (!survey.status.ok()) return survey;
    }
    accepted.IntersectWith(left);
    rejected.RemoveAll(left);
    rejected.ForEach([&](NodeIndex node) {
      NodeSet only = rejected;
      only.Clear();
      only.Add(node);
      Diagnosis diagnosis;
      plugin->Explain(cycle, only, diagnosis);
      Refusal& refusal = survey.refusals[node].emplace_back(Refusal{plugin, {}});
      for (const auto& [reason, count] : diagnosis.reasons()) refusal.reasons.push_back(reason);
    });
  }
  for (Plugin* plugin : prefer_) {
    if (!accepted.IsEmpty() && IsAsked(*plugin, cycle)) plugin->Prefer(cycle, accepted);
  }
  survey.preferred = std::move(accepted);
  return survey;
}

bool Framework::FitsOn(const PodInfoPtr& pod, NodeIndex node) {
  Cycle trial;
  trial.pod = pod;
  trial.started = loop_.clock().Monotonic();
  for (Plugin* plugin : pre_filter_) {
    const Status status = plugin->PreFilter(trial);
    if (status.IsSkip()) trial.skipped |= OnlyPlugin(plugin->id());
    if (!status.ok() && !status.IsSkip()) return false;
  }
  NodeSet left;
  left.Resize(nodes_.size());
  left.Add(node);
  for (Plugin* plugin : filter_) {
    if (!IsAsked(*plugin, trial)) continue;
    if (!plugin->Filter(trial, left).ok() || left.IsEmpty()) return false;
  }
  return true;
}

NodeIndex Framework::Choose(Cycle& cycle) {
  const std::size_t enough = NodesToScore(nodes_.node_count(), percentage_of_nodes_to_score_);
  chosen_.clear();
  NodeIndex at = left_.NextFrom(next_start_);
  const NodeIndex start = at == kNoNode ? left_.NextFrom(0) : at;
  at = start;
  while (chosen_.size() < enough) {
    chosen_.push_back(at);
    at = left_.NextFrom(at + 1);
    if (at == kNoNode) at = left_.NextFrom(0);
    if (at == start) break;
  }
  next_start_ = chosen_.back() + 1;
  if (chosen_.size() == 1) return chosen_[0];
  totals_.assign(chosen_.size(), 0);
  points_.resize(chosen_.size());
  for (Plugin* plugin : score_) {
    if (!IsAsked(*plugin, cycle)) continue;
    bool differs = false;
    (void)Measured(*plugin, "Score", [&] {
      differs = plugin->Score(cycle, chosen_, points_);
      return Status::Success();
    });
    if (!differs) continue;
    for (std::size_t i = 0; i < totals_.size(); ++i) totals_[i] += points_[i] * plugin->weight();
  }
  const auto best = std::max_element(totals_.begin(), totals_.end());
  return chosen_[static_cast<std::size_t>(best - totals_.begin())];
}

Status Framework::Reserve(Cycle& cycle) {
  Decision decision;
  MeasuredPoint("Reserve", decision, [&] {
    decision.status = RunReserve(cycle);
    return decision.status.ok();
  });
  return decision.status;
}

Status Framework::RunReserve(Cycle& cycle) {
  for (Plugin* plugin : reserve_) {
    if (!IsAsked(*plugin, cycle)) continue;
    Status status = plugin->Reserve(cycle);
    if (status.ok()) continue;
    Unreserve(cycle);
    return status;
  }
  return Status::Success();
}

void Framework::Unreserve(Cycle& cycle) {
  for (auto plugin = reserve_.rbegin(); plugin != reserve_.rend(); ++plugin) {
    if (IsAsked(**plugin, cycle)) (*plugin)->Unreserve(cycle);
  }
}

void Framework::PreBind(CyclePtr cycle, StatusCallback done) {
  PreBindFrom(0, std::move(cycle), MeasuredCallback("PreBind", std::move(done)));
}

void Framework::PreBindFrom(std::size_t at, CyclePtr cycle, StatusCallback done) {
  while (at < pre_bind_.size() && !IsAsked(*pre_bind_[at], *cycle)) ++at;
  if (at == pre_bind_.size()) {
    done(Status::Success());
    return;
  }
  pre_bind_[at]->PreBind(cycle, [this, at, cycle, done = std::move(done)](Status status) mutable {
    if (!status.ok() && !status.IsSkip()) {
      done(std::move(status));
      return;
    }
    PreBindFrom(at + 1, std::move(cycle), std::move(done));
  });
}

void Framework::Cancel(Cycle& cycle) {
  for (Plugin* plugin : pre_bind_) {
    if (IsAsked(*plugin, cycle)) plugin->Cancel(cycle);
  }
}

void Framework::OnNodeLost(Cycle& cycle, const std::string& why) {
  for (Plugin* plugin : pre_bind_) {
    if (IsAsked(*plugin, cycle)) plugin->OnNodeLost(cycle, why);
  }
}

std::string Framework::RefusalByTaints(Cycle& cycle, NodeIndex node) {
  for (Plugin* plugin : filter_) {
    if ((plugin->events() & MaskOf(EventKind::kNodeTaint)) == 0) continue;
    if (!IsAsked(*plugin, cycle)) continue;
    NodeSet only = nodes_.known();
    only.Clear();
    only.Add(node);
    const NodeSet before = only;
    if (!plugin->Filter(cycle, only).ok() || !only.IsEmpty()) continue;
    Diagnosis diagnosis;
    plugin->Explain(cycle, before, diagnosis);
    return diagnosis.reasons().empty() ? std::string(plugin->name())
                                       : diagnosis.reasons().begin()->first;
  }
  return {};
}

void Framework::Bind(CyclePtr cycle, StatusCallback done) {
  CHECK(!bind_.empty());
  bind_.front()->Bind(std::move(cycle), MeasuredCallback("Bind", std::move(done)));
}

}  // namespace drakkar::scheduler
