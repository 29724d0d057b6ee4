#pragma once

namespace drakkar {

enum class Preference {
  kSoon,  // before threads that compute
  // Before all ordinary threads, in real time: while somebody waits for the next millisecond of it.
  // It is then not put aside for the kernel's own workers either, which clean up after containers
  // for half a millisecond at a time.
  kNow,
  kFirst,  // before those as well: for threads that only begin something here and there, as a write
           // to a disk
};

// Asks the kernel to run the calling thread soon after it wakes: for threads whose work is short
// and waited for. Threads and processes it starts do not inherit it. Without the right to do so
// (CAP_SYS_NICE) nothing changes; where there is no real time to be had, kNow is kSoon.
void PreferThisThread(Preference preference = Preference::kSoon);

}  // namespace drakkar
