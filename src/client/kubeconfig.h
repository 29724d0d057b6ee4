#pragma once

#include <memory>
#include <optional>
#include <string>

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
  std::string ca_pem;
  std::string client_certificate_pem;
  std::string client_key_pem;
  // Reads both again when the file they come from was changed; null if there are none.
  std::shared_ptr<net::CertificateSource> client_certificate;
  std::string token;
  // If set, the token is read from this file, now and whenever it is rotated. See BearerToken.
  std::string token_file;
  std::string server_name;  // checked instead of the host in `server`
  bool insecure_skip_verify = false;
  std::string namespace_;  // "default" if the context names none
};

// If `context` is empty, the file's current context is used. Errors name the file and the problem.
Result<ClusterAccess> LoadKubeconfig(FileSystem& files, const std::string& path,
                                     const std::string& context = {});

// Why the client certificate cannot be used, and what to do; nullopt if it can, or there is none.
std::optional<Error> WhyExpired(const ClusterAccess& access, WallTime now, const std::string& path);

}  // namespace drakkar::client
