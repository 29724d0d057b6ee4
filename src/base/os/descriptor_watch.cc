#include "base/os/descriptor_watch.h"

#include <uv.h>

#include "base/exec/uv_loop.h"

namespace drakkar {
namespace {

// libuv frees a handle only after its close callback, so the node outlives the C++ handle.
struct PollNode {
  uv_poll_t poll{};
  std::function<void()> on_event;
  bool closed = false;
  bool running = false;

  static void OnEvent(uv_poll_t* handle, int, int) {
    auto* node = static_cast<PollNode*>(handle->data);
    if (node->closed) return;
    node->running = true;
    node->on_event();
    node->running = false;
    // The callback may have destroyed the watch; release its captures only now.
    if (node->closed) node->on_event = nullptr;
  }
  static void OnClose(uv_handle_t* handle) { delete static_cast<PollNode*>(handle->data); }
};

class UvDescriptorWatch final : public DescriptorWatch {
 public:
  explicit UvDescriptorWatch(PollNode* node) : node_(node) {}
  ~UvDescriptorWatch() override {
    node_->closed = true;
    if (!node_->running) node_->on_event = nullptr;
    uv_close(reinterpret_cast<uv_handle_t*>(&node_->poll), &PollNode::OnClose);
  }

 private:
  PollNode* node_;
};

std::unique_ptr<DescriptorWatch> Watch(UvLoop& loop, int descriptor, int events,
                                       std::function<void()> on_event) {
  loop.AssertInLoop();
  auto node = std::make_unique<PollNode>();
  if (uv_poll_init(loop.native(), &node->poll, descriptor) != 0) return nullptr;
  node->poll.data = node.get();
  node->on_event = std::move(on_event);
  PollNode* raw = node.release();  // OnClose frees it
  auto watch = std::make_unique<UvDescriptorWatch>(raw);
  if (uv_poll_start(&raw->poll, events, &PollNode::OnEvent) != 0) {
    return nullptr;
  }
  return watch;
}

}  // namespace

std::unique_ptr<DescriptorWatch> WatchReadable(UvLoop& loop, int descriptor,
                                               std::function<void()> on_readable) {
  return Watch(loop, descriptor, UV_READABLE | UV_DISCONNECT, std::move(on_readable));
}

std::unique_ptr<DescriptorWatch> WatchWritable(UvLoop& loop, int descriptor,
                                               std::function<void()> on_writable) {
  return Watch(loop, descriptor, UV_WRITABLE, std::move(on_writable));
}

}  // namespace drakkar
