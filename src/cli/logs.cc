#include <algorithm>

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "cli/commands.h"
#include "cli/pod_containers.h"
#include "cli/resource_names.h"
#include "cli/session.h"
#include "client/http_client.h"

namespace drakkar::cli {
namespace {

using api::Value;

std::vector<std::string> ContainerNames(Value pod) {
  std::vector<std::string> names;
  for (const api::FieldName list :
       api::FieldNames{"initContainers", "containers", "ephemeralContainers"}) {
    for (Value container : pod["spec"][list].elements())
      names.emplace_back(container["name"].str());
  }
  return names;
}

class LogsRun {
 public:
  LogsRun(const Arguments& arguments, Console& console, Session& session)
      : arguments_(arguments), console_(console), session_(session) {}

  int ShowPod(Value pod) {
    const std::string name(pod["metadata"]["name"].str());
    const std::vector<std::string> containers = ContainerNames(pod);
    const std::string& wanted = arguments_.Text("container");
    if (arguments_.Bool("all-containers")) {
      int code = kExitOk;
      for (const std::string& container : containers) {
        code = std::max(code, Show(pod, container));
      }
      return code;
    }
    if (!wanted.empty() && std::ranges::find(containers, wanted) == containers.end()) {
      console_.Error(StrCat("container ", wanted, " is not valid for pod ", name, ": valid are ",
                            Join(containers, ", ")));
      return kExitFailure;
    }
    return Show(pod, wanted.empty() ? DefaultContainer(pod, console_) : wanted);
  }

 private:
  int Show(Value pod, const std::string& container) {
    client::ResourceRef ref =
        session_.Ref(*api::FindKind("", "v1", "Pod"), std::string(pod["metadata"]["name"].str()));
    ref.subresource = "log";
    std::vector<std::pair<std::string, std::string>> query = {{"container", container}};
    if (arguments_.Bool("follow")) query.emplace_back("follow", "true");
    if (arguments_.Bool("previous")) query.emplace_back("previous", "true");
    if (arguments_.Bool("timestamps")) query.emplace_back("timestamps", "true");
    if (arguments_.Int("tail") >= 0) query.emplace_back("tailLines", arguments_.Text("tail"));
    if (arguments_.Has("limit-bytes"))
      query.emplace_back("limitBytes", arguments_.Text("limit-bytes"));
    if (arguments_.Has("since")) {
      const auto seconds =
          std::chrono::ceil<std::chrono::seconds>(arguments_.Time("since")).count();
      query.emplace_back("sinceSeconds", std::to_string(std::max<std::int64_t>(1, seconds)));
    }
    query.emplace_back("sinceTime", arguments_.Text("since-time"));
    const std::string path = client::PathOf(ref) + QueryText(query);
    const std::string prefix =
        arguments_.Bool("prefix") ? StrCat("[pod/", ref.name, "/", container, "] ") : "";
    bool at_line_start = true;
    const Result<void> ended = session_.Stream(path, "*/*", [&](std::string_view bytes) {
      if (prefix.empty()) {
        console_.Out(bytes);
        return true;
      }
      std::string text;
      for (char c : bytes) {
        if (at_line_start) text += prefix;
        at_line_start = c == '\n';
        text += c;
      }
      console_.Out(text);
      return true;
    });
    if (ended.ok()) return kExitOk;
    Report(console_, ended.error());
    return kExitFailure;
  }

  const Arguments& arguments_;
  Console& console_;
  Session& session_;
};

int RunLogs(const Arguments& arguments, Console& console) {
  const api::KindSchema& pods = *api::FindKind("", "v1", "Pod");
  const std::string& selector = arguments.Text("selector");
  const std::vector<std::string>& words = arguments.positionals();
  if (words.empty() == selector.empty()) {
    console.Error("give one pod name, or use --selector for several");
    return kExitUsage;
  }
  std::string name = words.empty() ? "" : words[0];
  if (const std::size_t slash = name.find('/'); slash != std::string::npos) {
    Result<const api::KindSchema*> kind = FindType(name.substr(0, slash));
    if (!kind.ok() || *kind != &pods) {
      console.Error(kind.ok() ? StrCat("only pods have logs, not ", (*kind)->plural)
                              : kind.error().message);
      return kExitFailure;
    }
    name = name.substr(slash + 1);
  }
  Result<std::unique_ptr<Session>> opened = Session::Open(arguments, console);
  if (!opened.ok()) {
    Report(console, opened.error());
    return kExitFailure;
  }
  Session& session = **opened;
  LogsRun run(arguments, console, session);
  if (selector.empty()) {
    Result<api::ObjectPtr> pod = session.Get(session.Ref(pods, name));
    if (!pod.ok()) {
      Report(console, pod.error());
      return kExitFailure;
    }
    return run.ShowPod((*pod)->root());
  }
  Result<api::TreePtr> list = session.List(session.Ref(pods), selector);
  if (!list.ok()) {
    Report(console, list.error());
    return kExitFailure;
  }
  if (arguments.Bool("follow") && (*list)->root()["items"].size() > 1) {
    console.Error("--follow supports one pod, but the selector matches several");
    return kExitUsage;
  }
  if ((*list)->root()["items"].empty()) {
    console.Err(StrCat("No resources found in ", session.namespace_(), " namespace.\n"));
  }
  int code = kExitOk;
  for (Value pod : (*list)->root()["items"].elements()) code = std::max(code, run.ShowPod(pod));
  return code;
}

}  // namespace

Command LogsCommand() {
  Command command;
  command.name = "logs";
  command.arguments = "POD | -l SELECTOR";
  command.summary = "Show the logs of a pod's containers";
  command.help =
      "Without -c, shows the first container. -f follows the log until the container exits or you "
      "interrupt it.";
  command.examples =
      "  drakkar logs hello\n"
      "  drakkar logs hello -c sidecar -f\n"
      "  drakkar logs hello --tail=20 --timestamps\n"
      "  drakkar logs hello --previous\n";
  command.section = "Objects";
  command.max_arguments = 1;
  command.group = FlagGroup::kCluster;
  command.flags = {
      {"container", 'c', FlagType::kString, "Container to show.", "", "NAME"},
      {"all-containers", 0, FlagType::kBool, "Show all containers, one after the other.", "false"},
      {"follow", 'f', FlagType::kBool, "Follow the log.", "false"},
      {"previous", 'p', FlagType::kBool, "Show the log of the previous run of the container.",
       "false"},
      {"tail", 0, FlagType::kInt, "Number of lines from the end; -1 shows all.", "-1", "LINES"},
      {"since", 0, FlagType::kDuration, "Only lines newer than this duration.", "", "DURATION"},
      {"since-time", 0, FlagType::kString, "Only lines after this time (RFC 3339).", "", "TIME"},
      {"timestamps", 0, FlagType::kBool, "Prefix each line with its timestamp.", "false"},
      {"limit-bytes", 0, FlagType::kInt, "Maximum number of bytes; 0 means no limit.", "0",
       "BYTES"},
      {"prefix", 0, FlagType::kBool, "Prefix each line with its pod and container.", "false"},
      {"selector", 'l', FlagType::kString, "Select pods by label.", "", "SELECTOR"},
  };
  command.run = RunLogs;
  return command;
}

}  // namespace drakkar::cli
