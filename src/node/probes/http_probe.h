#pragma once

#include <optional>
#include <string>

#include "net/client/http_client.h"
#include "node/probes/network_prober.h"

namespace drakkar::node {

// The request of a probe. `version` is that of the emulated release: "1.37". The path is used as a
// URL reference if it parses as one, and otherwise encoded as a plain path.
net::ClientRequest MakeProbeRequest(const HttpProbe& probe, const std::string& version);

// Handles a response: the next request if it is a redirect, nothing if it is final, or an error for
// an invalid Location. A redirect to a host other than the first request's is final.
Result<std::optional<net::ClientRequest>> FollowRedirect(const net::ClientRequest& sent,
                                                         const std::string& first_host, int status,
                                                         const net::Headers& headers);

}  // namespace drakkar::node
