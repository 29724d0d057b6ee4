#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "net/server/http_server.h"

namespace drakkar::net {

// One port (on one or two addresses) whose connections are served on several loops. `loop` accepts,
// and passes each connection to the member with the fewest, round-robin among equals. The
// connection, its TLS and its requests then belong to that member's loop. Lives on `loop`, which
// may itself be a member's.
//
// max_connections applies to all members together. The members' loops must run until the group is
// destroyed, and must still run the tasks it posts then (the end of their servers).
class ServerGroup {
 public:
  struct Member {
    UvLoop& loop;
    RequestHandler& handler;  // called on that loop; outlives what runs there
  };

  ServerGroup(UvLoop& loop, HttpServerOptions options, std::vector<Member> members);
  ~ServerGroup();  // closes everything at once

  Result<void> Start();
  std::uint16_t port() const;
  // Like HttpServer::Stop; `done` runs on `loop` when every member is done.
  void Stop(std::function<void()> done);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace drakkar::net
