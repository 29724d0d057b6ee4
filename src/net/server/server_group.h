#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "net/server/http_server.h"

namespace drakkar::net {

// One port whose connections are served on several loops: `loop` accepts and hands each connection
// to the member with the fewest, in turn among equals. From then on the connection, its TLS and its
// requests belong to that member's loop. Lives on `loop`, which may itself be a member's.
//
// max_connections counts over all members. The members' loops run until the group is destroyed;
// what it posted to them then (the end of their servers) must still run before they are joined.
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
  // As HttpServer::Stop; `done` comes from `loop` when every member is done.
  void Stop(std::function<void()> done);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace drakkar::net
