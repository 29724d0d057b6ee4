#include "base/result/shortage.h"

#include <atomic>
#include <cerrno>

namespace drakkar {
namespace {

std::atomic<ShortageHook> g_hook{nullptr};

}  // namespace

void SetShortageHook(ShortageHook hook) {
  g_hook = hook;
}

void ReportShortage(int error_number) {
  const bool is_shortage =
      error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM;
  if (const ShortageHook hook = g_hook; is_shortage && hook != nullptr) hook(error_number);
}

}  // namespace drakkar
