#pragma once

#include "answers/serve/why_service.h"
#include "base/result/result.h"
#include "net/server/http_server.h"

namespace drakkar::cmd {

// Reads "/why/pods/NAMESPACE/NAME?node=N&verbose=true&width=80&headers=false". The user is the one
// in the headers X-Remote-*, if the API server itself asks (its client certificate). Anybody else
// who may get "/why" on the scheduler's own port asks without restriction.
Result<answers::WhyService::Question> ReadWhyQuestion(const net::ServerRequest& request);

}  // namespace drakkar::cmd
