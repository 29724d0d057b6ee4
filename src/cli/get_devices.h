#pragma once

#include "cli/output.h"
#include "cli/session.h"

namespace drakkar::cli {

// `get devices`: no kind of the API but what slices, claims and nodes say together: a row for each
// device with its health, since when, and who has it. With a watch it looks again every second and
// shows the rows that have changed; one that is gone is not shown. Gives the exit code.
int GetDevices(const Arguments& arguments, Console& console, Session& session,
               const OutputFormat& format);

}  // namespace drakkar::cli
