#pragma once

namespace drakkar {

enum class Preference {
  kSoon,   // before threads that compute
  kFirst,  // before all others, in real time: for threads that only begin something here and there, as a write to a disk
};

// Asks the kernel to run the calling thread soon after it wakes: for threads whose work is short and
// waited for. Threads and processes it starts do not inherit it. Without the right to do so
// (CAP_SYS_NICE) nothing changes.
void PreferThisThread(Preference preference = Preference::kSoon);

}  // namespace drakkar
