#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/seeded_loop.h"
#include "rpc/testing/memory_transport.h"
#include "storage/etcd/etcd_client.h"
#include "storage/etcd/testing/fake_etcd.h"

namespace drakkar::storage {

// A FakeEtcd of several members on a seeded loop. Each member is a socket "/etcd/<n>".
class FakeCluster {
 public:
  explicit FakeCluster(std::size_t members, FakeEtcd::Options options = {}, std::uint64_t seed = 1)
      : loop_(seed, /*shuffle=*/true), transport_(loop_), etcd_(loop_, std::move(options)) {
    for (std::size_t i = 0; i < members; ++i) {
      servers_.push_back(transport_.CreateServer(Path(i), etcd_.Services()));
      Start(i);
    }
  }

  static std::string Path(std::size_t member) { return "/etcd/" + std::to_string(member); }
  static EtcdEndpoint Endpoint(std::size_t member) {
    return {.url = "unix://" + Path(member), .host = "", .port = 0, .socket_path = Path(member)};
  }

  SeededLoop& loop() { return loop_; }
  rpc::MemoryTransport& transport() { return transport_; }
  FakeEtcd& etcd() { return etcd_; }
  void Start(std::size_t member) { EXPECT_TRUE(servers_[member]->Start().ok()); }
  void Stop(std::size_t member) { servers_[member]->Stop(); }

  // Runs until `condition` holds, letting time pass as needed.
  [[nodiscard]] bool WaitUntil(const std::function<bool()>& condition,
                               Duration limit = std::chrono::minutes(5)) {
    const MonotonicTime end = loop_.clock().Monotonic() + limit;
    while (!condition()) {
      if (loop_.RunOne()) continue;
      if (loop_.clock().Monotonic() >= end || !loop_.AdvanceToNextTimer(limit)) return condition();
    }
    return true;
  }

 private:
  SeededLoop loop_;
  rpc::MemoryTransport transport_;
  FakeEtcd etcd_;
  std::vector<std::unique_ptr<rpc::Server>> servers_;
};

}  // namespace drakkar::storage
