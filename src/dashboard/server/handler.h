#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "dashboard/board/board.h"
#include "dashboard/gate/gate.h"
#include "net/server/http_server.h"

namespace drakkar::dashboard {

// The board as the handler sees it, from another loop. Answers arrive on the handler's loop, in the
// order in which the board gave them.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual void Full(std::function<void(Update)> done) = 0;
  virtual void Ask(std::string path, std::string raw_query,
                   std::function<void(Board::Reply)> done) = 0;
  virtual void SetViewers(std::size_t viewers) = 0;
};

// Serves the page, its questions and its stream of updates (server-sent events). A stream that does
// not keep up misses updates and gets the whole state when it has caught up. Bound to the server's
// loop.
class Handler final : public net::RequestHandler {
 public:
  static constexpr std::size_t kMaxStreams = 16;    // beyond: 503
  static constexpr std::size_t kMaxQuestions = 32;  // unanswered ones; beyond: 503
  // A comment is sent if there is nothing else to send, so that both sides notice a dead
  // connection.
  static constexpr Duration kKeepAlive = std::chrono::seconds(15);

  Handler(EventLoop& loop, const Gate& gate, Backend& backend);
  ~Handler() override;

  void Handle(net::ServerRequest request, std::shared_ptr<net::ResponseWriter> writer) override;
  void Publish(const Update& update);

  const Lifetime& lifetime() const { return lifetime_; }

 private:
  struct Stream {
    std::shared_ptr<net::ResponseWriter> writer;
    std::uint64_t version = 0;  // 0: has no state yet
    bool asked = false;         // the whole state is on its way
    bool behind = false;        // needs the whole state
  };
  void StartStream(std::shared_ptr<net::ResponseWriter> writer);
  void CatchUp(std::uint64_t id);
  void Drop(std::uint64_t id);
  void Ask(const net::ServerRequest& request, std::shared_ptr<net::ResponseWriter> writer);
  void KeepAlive();

  EventLoop& loop_;
  const Gate& gate_;
  Backend& backend_;
  std::map<std::uint64_t, Stream> streams_;
  std::uint64_t next_stream_ = 1;
  std::size_t questions_ = 0;
  TimerHandle keep_alive_;
  Lifetime lifetime_;
};

}  // namespace drakkar::dashboard
