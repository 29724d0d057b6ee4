#pragma once

#include <deque>
#include <optional>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "base/exec/token_bucket.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// By default, images are pulled as soon as a pod needs them.
struct PullLimits {
  std::size_t max_parallel = 0;  // 0: no limit
  double per_second = 0;         // 0: no limit
  double burst = 1;
};

// Pulls images for all pods of the node: at most max_parallel at a time, the others in the order in
// which they were asked for. More per second than the limits allow are refused with
// kResourceExhausted, as by a kubelet, and their containers back off. Waiting pulls are bounded by
// the containers of the node. Loop-bound; `runtime` must outlive it.
class ImagePullQueue {
 public:
  ImagePullQueue(EventLoop& loop, Runtime& runtime, PullLimits limits);

  // `done` runs once, never inside the call, and not after this object is destroyed.
  void Pull(PullRequest request, RuntimeCallback<Image> done);

 private:
  struct Waiting {
    PullRequest request;
    RuntimeCallback<Image> done;
  };
  void StartNext();

  EventLoop& loop_;
  Runtime& runtime_;
  const PullLimits limits_;
  std::optional<TokenBucket> rate_;
  std::size_t in_flight_ = 0;
  std::deque<Waiting> waiting_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
