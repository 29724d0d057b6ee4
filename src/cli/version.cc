#include "cli/version.h"

#include "api/tree/draft.h"
#include "base/text/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/session.h"

namespace drakkar::cli {
namespace {

int RunVersion(const Arguments& arguments, Console& console) {
  Result<OutputFormat> format = ParseOutputFormat(arguments.Text("output"));
  if (!format.ok()) {
    console.Error(format.error().message);
    return kExitUsage;
  }
  api::Draft document;
  document["clientVersion"]["gitVersion"] = kVersion;
  document["clientVersion"]["kubernetesVersion"] = kKubernetesVersion;
  std::string server;
  int code = kExitOk;
  std::optional<Error> failure;
  if (!arguments.Bool("client")) {
    Result<std::unique_ptr<Session>> session = Session::Open(arguments, console);
    Result<api::TreePtr> answer =
        session.ok() ? (*session)->GetPath("/version") : Result<api::TreePtr>(session.error());
    if (answer.ok()) {
      server = (*answer)->root()["gitVersion"].str();
      document["serverVersion"] = api::Draft(*answer);
    } else {
      failure = answer.error();
      code = kExitFailure;
    }
  }
  if (!format->is_table()) {
    const api::TreePtr tree = document.Freeze();
    console.Out(PrintObjects(*format, {tree->root()}, false));
  } else {
    console.Out(StrCat("Client Version: ", kVersion, " (Kubernetes ", kKubernetesVersion, ")\n"));
    if (!server.empty()) console.Out(StrCat("Server Version: ", server, "\n"));
  }
  if (failure) Report(console, *failure);
  return code;
}

}  // namespace

Command VersionCommand() {
  Command command;
  command.name = "version";
  command.summary = "Show the versions of this program and the server";
  command.help = "With --client the server is not contacted.";
  command.examples = "  drakkar version\n  drakkar version --client -o json\n";
  command.section = "Other";
  command.max_arguments = 0;
  command.group = FlagGroup::kCluster;
  command.flags = {
      {"client", 0, FlagType::kBool, "Show only this program's version.", "false"},
      {"output", 'o', FlagType::kString, "Format: yaml or json.", "", "FORMAT"},
  };
  command.run = RunVersion;
  return command;
}

}  // namespace drakkar::cli
