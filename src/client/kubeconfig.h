#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/env/clock.h"
#include "base/env/file_system.h"
#include "base/result/result.h"

namespace drakkar::net {
class CertificateSource;
}

namespace drakkar::client {

// The address of the API server and the credentials for it: one context of a kubeconfig file, with
// the files it names read in.
struct ClusterAccess {
  std::string server;  // "https://127.0.0.1:6443"
  // Further API servers of the same cluster, which take over when it fails.
  std::vector<std::string> other_servers = {};
  // Reads the addresses again, all of them; null if they do not come from a file. May be called on
  // any thread.
  std::function<std::vector<std::string>()> read_servers = nullptr;
  std::string ca_pem;
  std::string client_certificate_pem;
  std::string client_key_pem;
  // Reads both again when the file they come from was changed; null if there are none.
  std::shared_ptr<net::CertificateSource> client_certificate;
  std::string token;
  // If set, the token is read from this file, now and whenever it is rotated. See BearerToken.
  std::string token_file;
  // If set, this token counts instead. Whoever made the client keeps it current, on its loop.
  std::shared_ptr<const std::string> live_token = nullptr;
  std::string server_name;  // checked instead of the host in `server`
  bool insecure_skip_verify = false;
  std::string namespace_;  // "default" if the context names none
};

// The first one and the others.
std::vector<std::string> ServersOf(const ClusterAccess& access);

// The addresses in a list separated by commas, without slashes at their ends.
std::vector<std::string> SplitServers(std::string_view list);

// `server` may be a list separated by commas: the API servers of one cluster. kubectl does not read
// such files.
//
// If `context` is empty, the file's current context is used. Errors name the file and the problem.
Result<ClusterAccess> LoadKubeconfig(FileSystem& files, const std::string& path,
                                     const std::string& context = {});

// Why the client certificate cannot be used, and what to do; nullopt if it can, or there is none.
std::optional<Error> WhyExpired(const ClusterAccess& access, WallTime now, const std::string& path);

}  // namespace drakkar::client
