#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "cli/commands.h"
#include "cli/pod_containers.h"
#include "cli/remote_command.h"
#include "cli/session.h"
#include "client/http_client.h"

namespace drakkar::cli {
namespace {

int RunExec(const Arguments& arguments, Console& console) {
  std::string name = arguments.positionals()[0];
  if (name.starts_with("pod/") || name.starts_with("pods/")) name.erase(0, name.find('/') + 1);
  const std::vector<std::string> command(arguments.positionals().begin() + 1,
                                         arguments.positionals().end());
  if (command.empty()) {
    console.Error(
        "you must specify at least one command for the container: drakkar exec POD -- COMMAND");
    return kExitUsage;
  }
  Result<std::unique_ptr<Session>> opened = Session::Open(arguments, console);
  if (!opened.ok()) {
    Report(console, opened.error());
    return kExitFailure;
  }
  Session& session = **opened;
  client::ResourceRef ref = session.Ref(*api::FindKind("", "v1", "Pod"), name);
  Result<api::ObjectPtr> pod = session.Get(ref);
  if (!pod.ok()) {
    Report(console, pod.error());
    return kExitFailure;
  }
  const std::string phase((*pod)->root()["status"]["phase"].str());
  if (phase == "Succeeded" || phase == "Failed") {
    console.Error(
        StrCat("cannot exec into a container in a completed pod; current phase is ", phase));
    return kExitFailure;
  }
  const std::string container = arguments.Has("container")
                                    ? arguments.Text("container")
                                    : DefaultContainer((*pod)->root(), console);
  RemoteCommandOptions options;
  options.standard_input = arguments.Bool("stdin");
  options.terminal = arguments.Bool("tty");
  if (options.terminal && !console.in_is_terminal()) {
    console.Err("Unable to use a TTY - input is not a terminal or the right kind of file\n");
    options.terminal = false;
  }
  std::vector<std::pair<std::string, std::string>> query = {{"container", container}};
  for (const std::string& word : command) query.emplace_back("command", word);
  query.emplace_back("stdin", options.standard_input ? "true" : "");
  query.emplace_back("stdout", "true");
  query.emplace_back("stderr", options.terminal ? "" : "true");
  query.emplace_back("tty", options.terminal ? "true" : "");
  ref.subresource = "exec";
  Result<int> code = session.RunCommand(client::PathOf(ref) + QueryText(query), options);
  if (!code.ok()) {
    Report(console, code.error());
    return kExitFailure;
  }
  if (*code != 0) console.Err(StrCat("command terminated with exit code ", *code, "\n"));
  return *code;
}

}  // namespace

Command ExecCommand() {
  Command command;
  command.name = "exec";
  command.arguments = "POD [-c CONTAINER] [-i] [-t] -- COMMAND [ARGUMENT...]";
  command.summary = "Run a command in a pod's container";
  command.help =
      "Prints the command's output and exits with its exit code. -i passes standard input, -t "
      "allocates a terminal; use both for an interactive shell.";
  command.examples =
      "  drakkar exec hello -- ls /dev\n"
      "  drakkar exec -it hello -c main -- sh\n"
      "  drakkar exec -i hello -- sh -c 'cat > /tmp/file' < file\n";
  command.section = "Objects";
  command.min_arguments = 1;
  command.group = FlagGroup::kCluster;
  command.flags = {
      {"container", 'c', FlagType::kString, "Container to run the command in.", "", "NAME"},
      {"stdin", 'i', FlagType::kBool, "Pass standard input to the command.", "false"},
      {"tty", 't', FlagType::kBool, "Allocate a terminal for the command.", "false"},
  };
  command.run = RunExec;
  return command;
}

}  // namespace drakkar::cli
