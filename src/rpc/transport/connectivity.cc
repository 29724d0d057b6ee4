#include "rpc/transport/connectivity.h"

#include <grpc/support/time.h>
#include <grpcpp/channel.h>
#include <grpcpp/completion_queue.h>

#include <utility>

#include "base/exec/worker_pool.h"
#include "base/result/check.h"

namespace drakkar::rpc::internal {
namespace {

// One watched channel: the tag that travels through the queue. It holds the channel weakly, because
// destroying the channel is what completes the last wait.
class Watch {
 public:
  Watch(const std::shared_ptr<grpc::Channel>& channel, std::function<void(bool)> report)
      : channel_(channel), report_(std::move(report)) {}

  // Reports a change and waits for the next one; false when the channel is gone.
  bool Step(grpc::CompletionQueue& queue) {
    const std::shared_ptr<grpc::Channel> channel = channel_.lock();
    if (channel == nullptr) return false;
    const grpc_connectivity_state state = channel->GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_SHUTDOWN) return false;
    // A connection that was lost and made again between two looks never shows as "not ready" here,
    // but the watch below starts from the state just read, so no lasting state is missed.
    const bool connected = state == GRPC_CHANNEL_READY;
    if (connected != connected_) {
      connected_ = connected;
      report_(connected);
    }
    channel->NotifyOnStateChange(state, gpr_inf_future(GPR_CLOCK_MONOTONIC), &queue, this);
    return true;
  }

 private:
  std::weak_ptr<grpc::Channel> channel_;
  std::function<void(bool)> report_;
  bool connected_ = false;
};

class Monitor {
 public:
  Monitor() : thread_(1, 1) {
    CHECK(thread_.Run([this] {
      void* tag = nullptr;
      bool ok = false;
      while (queue_.Next(&tag, &ok)) Continue(std::unique_ptr<Watch>(static_cast<Watch*>(tag)));
    }));
  }

  void Continue(std::unique_ptr<Watch> watch) {
    // The queue owns the watch while it waits.
    Watch* waiting = watch.release();
    if (!waiting->Step(queue_)) delete waiting;
  }

 private:
  grpc::CompletionQueue queue_;
  WorkerPool thread_;
};

// Never destroyed: its thread would have to outwait every channel that is being torn down.
Monitor& SharedMonitor() {
  static Monitor& monitor = *new Monitor;
  return monitor;
}

}  // namespace

void KeepConnected(const std::shared_ptr<grpc::Channel>& channel,
                   std::function<void(bool connected)> report) {
  SharedMonitor().Continue(std::make_unique<Watch>(channel, std::move(report)));
}

}  // namespace drakkar::rpc::internal
