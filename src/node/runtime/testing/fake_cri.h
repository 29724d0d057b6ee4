#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/exec/event_loop.h"
#include "node/runtime/cri/stream_dialer.h"
#include "node/runtime/hollow/hollow_runtime.h"
#include "rpc/transport/transport.h"

namespace drakkar::node {

// A CRI runtime for tests: the services of CRI v1 with the containers of a HollowMachine, and a
// streaming server in memory. It answers as containerd does, down to the parts of its verbose
// answers that an agent reads.
class FakeCri {
 public:
  struct Options {
    EventLoop& loop;
    rpc::Transport& transport;
    HollowMachine& machine;
    std::string socket_path;
    bool has_events = true;
    bool has_pod_stats = true;  // ListPodSandboxStats; if not, only ListContainerStats
    std::vector<std::string> cdi_directories = {};  // empty: no CDI
    std::string not_ready = {};                     // the message of a failing NetworkReady
  };
  explicit FakeCri(Options options);
  ~FakeCri();

  void Start();  // listens
  // As if it was killed: connections break, containers stay.
  void Stop();
  StreamDialer Dialer();

  // Requests, as sent.
  struct Pull {
    std::string image;
    std::string username;
  };
  const std::vector<Pull>& pulls() const;
  // Pulls with any other user name fail; empty: all succeed.
  void RequireUser(std::string username);
  std::size_t calls(const std::string& method) const;  // "ListContainers"

  class Service;

 private:
  const Options options_;
  struct State;
  std::shared_ptr<State> state_;
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace drakkar::node
