#pragma once

namespace drakkar {

// A limit of the process or the machine was reached: EMFILE or ENFILE (file descriptors) or ENOMEM.
// Such an error usually shows up far from its cause, so whoever sees it reports it here, and the
// program says what to do. Other numbers are ignored. Thread-safe.
void ReportShortage(int error_number);

// Called for every report, on any thread; it must not fail for lack of what is short.
using ShortageHook = void (*)(int error_number);
void SetShortageHook(ShortageHook hook);

}  // namespace drakkar
