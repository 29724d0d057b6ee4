#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "apiserver/request/request.h"
#include "base/env/clock.h"
#include "base/result/result.h"
#include "net/http/message.h"

namespace drakkar::apiserver {

// Asks the servers behind APIServices on behalf of this server.
class BackendClient {
 public:
  virtual ~BackendClient() = default;

  struct Call {
    std::string url;          // "https://10.0.0.7:4443/apis/metrics.k8s.io/v1beta1"
    std::string server_name;  // verified in the certificate
    std::string ca_pem;       // empty: the system's roots
    bool insecure = false;    // the certificate is not verified
    net::Headers headers;
    Duration timeout{0};
    std::size_t max_bytes = 0;  // of the answer; a longer one is an error
  };
  // `done` runs on the core's loop, never from within Get.
  virtual void Get(Call call, std::function<void(Result<net::Response>)> done) = 0;
};

}  // namespace drakkar::apiserver
