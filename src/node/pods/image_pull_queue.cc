#include "node/pods/image_pull_queue.h"

#include <utility>

namespace drakkar::node {

ImagePullQueue::ImagePullQueue(EventLoop& loop, Runtime& runtime, PullLimits limits)
    : loop_(loop), runtime_(runtime), limits_(limits) {
  if (limits.per_second > 0) rate_.emplace(limits.per_second, limits.burst);
}

void ImagePullQueue::Pull(PullRequest request, RuntimeCallback<Image> done) {
  waiting_.push_back({std::move(request), std::move(done)});
  StartNext();
}

void ImagePullQueue::StartNext() {
  while (!waiting_.empty() && (limits_.max_parallel == 0 || in_flight_ < limits_.max_parallel)) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    auto shared = std::make_shared<RuntimeCallback<Image>>(std::move(next.done));
    if (rate_ && !rate_->Take(loop_.clock().Monotonic())) {
      loop_.Post(lifetime_.Guard([shared] {
        (*shared)(Error{ErrorCode::kResourceExhausted, "pull QPS exceeded"});
      }));
      continue;
    }
    ++in_flight_;
    runtime_.PullImage(std::move(next.request),
                       lifetime_.Guard([this, shared](Result<Image> pulled) {
                         --in_flight_;
                         StartNext();
                         (*shared)(std::move(pulled));
                       }));
  }
}

}  // namespace drakkar::node
