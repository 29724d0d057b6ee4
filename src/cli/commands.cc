#include "cli/commands.h"

namespace drakkar::cli {

void AddClusterCommands(App& app) {
  app.Add(GetCommand());
  app.Add(DescribeCommand());
  app.Add(ApplyCommand());
  app.Add(CreateCommand());
  app.Add(DeleteCommand());
  app.Add(LogsCommand());
  app.Add(ExecCommand());
  app.Add(WaitCommand());
  app.Add(ForgetDriverCommand());
  for (Command& command : CertificateCommands()) app.Add(std::move(command));
  for (Command& command : TokenCommands()) app.Add(std::move(command));
  app.Add(WhyCommand());
  app.Add(FreeCommand());
  app.Add(WhoCommand());
  app.Add(TopDevicesCommand());
  app.Add(DoctorCommand());
  app.Add(ExplainCommand());
}

void AddPluginCommands(App& app) {
  app.Add(WhyCommand());
  app.Add(FreeCommand());
  app.Add(WhoCommand());
  app.Add(TopDevicesCommand());
  app.Add(GetCommand());
  app.Add(DoctorCommand());
  app.Add(VersionCommand());
}

void AddOtherCommands(App& app) {
  app.Add(VersionCommand());
  app.Add(CompletionCommand(app));
}

}  // namespace drakkar::cli
