#include "cli/commands.h"

namespace drakkar::cli {

void AddClusterCommands(App& app) {
  app.Add(GetCommand());
  //X app.Add(DescribeCommand());
  app.Add(ApplyCommand());
  app.Add(CreateCommand());
  app.Add(DeleteCommand());
  //X app.Add(LogsCommand());
  //X app.Add(WaitCommand());
  //X app.Add(VersionCommand());
  //X app.Add(CompletionCommand(app));
}

}  // namespace drakkar::cli
