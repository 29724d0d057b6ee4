#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/exec/lifetime.h"
#include "base/exec/uv_loop.h"
#include "node/probes/network_prober.h"

namespace drakkar::rpc {
class Transport;
}

namespace drakkar::node {

// Probes over real sockets, one connection per probe, closed with the answer.
//
// Loop-bound; the destructor cancels probes in flight. At most kMaxRunning probes run at a time;
// further ones fail with kResourceExhausted.
class LoopProber final : public NetworkProber {
 public:
  static constexpr std::size_t kMaxRunning = 4'096;

  // `version` is that of the emulated release, for example "1.37". `transport` is for gRPC and must
  // outlive this object.
  LoopProber(UvLoop& loop, rpc::Transport& transport, std::string version);
  ~LoopProber() override;

  void Get(HttpProbe probe, Duration timeout,
           std::function<void(Result<HttpAnswer>)> done) override;
  void Connect(const std::string& host, int port, Duration timeout,
               std::function<void(Result<void>)> done) override;
  void CheckGrpc(const std::string& host, int port, const std::string& service, Duration timeout,
                 std::function<void(Result<std::string>)> done) override;

  std::size_t running() const { return running_.size(); }
  class Run;

 private:
  // Null if too many are running; then `refuse` runs from the loop.
  bool Admit(std::function<void(Error)> refuse);
  void Begin(std::shared_ptr<Run> run, Duration timeout);

  UvLoop& loop_;
  rpc::Transport& transport_;
  const std::string version_;
  std::map<std::uint64_t, std::shared_ptr<Run>> running_;
  std::uint64_t next_id_ = 1;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
