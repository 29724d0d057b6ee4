#pragma once

#include "cli/output.h"
#include "cli/session.h"

namespace drakkar::cli {

// `get devices`: no kind of the API, but what slices, claims, pods and nodes say together: a row
// for each device with its state, health and holders. Names are those of `drakkar who`; labels are
// the device's attributes; -n limits to devices that claims of the namespace hold. With a watch it
// looks again every second and shows the rows that have changed; one that is gone is not shown.
// Gives the exit code.
int GetDevices(const Arguments& arguments, Console& console, Session& session,
               const OutputFormat& format);

}  // namespace drakkar::cli
