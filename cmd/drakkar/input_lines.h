#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/env/descriptor_watch.h"
#include "base/exec/uv_loop.h"

namespace drakkar::cmd {

// Lines of standard input (a pipe or a terminal), as they come, on a loop. For programs that drive
// a part of ours. An input that cannot be waited for, such as /dev/null, gives no lines.
class InputLines {
 public:
  InputLines(UvLoop& loop, std::function<void(const std::string& line)> on_line);
  // No line is given afterwards.
  ~InputLines();

 private:
  void OnReadable();

  const std::function<void(const std::string&)> on_line_;
  std::string pending_;
  int flags_ = -1;  // of the descriptor, before it was watched
  std::unique_ptr<DescriptorWatch> watch_;
};

}  // namespace drakkar::cmd
