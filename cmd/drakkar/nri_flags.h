#pragma once

#include <string>
#include <vector>

#include "base/env/clock.h"
#include "cli/command.h"

namespace drakkar::cmd {

// How a node's own runtime serves NRI plugins.
struct NriOptions {
  std::string socket_path;
  std::vector<std::string> required_plugins;
  Duration request_timeout{};
};

// --nri-socket, --nri-required-plugins, --nri-request-timeout.
std::vector<cli::Flag> NriFlags();
// `data_dir` and `root_dir` are absolute. Refuses the flags if `runtime_endpoint` names a runtime
// that has its own NRI.
Result<NriOptions> ReadNriFlags(const cli::Arguments& arguments, const std::string& data_dir,
                                const std::string& root_dir, const std::string& runtime_endpoint);

}  // namespace drakkar::cmd
