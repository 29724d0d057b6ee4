#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rpc/etcd/etcd.h"
#include "rpc/transport/transport.h"

namespace drakkar::storage {

// What the API contract needs of an etcd, fake or real: an empty one, and a loop.
class EtcdApiHarness {
 public:
  virtual ~EtcdApiHarness() = default;
  // Only inside Do.
  virtual rpc::Channel& channel() = 0;
  virtual void Do(const std::function<void()>& task) = 0;
  // Lets the loop work until `condition`, checked on the loop, holds.
  virtual void WaitUntil(const std::function<bool()>& condition) = 0;
};

struct EtcdApiPeer {
  std::string name;
  // Null: there is no such etcd on this machine, and the tests are skipped.
  std::function<std::unique_ptr<EtcdApiHarness>()> make;
  bool has_reliable_progress = true;
};

inline void PrintTo(const EtcdApiPeer& peer, std::ostream* out) {
  *out << peer.name;
}

// The behaviour of etcd that the store builds on. Instantiate it with EtcdApiPeer values in a
// binary with api_contract.cc.
class EtcdApiContract : public ::testing::TestWithParam<EtcdApiPeer> {
 protected:
  struct WatchLog {
    std::vector<rpc::etcd::WatchResponse> responses;
    std::unique_ptr<rpc::ClientStream> stream;
    bool ended = false;
  };

  void SetUp() override;

  Result<std::string> Call(const char* method, const std::string& request);
  Result<rpc::etcd::RangeResponse> Range(const rpc::etcd::RangeRequest& request);
  Result<rpc::etcd::TxnResponse> Txn(const rpc::etcd::TxnRequest& request);
  // Writes and returns the revision.
  std::int64_t Put(const std::string& key, const std::string& value, std::int64_t lease = 0);
  std::int64_t Delete(const std::string& key);
  Result<void> Compact(std::int64_t revision);
  std::shared_ptr<WatchLog> Watch(const rpc::etcd::WatchCreate& create);
  void Send(const std::shared_ptr<WatchLog>& log, const rpc::etcd::WatchRequest& request);
  void End(const std::shared_ptr<WatchLog>& log);
  // Waits for `count` events, then "key=value@revision" and "key-@revision" of all of them.
  std::vector<std::string> Events(const std::shared_ptr<WatchLog>& log, std::size_t count);

  std::unique_ptr<EtcdApiHarness> harness_;
};

}  // namespace drakkar::storage
