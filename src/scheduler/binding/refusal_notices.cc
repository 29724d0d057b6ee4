#include "scheduler/binding/refusal_notices.h"

#include <algorithm>
#include <utility>

namespace drakkar::scheduler {

void RefusalNotices::Put(PodInfoPtr pod, std::string message) {
  const auto [at, is_new] = ages_.try_emplace(pod->uid, next_age_);
  Notice& notice = by_age_[at->second];
  if (is_new) {
    ++next_age_;
    notice.due = loop_.clock().Monotonic() + kDelay;
  }
  notice.pod = std::move(pod);
  notice.message = std::move(message);
  if (timer_ == nullptr) Arm();
}

void RefusalNotices::Drop(const std::string& pod_uid) {
  if (by_age_.empty()) return;
  const auto found = ages_.find(pod_uid);
  if (found == ages_.end()) return;
  by_age_.erase(found->second);
  ages_.erase(found);
}

void RefusalNotices::Arm() {
  const Duration left = by_age_.begin()->second.due - loop_.clock().Monotonic();
  timer_ = loop_.RunAfter(std::max(left, Duration::zero()), [this] {
    timer_.reset();
    TellDue();
    if (!by_age_.empty()) Arm();
  });
}

void RefusalNotices::TellDue() {
  const MonotonicTime now = loop_.clock().Monotonic();
  while (!by_age_.empty() && by_age_.begin()->second.due <= now) {
    const Notice notice = std::move(by_age_.begin()->second);
    by_age_.erase(by_age_.begin());
    ages_.erase(notice.pod->uid);
    tell_(*notice.pod, notice.message);
  }
}

}  // namespace drakkar::scheduler
