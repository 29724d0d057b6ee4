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
// A weight of some nine ordinary threads: it goes first, and if it ever runs wild the others still
// have a tenth.
constexpr std::int32_t kPreferred = -10;

}  // namespace

void PreferThisThread() {
  SchedulingAttributes attributes{};
  attributes.size = sizeof attributes;
  attributes.policy = kOrdinaryPolicy;
  attributes.flags = kResetOnFork;
  attributes.nice = kPreferred;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace drakkar
