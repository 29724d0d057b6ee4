#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/exec/uv_loop.h"
#include "base/os/descriptor_watch.h"

namespace drakkar::cmd {

// Delivers lines of standard input (a pipe or a terminal) on a loop as they arrive, for programs
// that control one of ours. Input that cannot be polled, such as /dev/null, delivers nothing.
class InputLines {
 public:
  InputLines(UvLoop& loop, std::function<void(const std::string& line)> on_line);
  // Delivers no lines afterwards.
  ~InputLines();

 private:
  void OnReadable();

  const std::function<void(const std::string&)> on_line_;
  std::string pending_;
  int flags_ = -1;  // original flags of the descriptor
  std::unique_ptr<DescriptorWatch> watch_;
};

}  // namespace drakkar::cmd
