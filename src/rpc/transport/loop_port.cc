#include "rpc/transport/loop_port.h"

#include <utility>

namespace drakkar::rpc {

void LoopPort::Post(Task task) {
  // The parameter outlives the lock, so a dropped task is destroyed without holding it.
  std::lock_guard lock(mutex_);
  if (loop_ != nullptr) loop_->Post(std::move(task));
}

void LoopPort::Close() {
  std::lock_guard lock(mutex_);
  loop_ = nullptr;
}

}  // namespace drakkar::rpc
