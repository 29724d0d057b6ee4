#pragma once

namespace drakkar::internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
}  // namespace drakkar::internal

// For bugs, not for input: aborts the process with file, line and condition, in release builds too.
// Never use it for anything that a client, file, driver or the kernel can cause.
#define CHECK(condition)                             \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::drakkar::internal::CheckFailed(__FILE__, __LINE__, #condition))
