#pragma once

#include "apiserver/request/request.h"
#include "net/http/headers.h"

namespace drakkar::apiserver {

// How a front proxy tells the server behind it who asks (X-Remote-User and its siblings), as
// Kubernetes writes it in the ConfigMap extension-apiserver-authentication.

// Adds the headers. Characters that a header cannot have become spaces, and the keys of `extra` are
// percent-encoded.
void AddIdentity(const UserInfo& user, net::Headers& headers);

// Whether a header of a request says who asks: those of clients must not reach the server behind.
bool IsIdentityHeader(std::string_view name);

// Who asks, according to the headers of a front proxy; an empty name means that they do not say.
UserInfo ReadIdentity(const net::Headers& headers);

}  // namespace drakkar::apiserver
