#pragma once

#include "cli/command.h"

namespace drakkar::cli {

// Commands on objects: get, describe, apply, create, delete, logs, wait.
void AddClusterCommands(App& app);
// The commands of the kubectl plugin: those that answer questions. None of them writes.
void AddPluginCommands(App& app);
// features discover, require and needs.
void AddFeatureCommands(App& app);
// version and completion, listed last in help. `app` must outlive its commands.
void AddOtherCommands(App& app);

std::vector<Command> CertificateCommands();
Command GetCommand();
Command ApplyCommand();
Command CreateCommand();
Command DeleteCommand();
Command DescribeCommand();
Command DoctorCommand();
Command ExplainCommand();
Command ForgetDriverCommand();
Command FreeCommand();
std::vector<Command> TokenCommands();
Command TopDevicesCommand();
Command WhoCommand();
Command WhyCommand();
Command LogsCommand();
Command ExecCommand();
Command WaitCommand();
Command VersionCommand();
Command CompletionCommand(const App& app);

}  // namespace drakkar::cli
