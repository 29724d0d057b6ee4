#include <vector>

#include "net/socket/socket_node.h"

namespace drakkar::net {

struct FlushQueue::Node {
  uv_prepare_t prepare;
  uv_idle_t idle;  // active while work is left, so that the loop does not wait
  int open_handles = 2;
  std::vector<std::shared_ptr<Flushable>> items;
  std::vector<std::shared_ptr<Flushable>> running;

  static void OnPrepare(uv_prepare_t* handle) {
    auto* self = static_cast<Node*>(handle->data);
    self->running.swap(self->items);
    for (std::shared_ptr<Flushable>& item : self->running) item->FlushOutput();
    self->running.clear();
    if (uv_is_closing(reinterpret_cast<uv_handle_t*>(handle))) return;
    if (self->items.empty()) {
      uv_prepare_stop(&self->prepare);
      uv_idle_stop(&self->idle);
    } else {
      uv_idle_start(&self->idle, [](uv_idle_t*) {});
    }
  }

  static void OnClose(uv_handle_t* handle) {
    auto* self = static_cast<Node*>(handle->data);
    if (--self->open_handles == 0) delete self;
  }
};

FlushQueue::FlushQueue(UvLoop& loop) : node_(new Node) {
  CHECK(uv_prepare_init(loop.native(), &node_->prepare) == 0);
  CHECK(uv_idle_init(loop.native(), &node_->idle) == 0);
  node_->prepare.data = node_;
  node_->idle.data = node_;
}

FlushQueue::~FlushQueue() {
  node_->items.clear();
  uv_close(reinterpret_cast<uv_handle_t*>(&node_->prepare), &Node::OnClose);
  uv_close(reinterpret_cast<uv_handle_t*>(&node_->idle), &Node::OnClose);
}

void FlushQueue::Add(std::shared_ptr<Flushable> item) {
  if (node_->items.empty()) uv_prepare_start(&node_->prepare, &Node::OnPrepare);
  node_->items.push_back(std::move(item));
}

}  // namespace drakkar::net
