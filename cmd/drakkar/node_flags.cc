#include "cmd/drakkar/node_flags.h"

#include "api/meta/names.h"
#include "base/env/absolute_path.h"
#include "base/text/text.h"
#include "cmd/drakkar/node_part.h"

namespace drakkar::cmd {
namespace {

// Default per pod: more than programs need, less than the machine has.
constexpr std::int64_t kPodPidsLimit = 4'096;

}  // namespace

cli::Flag RuntimeFlag() {
  return {.name = "runtime",
          .help = "Container runtime: runc, crun or a path. Defaults to the one that is installed.",
          .placeholder = "NAME"};
}

cli::Flag RuntimeHandlersFlag() {
  return {.name = "runtime-handlers",
          .help =
              "Container runtimes for pods with a RuntimeClass, by its handler: "
              "HANDLER=PROGRAM, separated by commas. PROGRAM is used like --runtime.",
          .placeholder = "LIST"};
}

Result<std::map<std::string, std::string>> ReadRuntimeHandlers(const cli::Arguments& arguments) {
  std::map<std::string, std::string> handlers;
  for (const std::string_view part : Split(arguments.Text("runtime-handlers"), ',')) {
    if (Trim(part).empty()) continue;
    const std::size_t sign = part.find('=');
    std::string name(Trim(part.substr(0, sign)));
    std::string program(sign == std::string_view::npos ? "" : Trim(part.substr(sign + 1)));
    if (!api::CheckDnsLabel(name).empty() || program.empty()) {
      return InvalidArgument(
          StrCat("--runtime-handlers must be HANDLER=PROGRAM,..., where HANDLER "
                 "is a DNS label, not ",
                 Quote(part)));
    }
    if (!handlers.emplace(std::move(name), std::move(program)).second) {
      return InvalidArgument(StrCat("--runtime-handlers has two programs for ", Quote(part)));
    }
  }
  return handlers;
}

cli::Flag RuntimeEndpointFlag() {
  return {.name = "container-runtime-endpoint",
          .help =
              "Socket of a CRI runtime, such as unix:///run/containerd/containerd.sock. The "
              "runtime then pulls images and sets up pod networks, so --runtime and the network "
              "and registry flags have no effect. Defaults to the built-in runtime.",
          .placeholder = "SOCKET"};
}

Result<std::string> ReadRuntimeEndpoint(const std::string& text) {
  constexpr std::string_view kScheme = "unix://";
  if (text.empty() || text.starts_with('/')) return text;
  if (text.starts_with(kScheme) && text.substr(kScheme.size()).starts_with('/')) {
    return text.substr(kScheme.size());
  }
  return InvalidArgument(
      StrCat("--container-runtime-endpoint must be unix:///PATH, not ", Quote(text)));
}

cli::Flag PidsLimitFlag() {
  return {
      .name = "pod-pids-limit",
      .help = StrCat("Maximum number of processes and threads per pod; -1 for no limit. Default: ",
                     kPodPidsLimit, "."),
      .placeholder = "N"};
}

Result<std::int64_t> ReadPidsLimit(const cli::Arguments& arguments,
                                   std::optional<std::int64_t> of_file) {
  const std::string& text = arguments.Text("pod-pids-limit");
  std::optional<std::int64_t> limit = of_file.value_or(kPodPidsLimit);
  if (!text.empty()) limit = ParseInt64(text);
  if (!limit || *limit == 0 || *limit < -1) {
    return InvalidArgument(StrCat(
        "--pod-pids-limit must be greater than zero, or -1 for no limit, not ", Quote(text)));
  }
  return *limit < 0 ? 0 : *limit;
}

cli::Flag SeccompDefaultFlag() {
  return {.name = "seccomp-default",
          .type = cli::FlagType::kBool,
          .help = "Use the RuntimeDefault seccomp profile for containers that specify none.",
          .default_value = "false"};
}

cli::Flag RootDirectoryFlag() {
  return {.name = "root-dir",
          .help =
              "Directory of plugins, their registration sockets and the claim checkpoint. Drivers "
              "built for a kubelet expect /var/lib/kubelet. Defaults to kubelet in the data "
              "directory.",
          .placeholder = "DIR"};
}

std::string RootDirectory(const cli::Arguments& arguments) {
  const std::string given = arguments.Text("root-dir");
  return given.empty() ? DefaultRootDirectory(AbsolutePath(arguments.Text("data-dir")))
                       : AbsolutePath(given);
}

}  // namespace drakkar::cmd
