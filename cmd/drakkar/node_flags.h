#pragma once

#include <map>
#include <optional>
#include <string>

#include "cmd/drakkar/daemon.h"

// Flags of a node agent that `up` has too, and the code that reads them.
namespace drakkar::cmd {

cli::Flag RuntimeFlag();

cli::Flag RuntimeHandlersFlag();
// Programs by handler.
Result<std::map<std::string, std::string>> ReadRuntimeHandlers(const cli::Arguments& arguments);

cli::Flag RuntimeEndpointFlag();
// The path of the socket; empty if `text` is.
Result<std::string> ReadRuntimeEndpoint(const std::string& text);

cli::Flag PidsLimitFlag();
// The flag, else the value in the configuration file, else the default. 0 means no limit.
Result<std::int64_t> ReadPidsLimit(const cli::Arguments& arguments,
                                   std::optional<std::int64_t> of_file = {});

cli::Flag SeccompDefaultFlag();

cli::Flag RootDirectoryFlag();
// The absolute path; by default a directory in the data directory.
std::string RootDirectory(const cli::Arguments& arguments);

}  // namespace drakkar::cmd
