#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "api/tree/value.h"
#include "base/env/clock.h"
#include "base/result/result.h"

namespace drakkar::apiserver {

// The address of a webhook, and how its certificate is verified.
struct WebhookTarget {
  std::string url;          // "https://10.0.0.7:9443/validate"
  std::string shown_url;    // for errors; names the Service instead of its endpoint
  std::string server_name;  // verified in the certificate; empty: the URL's host
  std::string ca_pem;       // empty: the system's roots
};

// Sends documents to webhooks and returns their answers. The server never presents credentials of
// its own: administrators choose the targets, and anything may listen there.
class WebhookTransport {
 public:
  virtual ~WebhookTransport() = default;

  struct Call {
    WebhookTarget target;
    std::string body;  // JSON
    Duration timeout{0};
    std::size_t max_answer_bytes = 0;  // longer answers are errors
  };
  // An answer other than 200, one that is not JSON, and one that is too late are errors, with
  // `code` as Kubernetes counts them.
  struct Failed {
    int code = 503;
    std::string reason;
  };
  struct Answer {
    api::TreePtr document;  // null: failed
    Failed failed;
  };
  // `done` runs on the core's loop, never from within Post.
  virtual void Post(Call call, std::function<void(Answer)> done) = 0;
};

}  // namespace drakkar::apiserver
