#pragma once

#include <initializer_list>

#include "client/fence.h"
#include "cmd/drakkar/daemon.h"

// Flags shared by several daemon commands, and the code that reads them.
namespace drakkar::cmd {

// The heading of the daemon commands in the help text.
inline constexpr char kRunSection[] = "Run";

// The flags of the groups in order, followed by those of all daemons (CommonFlags).
std::vector<cli::Flag> DaemonFlags(std::initializer_list<std::vector<cli::Flag>> groups);

cli::Flag DataDirectoryFlag();
cli::Flag NodeNameFlag();
cli::Flag LowLatencyFlag();

cli::Flag AddressFlag(std::string help);
cli::Flag PortFlag(std::string name, std::string help, std::string port);
Result<std::uint16_t> ReadPort(const cli::Arguments& arguments, std::string_view flag);

cli::Flag KubeconfigFlag();
// Clients for the server that a kubeconfig names. `on_server` is called on the client's loop when
// requests go to another server.
Result<ClientFactory> HttpClients(const std::string& kubeconfig, const std::string& agent,
                                  client::Fence fence = nullptr,
                                  std::function<void(const std::string&)> on_server = nullptr);

// Prints the error; returns the exit code.
int Fail(cli::Console& console, const Error& error);

}  // namespace drakkar::cmd
