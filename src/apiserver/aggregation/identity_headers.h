#pragma once

#include "apiserver/request/request.h"
#include "net/http/headers.h"

namespace drakkar::apiserver {

// How a front proxy passes the caller's identity to the server behind it (X-Remote-User and its
// siblings), as Kubernetes publishes it in the ConfigMap extension-apiserver-authentication.

// Adds the headers. Characters that a header cannot have become spaces, and the keys of `extra` are
// percent-encoded.
void AddIdentity(const UserInfo& user, net::Headers& headers);

// Whether a header carries an identity: those of clients must not reach the server behind.
bool IsIdentityHeader(std::string_view name);

// The caller's identity from the headers of a front proxy; an empty name if there is none.
UserInfo ReadIdentity(const net::Headers& headers);

}  // namespace drakkar::apiserver
