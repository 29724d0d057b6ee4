#pragma once

namespace drakkar::internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
}  // namespace drakkar::internal

// A bug, not an input: stops the process with the place and the condition, in release builds too.
// Never about anything that a client, a file, a driver or the kernel can send.
#define CHECK(condition)                             \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::drakkar::internal::CheckFailed(__FILE__, __LINE__, #condition))
