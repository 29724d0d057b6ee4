#pragma once

#include "cli/command.h"

// Commands that need more than an API server; each group is defined in the file of the same name.
namespace drakkar::cmd {

// The default of --data-dir.
inline constexpr const char* kDefaultDataDirectory = "/var/lib/drakkar";

// dashboard: the web page.
void AddDashboardCommand(cli::App& app);
void AddImageCommands(cli::App& app);
void AddSimulateCommand(cli::App& app);

void AddSanityCommand(cli::App& app);
// store check, repair, backup, restore and migrate.
void AddStoreCommands(cli::App& app);
// metadata: the same as the drakkar-metadata binary.
void AddMetadataCommand(cli::App& app);

void AddDownCommand(cli::App& app);
// cluster create, status and delete.
void AddClusterLifeCommands(cli::App& app);
void AddUpCommand(cli::App& app);
// apiserver, controllers and scheduler.
void AddControlPlaneCommands(cli::App& app);
void AddNodeCommand(cli::App& app);
void AddDriverCommand(cli::App& app);

}  // namespace drakkar::cmd
