#pragma once

#include <string>

#include "base/env/file_system.h"
#include "base/result/result.h"

namespace drakkar::client {

// The address of the API server and the credentials for it: one context of a kubeconfig file, with
// the files it names read in.
struct ClusterAccess {
  std::string server;  // "https://127.0.0.1:6443"
  std::string ca_pem;
  std::string client_certificate_pem;
  std::string client_key_pem;
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

}  // namespace drakkar::client
