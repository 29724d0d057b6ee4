#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/exec/event_loop.h"
#include "rpc/transport/transport.h"

namespace drakkar::rpc {

// Sockets in memory: everything in rpc above the transport can run on it, on one loop with one
// seed.
//
// It behaves like the real transport wherever callers can tell: answers arrive through the loop,
// deadlines and backoff use its clock, a kept channel that is not connected fails calls at once,
// and a server that stops fails the calls in flight. A test can break connections and make calls
// fail. It must outlive its channels and servers.
class MemoryTransport final : public Transport {
 public:
  explicit MemoryTransport(EventLoop& loop);
  ~MemoryTransport() override;

  std::unique_ptr<Channel> OpenChannel(ChannelOptions options) override;
  std::unique_ptr<Server> CreateServer(std::string socket_path,
                                       std::vector<std::unique_ptr<RpcService>> services) override;

  // Called when a socket appears or disappears; replaces watching a directory.
  void OnSocketChange(std::function<void(const std::string& path, bool listening)> callback);
  bool IsListening(const std::string& path) const;
  std::vector<std::string> ListeningPaths() const;  // sorted

  // Drops every connection to `path`; calls in flight fail. Kept channels reconnect.
  void BreakConnections(const std::string& path);
  // Simulates a killed server process: nobody listens any more, and the socket file stays.
  void Kill(const std::string& path);
  // Runs before a call reaches the server; an error is returned to the caller instead.
  using CallFault =
      std::function<std::optional<Error>(const std::string& path, std::string_view method)>;
  void SetCallFault(CallFault fault);
  // The same after the server has executed the call: its answer is lost.
  void SetAnswerFault(CallFault fault);

  struct Hub;  // for the channels and servers of this transport

 private:
  std::shared_ptr<Hub> hub_;
};

}  // namespace drakkar::rpc
