#pragma once

#include "cli/command.h"

namespace drakkar::cmd {

// `up --separate-processes`: every component in a process of its own. One that ends is started
// again, and the others go on (docs/decisions/processes-of-up.md).
int RunSeparately(const cli::Arguments& arguments, cli::Console& console);

}  // namespace drakkar::cmd
