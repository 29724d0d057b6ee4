#pragma once

#include <vector>

#include "base/env/file_system.h"
#include "cli/command.h"
#include "node/runtime/registry/registries.h"

namespace drakkar::cmd {

// --insecure-registry and --registries-config.
std::vector<cli::Flag> RegistryFlags();
Result<node::RegistrySettings> ReadRegistrySettings(const cli::Arguments& arguments,
                                                    FileSystem& files);

// The file: which mirrors to ask, and how to reach each host. Unknown fields are refused.
//
//   mirrors:
//     docker.io: {endpoint: ["https://mirror.example.com"]}
//   configs:
//     mirror.example.com:
//       auth: {username: u, password: p}
//       tls: {ca_file: /etc/ssl/mirror.crt, insecure_skip_verify: false}
Result<node::RegistrySettings> ParseRegistries(FileSystem& files, std::string_view yaml);

}  // namespace drakkar::cmd
