#include "cli/commands.h"
#include "cli/console.h"
#include "commands.h"

int main(int argc, char** argv) {
  drakkar::cli::App app("drakkar", "Kubernetes Dynamic Resource Allocation in one binary");
  drakkar::cmd::AddDaemonCommands(app);
  drakkar::cmd::AddImageCommands(app);
  drakkar::cli::AddClusterCommands(app);
  drakkar::cli::ProcessConsole console;
  return app.Run({argv + 1, argv + argc}, console);
}
