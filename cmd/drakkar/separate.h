#pragma once

#include "cli/command.h"

namespace drakkar::cmd {

// `up --separate-processes`: runs every component in its own process and restarts those that end,
// while the others keep running (docs/decisions/processes-of-up.md).
int RunSeparately(const cli::Arguments& arguments, cli::Console& console);

}  // namespace drakkar::cmd
