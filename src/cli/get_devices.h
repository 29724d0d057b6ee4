#pragma once

#include "cli/output.h"
#include "cli/session.h"

namespace drakkar::cli {

// `get devices` is not an API kind: it joins slices, claims, pods and node health into one row per
// device, with its state, health and holders. Names are those of `drakkar who`; labels are the
// device's attributes; -n selects devices held by claims of the namespace. With a watch it polls
// every second and prints the changed rows; removed devices are not printed. Returns the exit code.
int GetDevices(const Arguments& arguments, Console& console, Session& session,
               const OutputFormat& format);

}  // namespace drakkar::cli
