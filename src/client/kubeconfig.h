#pragma once

#include <string>

#include "base/env/file_system.h"
#include "base/result/result.h"

namespace drakkar::client {

// Where the API server is and how to prove who we are: one context of a kubeconfig file, with the
// files it names read in.
struct ClusterAccess {
  std::string server;  // "https://127.0.0.1:6443"
  std::string ca_pem;
  std::string client_certificate_pem;
  std::string client_key_pem;
  std::string token;
  // Not empty: the token is that of this file, now and later. See BearerToken.
  std::string token_file;
  std::string server_name;  // checked instead of the host in `server`
  bool insecure_skip_verify = false;
  std::string namespace_;  // "default" if the context names none
};

// `context` empty: the file's current one. Errors name the file and what is wrong in it.
Result<ClusterAccess> LoadKubeconfig(FileSystem& files, const std::string& path,
                                     const std::string& context = {});

}  // namespace drakkar::client
