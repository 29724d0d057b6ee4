#include <csignal>

#include "cli/commands.h"
#include "cmd/drakkar/command_groups.h"

int main(int argc, char** argv) {
  using namespace drakkar;
  // Survive a closed pipe (`drakkar get pods | head`) in the middle of a write.
  std::signal(SIGPIPE, SIG_IGN);
  cli::App app(
      "drakkar",
      "Drakkar: Kubernetes Dynamic Resource Allocation in one binary, from API server to device "
      "driver.");
  cmd::AddDaemonCommands(app);
  cmd::AddDownCommand(app);
  cli::AddClusterCommands(app);
  cmd::AddDashboardCommand(app);
  cli::AddFeatureCommands(app);
  cmd::AddSimulateCommand(app);
  cmd::AddImageCommands(app);
  cmd::AddStoreCommands(app);
  cmd::AddSanityCommand(app);
  cmd::AddMetadataCommand(app);
  cli::AddOtherCommands(app);
  cli::ProcessConsole console;
  const int code = app.Run({argv + 1, argv + argc}, console);
  return code == cli::kExitOk && console.had_write_error() ? cli::kExitFailure : code;
}
