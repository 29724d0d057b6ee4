#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/request/request.h"
#include "net/http/headers.h"

namespace drakkar::apiserver {

// How a front proxy passes the caller's identity to the server behind it (X-Remote-User and its
// siblings), as Kubernetes publishes it in the ConfigMap extension-apiserver-authentication.

// Adds the headers. Characters that a header cannot have become spaces, and the keys of `extra` are
// percent-encoded.
void AddIdentity(const UserInfo& user, net::Headers& headers);

// Whether every name arrives as it is. Others would become those of somebody else: a server ignores
// spaces at the ends.
bool FitsIntoHeaders(const UserInfo& user);

// Whether a header carries an identity: those of clients must not reach the server behind. Some
// servers read an underscore as a hyphen.
bool IsIdentityHeader(std::string_view name);

// The headers in which the front proxies before this server put the identity.
struct IdentityHeaders {
  // The first of them that has a value counts.
  std::vector<std::string> user = {"X-Remote-User"};
  std::vector<std::string> uid = {"X-Remote-Uid"};
  std::vector<std::string> group = {"X-Remote-Group"};          // all of them count
  std::vector<std::string> extra_prefix = {"X-Remote-Extra-"};  // likewise
};

// The caller's identity from the headers of a front proxy; an empty name if there is none.
UserInfo ReadIdentity(const net::Headers& headers, const IdentityHeaders& names = {});
// Removes them, so that nobody after us takes them for something else.
void RemoveIdentity(net::Headers& headers, const IdentityHeaders& names);

}  // namespace drakkar::apiserver
