#include "cmd/drakkar/daemon_flags.h"

#include "base/text/text.h"
#include "client/http_client.h"
#include "cmd/drakkar/command_groups.h"

namespace drakkar::cmd {

std::vector<cli::Flag> DaemonFlags(std::initializer_list<std::vector<cli::Flag>> groups) {
  std::vector<cli::Flag> flags;
  for (const std::vector<cli::Flag>& group : groups) {
    flags.insert(flags.end(), group.begin(), group.end());
  }
  for (cli::Flag& flag : CommonFlags()) flags.push_back(std::move(flag));
  return flags;
}

cli::Flag DataDirectoryFlag() {
  return {.name = "data-dir",
          .help = "Data directory.",
          .default_value = kDefaultDataDirectory,
          .placeholder = "DIR"};
}

cli::Flag AddressFlag(std::string help) {
  return {.name = "address",
          .help = std::move(help),
          .default_value = "127.0.0.1",
          .placeholder = "IP"};
}

cli::Flag PortFlag(std::string name, std::string help, std::string port) {
  return {.name = std::move(name),
          .type = cli::FlagType::kInt,
          .help = std::move(help),
          .default_value = std::move(port),
          .placeholder = "PORT"};
}

Result<std::uint16_t> ReadPort(const cli::Arguments& arguments, std::string_view flag) {
  const std::int64_t port = arguments.Int(flag);
  if (port < 0 || port > 65535) {
    return InvalidArgument(StrCat("--", flag, " must be a port between 0 and 65535, not ", port));
  }
  return static_cast<std::uint16_t>(port);
}

cli::Flag KubeconfigFlag() {
  return {.name = "kubeconfig",
          .help = "Kubeconfig with the API server's address and credentials.",
          .placeholder = "FILE"};
}

Result<ClientFactory> HttpClients(const std::string& kubeconfig, const std::string& agent,
                                  client::Fence fence,
                                  std::function<void(const std::string&)> on_server) {
  if (kubeconfig.empty()) {
    return InvalidArgument(
        "--kubeconfig is required, with the API server's address and credentials");
  }
  ASSIGN_OR_RETURN(client::ClusterAccess access,
                   client::LoadKubeconfig(RealFileSystem(), kubeconfig));
  if (const auto why = client::WhyExpired(access, RealClock().Now(), kubeconfig)) return *why;
  return ClientFactory([access, agent, fence = std::move(fence), on_server = std::move(on_server)](
                           UvLoop& loop, std::string, std::vector<std::string>, storage::Mark) {
    return client::MakeHttpClient(loop, access, agent, RealFileSystem(), client::FieldSets::kOpaque,
                                  fence, on_server);
  });
}

cli::Flag NodeNameFlag() {
  return {.name = "node-name",
          .help = "Name of the Node object.",
          .default_value = HostName(),
          .placeholder = "NAME"};
}

cli::Flag LowLatencyFlag() {
  return {.name = "low-latency",
          .type = cli::FlagType::kBool,
          .help =
              "Keep idle processors awake during writes and while claims are prepared, and for a "
              "few milliseconds afterwards (through /dev/cpu_dma_latency, as root). Uses more "
              "power and, on a virtual machine, more of the host's CPU."};
}

int Fail(cli::Console& console, const Error& error) {
  console.Error(error.message);
  return cli::kExitFailure;
}

}  // namespace drakkar::cmd
