#pragma once

#include <string>

namespace drakkar::node {

// System calls of this thread's code, of which one fails with EIO. Works in binaries that have the
// source file among their own and lead these calls to it (node_runtime_syscalls_test in
// CMakeLists.txt).
class FailingSyscalls {
 public:
  // From now on until destroyed; the n-th call fails (0 = the next).
  explicit FailingSyscalls(int calls_from_now);
  ~FailingSyscalls();

  static std::string failed();  // the call that failed since the last was made; empty: none
};

}  // namespace drakkar::node
