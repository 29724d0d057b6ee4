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

// Probes over real sockets: a connection of its own for each, closed with the answer.
//
// Lives on its loop; destroying it ends what is under way. At most kMaxRunning probes run at the
// same time; beyond that they fail with kResourceExhausted.
class LoopProber final : public NetworkProber {
 public:
  static constexpr std::size_t kMaxRunning = 4'096;

  // `version` is that of the emulated release, as "1.37". `transport` is for gRPC and must outlive
  // this.
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
  // Null: there are too many, and `refuse` will run from the loop.
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
