// The store contract and the API contract on a real etcd: Debian's, and newer releases if
// `./dev peers` has built them.
#include <unistd.h>

#include "base/env/random.h"
#include "base/text/text.h"
#include "storage/etcd/etcd_store.h"
#include "storage/etcd/server_version.h"
#include "storage/etcd/testing/api_contract.h"
#include "storage/etcd/testing/cuttable_link.h"
#include "storage/etcd/testing/etcd_process.h"
#include "storage/store_contract.h"

namespace drakkar::storage {
namespace {

constexpr Duration kWaitLimit = std::chrono::seconds(60);

// "" if it is not there.
std::string PeerProgram(const std::string& release) {
  const char* folder = std::getenv("DRAKKAR_PEERS");
  const std::string path =
      StrCat(folder == nullptr ? "build/peers" : folder, "/etcd-", release, "/etcd");
  return ::access(path.c_str(), X_OK) == 0 ? path : "";
}

// Checks on the loop until it holds; a real process needs real time.
void WaitOn(LoopThread& thread, const std::function<bool()>& condition) {
  const MonotonicTime limit = RealClock().Monotonic() + kWaitLimit;
  bool holds = false;
  while (!holds) {
    thread.RunSync([&] { holds = condition(); });
    if (RealClock().Monotonic() > limit) {
      FAIL() << "did not happen within a minute";
    }
  }
}

class RealHarness final : public StoreHarness {
 public:
  explicit RealHarness(const std::string& program) : thread_("etcd-test") {
    etcd_ = std::make_unique<EtcdProcess>(thread_, program);
    Do([this] {
      transport_ = rpc::MakeGrpcTransport(thread_.loop());
      link_ = std::make_unique<CuttableLink>(thread_.loop(), etcd_->port());
      Open();
      other_ = OpenAt(etcd_->port());
    });
  }
  ~RealHarness() override {
    Do([this] {
      store_.reset();
      other_.reset();
      link_.reset();
      transport_.reset();
    });
  }
  Store& store() override { return *store_; }
  Store& other() override { return *other_; }
  void Do(const std::function<void()>& task) override {
    thread_.RunSync([&task] { task(); });
  }
  void WaitUntil(const std::function<bool()>& condition) override { WaitOn(thread_, condition); }
  void Reopen() override {
    bool stopped = false;
    Do([&] { store_->Stop([&] { stopped = true; }); });
    WaitUntil([&] { return stopped; });
    Do([this] {
      store_.reset();
      Open();
    });
  }
  void Disconnect() override { link_->Cut(); }
  void Reconnect() override { link_->Restore(); }

 private:
  void Open() { store_ = OpenAt(link_->port()); }
  std::unique_ptr<Store> OpenAt(std::uint16_t port) {
    EtcdStoreOptions options;
    options.client.endpoints = {
        {.url = StrCat("http://127.0.0.1:", port), .host = "127.0.0.1", .port = port}};
    options.client.connect_patience = std::chrono::milliseconds(500);
    return OpenEtcdStore(thread_.loop(), RealRandom(), *transport_, std::move(options));
  }

  LoopThread thread_;
  std::unique_ptr<EtcdProcess> etcd_;
  std::unique_ptr<rpc::Transport> transport_;
  std::unique_ptr<CuttableLink> link_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Store> other_;
};

class RealApiHarness final : public EtcdApiHarness {
 public:
  explicit RealApiHarness(const std::string& program) : thread_("etcd-test") {
    etcd_ = std::make_unique<EtcdProcess>(thread_, program);
    Do([this] {
      transport_ = rpc::MakeGrpcTransport(thread_.loop());
      channel_ = transport_->OpenChannel({.host = "127.0.0.1", .port = etcd_->port()});
    });
  }
  ~RealApiHarness() override {
    Do([this] {
      channel_.reset();
      transport_.reset();
    });
  }
  rpc::Channel& channel() override { return *channel_; }
  void Do(const std::function<void()>& task) override {
    thread_.RunSync([&task] { task(); });
  }
  void WaitUntil(const std::function<bool()>& condition) override { WaitOn(thread_, condition); }

 private:
  LoopThread thread_;
  std::unique_ptr<EtcdProcess> etcd_;
  std::unique_ptr<rpc::Transport> transport_;
  std::unique_ptr<rpc::Channel> channel_;
};

struct Peer {
  std::string name;
  std::string program;
  bool has_reliable_progress;
};

std::vector<Peer> Peers() {
  return {{"Installed", EtcdProcess::FindProgram(), false},
          {"Release35", PeerProgram("3.5"), true},
          {"Release36", PeerProgram("3.6"), true}};
}

std::vector<StoreEngine> Engines() {
  std::vector<StoreEngine> engines;
  for (const Peer& peer : Peers()) {
    StoreEngine engine;
    engine.name = peer.name;
    if (!peer.program.empty()) {
      engine.make = [program = peer.program] { return std::make_unique<RealHarness>(program); };
    }
    engine.is_remote = true;
    engines.push_back(std::move(engine));
  }
  return engines;
}

std::vector<EtcdApiPeer> ApiPeers() {
  std::vector<EtcdApiPeer> peers;
  for (const Peer& peer : Peers()) {
    peers.push_back({peer.name,
                     [program = peer.program]() -> std::unique_ptr<EtcdApiHarness> {
                       if (program.empty()) return nullptr;
                       return std::make_unique<RealApiHarness>(program);
                     },
                     peer.has_reliable_progress});
  }
  return peers;
}

INSTANTIATE_TEST_SUITE_P(Etcd, StoreContract, ::testing::ValuesIn(Engines()),
                         [](const auto& engine) { return engine.param.name; });
INSTANTIATE_TEST_SUITE_P(Etcd, EtcdApiContract, ::testing::ValuesIn(ApiPeers()),
                         [](const auto& peer) { return peer.param.name; });

// The store outlives a restart of its etcd: requests fail or wait meanwhile, watches go on.
TEST(EtcdRestart, AStoreSurvivesTheRestartOfItsEtcd) {
  if (EtcdProcess::FindProgram().empty()) GTEST_SKIP() << EtcdProcess::MissingText();
  LoopThread thread("etcd-test");
  auto etcd = std::make_unique<EtcdProcess>(thread, EtcdProcess::FindProgram());
  std::unique_ptr<rpc::Transport> transport;
  std::unique_ptr<Store> store;
  std::unique_ptr<Watch> watch;
  std::vector<std::string> seen;
  const auto write = [&](const std::string& key) {
    auto result = std::make_shared<std::optional<Result<TransactionResult>>>();
    thread.RunSync([&] {
      store->Commit(
          {{{key, 0}}, {{key, std::make_shared<const std::string>("x")}}},
          [result](auto given) { *result = std::move(given); }, nullptr);
    });
    WaitOn(thread, [&] { return result->has_value(); });
    return (*result)->ok() && (**result)->succeeded;
  };
  thread.RunSync([&] {
    transport = rpc::MakeGrpcTransport(thread.loop());
    EtcdStoreOptions options;
    options.client.endpoints = {
        {.url = "http://127.0.0.1", .host = "127.0.0.1", .port = etcd->port()}};
    options.client.connect_patience = std::chrono::milliseconds(200);
    store = OpenEtcdStore(thread.loop(), RealRandom(), *transport, std::move(options));
    watch = store->StartWatch({}, {.on_events = [&](const auto& events, Revision) {
                                for (const WatchEvent& event : events) seen.push_back(event.key);
                              }});
  });
  EXPECT_TRUE(write("a"));
  etcd->Kill();
  EXPECT_FALSE(write("lost"));
  thread.RunSync([&] {
    EXPECT_TRUE(store->outage().has_value());
    EXPECT_FALSE(store->failure().has_value());
  });
  etcd->Restart();
  while (!write("b")) {
  }
  WaitOn(thread, [&] { return seen.size() >= 2; });
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b"}));
  thread.RunSync([&] {
    EXPECT_FALSE(store->outage().has_value());
    watch.reset();
    store.reset();
    transport.reset();
  });
}

}  // namespace
}  // namespace drakkar::storage
