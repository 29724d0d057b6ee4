// The fake under the API contract that etcd_peer_test.cc holds real ones to.
#include "base/testing/seeded_loop.h"
#include "storage/etcd/testing/api_contract.h"
#include "storage/etcd/testing/fake_cluster.h"

namespace drakkar::storage {
namespace {

class FakeHarness final : public EtcdApiHarness {
 public:
  explicit FakeHarness(FakeEtcd::Options options) : cluster_(1, std::move(options)) {
    channel_ = cluster_.transport().OpenChannel({.socket_path = FakeCluster::Path(0)});
  }
  rpc::Channel& channel() override { return *channel_; }
  void Do(const std::function<void()>& task) override { task(); }
  void WaitUntil(const std::function<bool()>& condition) override {
    ASSERT_TRUE(cluster_.WaitUntil(condition));
  }

 private:
  FakeCluster cluster_;
  std::unique_ptr<rpc::Channel> channel_;
};

INSTANTIATE_TEST_SUITE_P(
    Fake, EtcdApiContract,
    ::testing::Values(
        EtcdApiPeer{"Plain", [] { return std::make_unique<FakeHarness>(FakeEtcd::Options{}); }},
        EtcdApiPeer{"SlowWatches",
                    [] {
                      return std::make_unique<FakeHarness>(
                          FakeEtcd::Options{.watch_delay = std::chrono::milliseconds(5)});
                    }}),
    [](const ::testing::TestParamInfo<EtcdApiPeer>& peer) { return peer.param.name; });

}  // namespace
}  // namespace drakkar::storage
