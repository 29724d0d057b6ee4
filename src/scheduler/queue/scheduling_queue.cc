#include "scheduler/queue/scheduling_queue.h"

#include <algorithm>
#include <utility>

#include "base/result/check.h"
#include "scheduler/framework/metrics.h"

namespace drakkar::scheduler {

SchedulingQueue::SchedulingQueue(Options options) : options_(std::move(options)) {
  for (const auto& plugin : options_.plugins) {
    for (std::size_t kind = 0; kind < interested_.size(); ++kind) {
      if ((plugin->events() & MaskOf(static_cast<EventKind>(kind))) != 0) {
        interested_[kind] |= OnlyPlugin(plugin->id());
      }
    }
  }
}

void SchedulingQueue::Add(PodInfoPtr pod) {
  auto [at, is_new] = entries_.try_emplace(pod->uid);
  if (!is_new) return;
  at->second = std::make_unique<Entry>();
  Entry& entry = *at->second;
  entry.info = std::move(pod);
  entry.sequence = next_sequence_++;
  entry.queued_at = entry.first_queued_at = Now();
  Enter(entry, "PodAdd");
}

void SchedulingQueue::Update(PodInfoPtr pod) {
  const auto found = entries_.find(pod->uid);
  if (found == entries_.end()) {
    Add(std::move(pod));
    return;
  }
  Entry& entry = *found->second;
  const Place place = entry.place;
  if (place == Place::kInFlight) {
    // The current attempt continues with the old version; the next one sees the new one.
    const PodInfoPtr before = std::exchange(entry.info, std::move(pod));
    events_.push_back({EventKind::kTargetPodChange, before->pod, entry.info->pod, {}});
    TrimEvents();
    return;
  }
  const api::ObjectPtr before = entry.info->pod;
  Take(entry);
  entry.info = std::move(pod);
  if (place == Place::kActive) {
    PutActive(entry, "PodUpdate");
    return;
  }
  if (place == Place::kBackoff) {
    PutBackoffOrActive(entry, "PodUpdate");
    return;
  }
  if (entry.gated) {
    Enter(entry, "PodUpdate");
    return;
  }
  const api::Value old_root = before->root();
  const api::Value new_root = entry.info->pod->root();
  const bool changed =
      !api::Equal(old_root["spec"], new_root["spec"]) ||
      !api::Equal(old_root["metadata"]["labels"], new_root["metadata"]["labels"]) ||
      !api::Equal(old_root["status"]["resourceClaimStatuses"],
                  new_root["status"]["resourceClaimStatuses"]);
  if (changed && MayHelp(entry, {EventKind::kTargetPodChange, before, entry.info->pod, {}})) {
    PutBackoffOrActive(entry, "PodUpdate");
  } else {
    PutUnschedulable(entry, {});
  }
}

SchedulingQueue::Standing SchedulingQueue::StandingOf(const std::string& uid) const {
  const auto found = entries_.find(uid);
  if (found == entries_.end()) return {};
  const Entry& entry = *found->second;
  return {.ready = entry.place == Place::kActive,
          .in_flight = entry.place == Place::kInFlight,
          .gated = entry.gated,
          .in_backoff = entry.place == Place::kBackoff,
          .backoff_ends = options_.pauses.EndOf(entry)};
}

void SchedulingQueue::Remove(const std::string& uid) {
  const auto found = entries_.find(uid);
  if (found == entries_.end()) return;
  Entry& entry = *found->second;
  if (entry.place == Place::kInFlight) {
    entry.removed = true;
    return;
  }
  Take(entry);
  entries_.erase(found);
  UpdateGauges();
}

QueuedPod* SchedulingQueue::Pop() {
  QueuedPod* pod = nullptr;
  if (!active_.empty()) {
    pod = active_.PopFirst();
  } else if (!refused_backoff_.empty()) {
    pod = refused_backoff_.PopFirst();
  } else {
    return nullptr;
  }
  Entry& entry = static_cast<Entry&>(*pod);
  entry.place = Place::kInFlight;
  entry.flight_start = first_event_ + events_.size();
  ++flight_starts_[entry.flight_start];
  in_flight_.emplace(entry.info->uid, &entry);
  ++entry.attempts;
  if (!entry.first_attempt_at) entry.first_attempt_at = Now();
  entry.rejected_by = 0;
  entry.pause_ended_by = 0;
  entry.pause_ends_by = MonotonicTime::max();
  UpdateGauges();
  return &entry;
}

void SchedulingQueue::ForgetStart(std::uint64_t start) {
  const auto found = flight_starts_.find(start);
  if (--found->second == 0) flight_starts_.erase(found);
}

void SchedulingQueue::OnBindingBegins(const std::string& uid) {
  const auto found = in_flight_.find(uid);
  if (found == in_flight_.end() || std::exchange(found->second->binding, true)) return;
  ForgetStart(found->second->flight_start);
  TrimEvents();
}

SchedulingQueue::Entry* SchedulingQueue::Land(const std::string& uid) {
  const auto found = in_flight_.find(uid);
  if (found == in_flight_.end()) return nullptr;
  Entry* entry = found->second;
  in_flight_.erase(found);
  if (!std::exchange(entry->binding, false)) ForgetStart(entry->flight_start);
  entry->place = Place::kNowhere;
  if (!entry->removed) return entry;
  entries_.erase(uid);
  TrimEvents();
  UpdateGauges();
  return nullptr;
}

void SchedulingQueue::Done(const std::string& uid) {
  if (Land(uid) == nullptr) return;
  entries_.erase(uid);
  TrimEvents();
  UpdateGauges();
}

void SchedulingQueue::ReturnRefused(const std::string& uid, PluginSet rejected_by) {
  Entry* entry = Land(uid);
  if (entry == nullptr) return;
  entry->rejected_by = rejected_by;
  entry->queued_at = Now();
  ++entry->refusals;
  entry->errors = 0;
  // Events that arrived during the attempt. If some were dropped, assume that they help.
  bool woken = entry->flight_start < first_event_;
  for (std::uint64_t i = std::max(entry->flight_start, first_event_);
       !woken && i < first_event_ + events_.size(); ++i) {
    woken = MayHelp(*entry, events_[static_cast<std::size_t>(i - first_event_)]);
  }
  if (woken) {
    PutBackoffOrActive(*entry, "ScheduleAttemptFailure");
  } else {
    PutUnschedulable(*entry, "ScheduleAttemptFailure");
  }
  TrimEvents();
}

void SchedulingQueue::ReturnFailed(const std::string& uid, Retry retry) {
  Entry* entry = Land(uid);
  if (entry == nullptr) return;
  entry->queued_at = Now();
  entry->pause_ended_by = retry.ended_by;
  switch (retry.when) {
    case Retry::When::kAtOnce:
      entry->errors = 0;
      Enter(*entry, "ScheduleAttemptFailure");
      break;
    case Retry::When::kSoon:
      entry->errors = 1;
      PutBackoffOrActive(*entry, "ScheduleAttemptFailure");
      break;
    case Retry::When::kLater:
      ++entry->errors;
      PutBackoffOrActive(*entry, "ScheduleAttemptFailure");
      break;
  }
  TrimEvents();
}

void SchedulingQueue::CutPauses(const ClusterEvent& event) {
  std::vector<Entry*> concerned;
  for (const auto& [sequence, entry] : cuttable_) {
    if ((entry->pause_ended_by & MaskOf(event.kind)) != 0) concerned.push_back(entry);
  }
  for (Entry* entry : concerned) {
    const MonotonicTime earliest =
        entry->last_cut ? *entry->last_cut + options_.pauses.first : MonotonicTime::min();
    Take(*entry);
    entry->pause_ends_by = std::max(Now(), earliest);
    entry->last_cut = entry->pause_ends_by;
    // Once is enough: the backoff now ends as early as possible.
    entry->pause_ended_by = 0;
    PutBackoffOrActive(*entry, EventName(event.kind));
  }
}

void SchedulingQueue::OnEvent(const ClusterEvent& event) {
  if (!flight_starts_.empty()) {
    events_.push_back(event);
    TrimEvents();
  }
  if (!cuttable_.empty()) CutPauses(event);
  const PluginSet interested = interested_[static_cast<std::size_t>(event.kind)];
  if (interested == 0 || unschedulable_.empty()) return;
  // Freed devices help only pods that were attempted. A pod that lacks its own claim waits for
  // that.
  const bool frees_devices = event.only_claim.empty() && (event.kind == EventKind::kClaimUpdate ||
                                                          event.kind == EventKind::kClaimDelete);
  for (QueuedPod* pod : frees_devices ? unschedulable_.FindTried(interested)
                                      : unschedulable_.Find(interested, event.only_claim)) {
    Entry& entry = static_cast<Entry&>(*pod);
    if (!MayHelp(entry, event)) continue;
    Take(entry);
    if (entry.gated) {
      Enter(entry, EventName(event.kind));
    } else {
      PutBackoffOrActive(entry, EventName(event.kind));
    }
  }
}

const QueuedPod* SchedulingQueue::Find(const std::string& uid) const {
  const auto found = entries_.find(uid);
  return found == entries_.end() ? nullptr : found->second.get();
}

bool SchedulingQueue::MayHelp(const Entry& entry, const ClusterEvent& event) const {
  // A change of one pending pod does not affect another.
  if (event.kind == EventKind::kTargetPodChange && event.after->uid() != entry.info->uid) {
    return false;
  }
  const PluginSet asked = entry.rejected_by & interested_[static_cast<std::size_t>(event.kind)];
  for (const auto& plugin : PluginsOf(entry)) {
    if ((asked & OnlyPlugin(plugin->id())) == 0) continue;
    if (plugin->MayHelp(*entry.info, event)) return true;
  }
  return false;
}

void SchedulingQueue::Take(Entry& entry) {
  switch (entry.place) {
    case Place::kActive:
      active_.Remove(&entry);
      break;
    case Place::kBackoff:
      (entry.in_error_backoff ? failed_backoff_ : refused_backoff_).Remove(&entry);
      cuttable_.erase(entry.sequence);
      break;
    case Place::kUnschedulable:
      unschedulable_.Remove(&entry);
      CountUnschedulable(entry, -1);
      if (entry.gated) --gated_;
      break;
    case Place::kNowhere:
    case Place::kInFlight:
      CHECK(false);
  }
  entry.place = Place::kNowhere;
}

void SchedulingQueue::Enter(Entry& entry, std::string_view event) {
  for (const auto& plugin : PluginsOf(entry)) {
    if (!plugin->Has(Point::kPreEnqueue)) continue;
    if (plugin->PreEnqueue(*entry.info).ok()) continue;
    entry.rejected_by = OnlyPlugin(plugin->id());
    entry.gated = true;
    PutUnschedulable(entry, event);
    return;
  }
  entry.gated = false;
  PutActive(entry, event);
}

void SchedulingQueue::PutActive(Entry& entry, std::string_view event) {
  entry.place = Place::kActive;
  active_.Add(&entry);
  CountIncoming("active", event);
  UpdateGauges();
  if (options_.on_active) options_.on_active();
}

void SchedulingQueue::PutBackoffOrActive(Entry& entry, std::string_view event) {
  if (options_.pauses.EndOf(entry) <= Now()) {
    Enter(entry, event);
    return;
  }
  entry.place = Place::kBackoff;
  entry.in_error_backoff = entry.errors > 0;
  (entry.in_error_backoff ? failed_backoff_ : refused_backoff_).Add(&entry);
  if (entry.in_error_backoff && entry.pause_ended_by != 0) {
    cuttable_.emplace(entry.sequence, &entry);
  }
  CountIncoming("backoff", event);
  UpdateGauges();
  ArmBackoffTimer();
  if (!entry.in_error_backoff && options_.on_active) options_.on_active();
}

void SchedulingQueue::PutUnschedulable(Entry& entry, std::string_view event) {
  entry.place = Place::kUnschedulable;
  unschedulable_.Add(&entry);
  CountUnschedulable(entry, 1);
  if (entry.gated) ++gated_;
  if (!event.empty()) CountIncoming(entry.gated ? "gated" : "unschedulable", event);
  UpdateGauges();
  ArmFlushTimer();
}

void SchedulingQueue::TrimEvents() {
  const std::uint64_t needed =
      flight_starts_.empty() ? first_event_ + events_.size() : flight_starts_.begin()->first;
  while (!events_.empty() && (first_event_ < needed || events_.size() > kMaxInFlightEvents)) {
    events_.pop_front();
    ++first_event_;
  }
}

void SchedulingQueue::ArmBackoffTimer() {
  MonotonicTime next = MonotonicTime::max();
  for (const BackoffPods* pods : {&refused_backoff_, &failed_backoff_}) {
    if (!pods->empty()) next = std::min(next, pods->next_end());
  }
  if (next == MonotonicTime::max()) {
    backoff_timer_.reset();
    return;
  }
  backoff_timer_ = options_.loop.RunAfter(std::max(next - Now(), Duration::zero()), [this] {
    for (BackoffPods* pods : {&refused_backoff_, &failed_backoff_}) {
      while (!pods->empty() && pods->next_end() <= Now()) {
        Entry& entry = static_cast<Entry&>(*pods->PopFirst());
        cuttable_.erase(entry.sequence);
        Enter(entry, "BackoffComplete");
      }
    }
    ArmBackoffTimer();
  });
}

void SchedulingQueue::ArmFlushTimer() {
  if (flush_timer_ != nullptr) return;
  flush_timer_ = options_.loop.RunAfter(kFlushPeriod, [this] {
    flush_timer_.reset();
    for (QueuedPod* pod : unschedulable_.OlderThan(Now() - kLongestWait)) {
      Entry& entry = static_cast<Entry&>(*pod);
      Take(entry);
      PutBackoffOrActive(entry, "UnschedulableTimeout");
    }
    if (!unschedulable_.empty()) ArmFlushTimer();
  });
}

void SchedulingQueue::UpdateGauges() {
  if (options_.metrics == nullptr) return;
  options_.metrics->pending_active->Set(static_cast<double>(active_.size()));
  options_.metrics->pending_backoff->Set(static_cast<double>(backoff_count()));
  options_.metrics->pending_unschedulable->Set(static_cast<double>(unschedulable_count()));
  options_.metrics->pending_gated->Set(static_cast<double>(gated_));
}

void SchedulingQueue::CountUnschedulable(const Entry& entry, int by) {
  SchedulerMetrics* metrics =
      options_.metrics_of ? options_.metrics_of(*entry.info) : options_.metrics;
  if (metrics == nullptr) return;
  for (const auto& plugin : options_.plugins) {
    if ((entry.rejected_by & OnlyPlugin(plugin->id())) == 0) continue;
    metrics->CountUnschedulable(plugin->name(), by);
  }
}

void SchedulingQueue::CountIncoming(std::string_view queue, std::string_view event) {
  if (options_.metrics != nullptr) options_.metrics->CountIncoming(queue, event);
}

}  // namespace drakkar::scheduler
