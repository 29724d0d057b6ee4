#include "node/health/update_channel.h"

#include <utility>

#include "telemetry/metrics/metrics.h"

namespace drakkar::node {

UpdateChannel::UpdateChannel(EventLoop& loop, Metrics* metrics,
                             std::function<void(const std::string&)> consumer)
    : loop_(loop), metrics_(metrics), consumer_(std::move(consumer)) {}

UpdateChannel::~UpdateChannel() = default;

void UpdateChannel::Send(const std::string& source, const std::set<std::string>& pod_uids) {
  loop_.AssertInLoop();
  if (metrics_ != nullptr && !pod_uids.empty()) {
    metrics_
        ->GetCounter("drakkar_node_resource_updates_total",
                     "Pods queued for a resource status update, by source", {{"source", source}})
        .Add(static_cast<double>(pod_uids.size()));
  }
  for (const std::string& uid : pod_uids) Enqueue(uid);
  PostDelivery();
}

void UpdateChannel::Enqueue(const std::string& uid) {
  const auto delivered = delivered_.find(uid);
  if (delivered != delivered_.end() && delivered->second >= kMaxPerWindow) {
    postponed_.insert(uid);
  } else if (queued_.insert(uid).second) {
    queue_.push_back(uid);
  }
}

void UpdateChannel::PostDelivery() {
  if (queue_.empty() || posted_) return;
  posted_ = true;
  loop_.Post(lifetime_.Guard([this] { Deliver(); }));
}

void UpdateChannel::Deliver() {
  posted_ = false;
  for (std::size_t i = 0; i < kMaxPodsPerTurn && !queue_.empty(); ++i) {
    const std::string uid = std::move(queue_.front());
    queue_.pop_front();
    queued_.erase(uid);  // queued again if it changes from here on
    ++delivered_[uid];
    consumer_(uid);
  }
  if (!window_) window_ = loop_.RunAfter(kWindow, [this] { EndWindow(); });
  PostDelivery();
}

void UpdateChannel::EndWindow() {
  window_.reset();
  delivered_.clear();
  for (const std::string& uid : std::exchange(postponed_, {})) Enqueue(uid);
  PostDelivery();
}

}  // namespace drakkar::node
