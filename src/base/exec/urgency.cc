#include "base/exec/urgency.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace drakkar {
namespace {

// The kernel's struct sched_attr: its header cannot be included together with <sched.h>.
struct SchedulingAttributes {
  std::uint32_t size;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime;
  std::uint64_t deadline;
  std::uint64_t period;
};
constexpr std::uint32_t kOrdinaryPolicy = 0;  // SCHED_OTHER
constexpr std::uint32_t kRealTimePolicy = 1;  // SCHED_FIFO
constexpr std::uint64_t kResetOnFork = 1;     // SCHED_FLAG_RESET_ON_FORK

bool Ask(SchedulingAttributes attributes) {
  attributes.size = sizeof attributes;
  attributes.flags = kResetOnFork;
  return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

// `turn`: nanoseconds that it runs at a time while others wait. Since Linux 6.12 whoever has
// shorter turns has them sooner, and need not wait until the one that runs has had its own, some
// milliseconds.
bool AskOrdinary(std::int32_t nice, std::uint64_t turn) {
  return Ask({.policy = kOrdinaryPolicy, .nice = nice, .runtime = turn});
}

bool AskRealTime(std::uint32_t priority) {
  return Ask({.policy = kRealTimePolicy, .priority = priority});
}

}  // namespace

void PreferThisThread(Preference preference) {
  switch (preference) {
    case Preference::kFirst:
      if (!AskRealTime(2)) AskOrdinary(-20, 100'000);
      return;
    case Preference::kNow:
      if (AskRealTime(1)) return;
      break;
    case Preference::kSoon:
      break;
  }
  // A weight of some nine ordinary threads; if it ever runs wild the others still have a tenth.
  AskOrdinary(-10, 400'000);
}

}  // namespace drakkar
