#include "cmd/drakkar/nri_flags.h"

#include "base/env/absolute_path.h"
#include "base/text/text.h"
#include "rpc/nri/nri.h"

namespace drakkar::cmd {
namespace {

// Where plugins look for a node whose root directory is the kubelet's.
constexpr char kKubeletRoot[] = "/var/lib/kubelet";
constexpr char kUsualSocket[] = "/var/run/nri/nri.sock";
constexpr std::int64_t kMaxTimeoutSeconds = 600;

}  // namespace

std::vector<cli::Flag> NriFlags() {
  return {{.name = "nri-socket",
           .help = StrCat("Socket for NRI plugins. Default: ", kUsualSocket, " if --root-dir is ",
                          kKubeletRoot, ", else nri/nri.sock in the data directory."),
           .placeholder = "FILE"},
          {.name = "nri-required-plugins",
           .help = "NRI plugins that must be connected before a container is created: names, "
                   "separated by commas.",
           .placeholder = "NAMES"},
          {.name = "nri-request-timeout",
           .help = "Seconds that an NRI plugin may take to answer before it is disconnected.",
           .default_value = std::to_string(
               std::chrono::duration_cast<std::chrono::seconds>(rpc::kNriRequestTimeout).count()),
           .placeholder = "SECONDS"}};
}

Result<NriOptions> ReadNriFlags(const cli::Arguments& arguments, const std::string& data_dir,
                                const std::string& root_dir, const std::string& runtime_endpoint) {
  NriOptions options;
  const std::string given = arguments.Text("nri-socket");
  const std::string required = arguments.Text("nri-required-plugins");
  if (!runtime_endpoint.empty() && (!given.empty() || !required.empty())) {
    return InvalidArgument(
        "--nri-socket and --nri-required-plugins have no effect with "
        "--container-runtime-endpoint: that runtime has its own NRI, configure it there");
  }
  options.socket_path = !given.empty()             ? AbsolutePath(given)
                        : root_dir == kKubeletRoot ? kUsualSocket
                                                   : JoinPath(data_dir, "nri/nri.sock");
  for (const std::string_view name : Split(required, ',')) {
    if (Trim(name).empty()) continue;
    if (auto valid = rpc::CheckNriPluginName(Trim(name)); !valid.ok()) {
      return std::move(valid).error().Prefixed("--nri-required-plugins");
    }
    options.required_plugins.emplace_back(Trim(name));
  }
  const auto seconds = ParseInt64(arguments.Text("nri-request-timeout"));
  if (!seconds || *seconds < 1 || *seconds > kMaxTimeoutSeconds) {
    return InvalidArgument(
        StrCat("--nri-request-timeout must be between 1 and ", kMaxTimeoutSeconds, " seconds"));
  }
  options.request_timeout = std::chrono::seconds(*seconds);
  return options;
}

}  // namespace drakkar::cmd
