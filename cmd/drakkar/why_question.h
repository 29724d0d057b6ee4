#pragma once

#include "answers/serve/why_service.h"
#include "base/result/result.h"
#include "net/server/http_server.h"

namespace drakkar::cmd {

// Reads "/why/pods/NAMESPACE/NAME?node=N&verbose=true&width=80&headers=false". If the caller is the
// API server (by its client certificate), the user is the one in the headers X-Remote-*. Any other
// caller that may get "/why" on the scheduler's own port sees everything.
Result<answers::WhyService::Question> ReadWhyQuestion(const net::ServerRequest& request);

}  // namespace drakkar::cmd
