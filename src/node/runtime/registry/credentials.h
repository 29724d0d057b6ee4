#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// Credentials of a registry, or of a part of it: "registry.example.com/team".
struct RegistryLogin {
  std::string scope;  // host[:port][/path]; a part of the host may be '*'
  RegistryCredential credential;
};

// The logins in a Secret of type kubernetes.io/dockerconfigjson (key .dockerconfigjson), or of the
// older kubernetes.io/dockercfg (key .dockercfg), whose top level is the list itself.
Result<std::vector<RegistryLogin>> ParseDockerConfig(std::string_view json, bool is_legacy);

// The logins for an image, the most specific scope first, as a kubelet chooses them. `image` is a
// full name (NormalizeImageName).
std::vector<RegistryCredential> ChooseLogins(const std::vector<RegistryLogin>& logins,
                                             std::string_view image);

// What a registry requests in WWW-Authenticate.
struct AuthChallenge {
  bool is_bearer = false;  // otherwise basic
  std::string realm;
  std::string service;
  std::string scope;
};
// The challenge to answer: bearer before basic. kUnimplemented if there is none of these.
Result<AuthChallenge> ParseChallenge(const std::vector<std::string>& headers);

}  // namespace drakkar::node
