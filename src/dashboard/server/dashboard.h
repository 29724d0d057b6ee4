#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "answers/cluster/snapshot.h"
#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/result/result.h"
#include "client/client.h"

namespace drakkar::dashboard {

// The page on a loopback port. Reads the cluster through the given client and has no permissions of
// its own. Runs on two threads (HTTP, and computing) and on the client's loop.
class Dashboard {
 public:
  // Runs `work` on the loop of the client and waits for it.
  using OnClientLoop =
      std::function<void(const std::function<void(EventLoop&, client::Client&)>& work)>;
  struct Options {
    OnClientLoop on_client_loop;
    answers::Snapshot first;  // says which kinds the caller may read
    std::string server;       // the API server's address, for the page's title
    std::uint16_t port = 0;   // on 127.0.0.1; 0 chooses a free one
    Random& random;
  };
  static Result<std::unique_ptr<Dashboard>> Start(Options options);
  ~Dashboard();

  // With the token: whoever has it may read the page.
  std::string url() const;

 private:
  struct Impl;
  explicit Dashboard(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace drakkar::dashboard
