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
constexpr std::uint64_t kResetOnFork = 1;     // SCHED_FLAG_RESET_ON_FORK
struct Wish {
  std::int32_t nice;
  // Nanoseconds that it runs at a time while others wait. Since Linux 6.12 whoever has shorter turns has
  // them sooner, and need not wait until the one that runs has had its own, some milliseconds.
  std::uint64_t turn;
};
// Soon: a weight of some nine ordinary threads; if it ever runs wild the others still have a tenth.
constexpr Wish kSoon = {-10, 400'000};
constexpr Wish kFirst = {-20, 100'000};
constexpr std::uint32_t kFirstPolicy = 1;  // SCHED_FIFO

}  // namespace

void PreferThisThread(Preference preference) {
  const Wish& wish = preference == Preference::kFirst ? kFirst : kSoon;
  SchedulingAttributes attributes{};
  attributes.size = sizeof attributes;
  attributes.flags = kResetOnFork;
  if (preference == Preference::kFirst) {
    attributes.policy = kFirstPolicy;
    attributes.priority = 1;
    if (syscall(SYS_sched_setattr, 0, &attributes, 0) == 0) return;
    attributes.priority = 0;
  }
  attributes.policy = kOrdinaryPolicy;
  attributes.nice = wish.nice;
  attributes.runtime = wish.turn;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace drakkar
