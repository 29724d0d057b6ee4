#pragma once

#include <string>

namespace drakkar::node {

// Makes one system call of this thread fail with EIO. Works in binaries that compile this source
// file and redirect the calls to it (node_runtime_syscalls_test in CMakeLists.txt).
class FailingSyscalls {
 public:
  // From now on until destroyed; the n-th call fails (0 = the next).
  explicit FailingSyscalls(int calls_from_now);
  ~FailingSyscalls();

  static std::string failed();  // the call that failed in the newest instance; empty: none
};

}  // namespace drakkar::node
