#pragma once

#include "cli/command.h"

namespace drakkar::cmd {

// The commands that run a part or all of them.
void AddDaemonCommands(cli::App& app);
// `drakkar image ...`: works on the node's image store directly.
void AddImageCommands(cli::App& app);

constexpr char kDefaultDataDirectory[] = "/var/lib/drakkar";

}  // namespace drakkar::cmd
