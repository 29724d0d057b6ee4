#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "base/exec/uv_loop.h"

namespace drakkar::cmd {

// Lines of standard input, as tasks on a loop. For programs that drive a part of ours.
class InputLines {
 public:
  InputLines(UvLoop& loop, std::function<void(const std::string& line)> on_line);
  // No line is given afterwards.
  ~InputLines();

 private:
  void Read();

  UvLoop& loop_;
  const std::function<void(const std::string&)> on_line_;
  std::atomic<bool> stopped_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  LoopThread thread_;
};

}  // namespace drakkar::cmd
