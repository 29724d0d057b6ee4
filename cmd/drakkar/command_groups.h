#pragma once

#include "cli/command.h"

// The groups of commands that need more than an API server; each is in the file of its name.
namespace drakkar::cmd {

// Where everything of this machine is kept, unless --data-dir says otherwise.
inline constexpr const char* kDefaultDataDirectory = "/var/lib/drakkar";

void AddImageCommands(cli::App& app);
void AddSimulateCommand(cli::App& app);

void AddSanityCommand(cli::App& app);
// metadata: what the reader of device metadata prints.
void AddMetadataCommand(cli::App& app);

void AddDriverCommand(cli::App& app);
// up, apiserver, controllers, scheduler, node, and the driver.
void AddDaemonCommands(cli::App& app);

}  // namespace drakkar::cmd
