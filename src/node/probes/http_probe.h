#pragma once

#include <optional>
#include <string>

#include "net/client/http_client.h"
#include "node/probes/network_prober.h"

namespace drakkar::node {

// The request a probe makes. `version` is that of the emulated release: "1.37". A probe's path is
// taken as a URL reference as far as it is one, and encoded as a plain path where it is not.
net::ClientRequest MakeProbeRequest(const HttpProbe& probe, const std::string& version);

// What to do with an answer: a request that follows a redirect, nothing if it is final, or an error
// for a Location that is none. A redirect to another host than the first request's is final.
Result<std::optional<net::ClientRequest>> FollowRedirect(const net::ClientRequest& sent,
                                                         const std::string& first_host, int status,
                                                         const net::Headers& headers);

}  // namespace drakkar::node
