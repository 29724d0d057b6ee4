#pragma once

#include "cli/command.h"

namespace drakkar::cli {

// All commands that talk to a server, and completion: one function per file of the same name.
void AddClusterCommands(App& app);

Command GetCommand();
Command ApplyCommand();
Command CreateCommand();
Command DeleteCommand();
Command DescribeCommand();
Command LogsCommand();
Command WaitCommand();
// `app` is the one whose version or commands are shown; it must outlive the command.
Command VersionCommand();
Command CompletionCommand(const App& app);

}  // namespace drakkar::cli
