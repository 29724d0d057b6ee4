#pragma once

namespace drakkar {

// Asks the kernel to run the calling thread soon after it wakes, before threads that compute: for
// threads whose work is short and waited for. Threads and processes it starts do not inherit it.
// Without the right to do so (CAP_SYS_NICE) nothing changes.
void PreferThisThread();

}  // namespace drakkar
