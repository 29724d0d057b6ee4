#pragma once

#include "apiserver/request/failure.h"
#include "net/server/http_server.h"

namespace drakkar::apiserver {

// What all requests have in common that the API server passes on to other servers.

bool IsUpgrade(const net::Headers& headers);
bool HasNoBody(int status);
// Answers with a Status.
void Refuse(net::ResponseWriter& writer, const Failure& failure);

// The headers of a request that may go on to another server: without those that belong to its
// connection, and without what proves or states who the caller is. Where the request comes from is
// added (X-Forwarded-For and its siblings). Host stays.
net::Headers HeadersToForward(const net::ServerRequest& request);
// The headers of an answer without those that belong to its connection.
net::Headers HeadersOfAnswer(const net::Headers& answer);

}  // namespace drakkar::apiserver
