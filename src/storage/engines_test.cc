// Runs the contract test against the engines: in memory on a seeded loop, in a SQLite file on a
// real loop, each also with limits so small that history must be read back from the log, and on a
// fake etcd. etcd_peer_test.cc runs it on real ones.

#include <unistd.h>

#include <cstdlib>

#include "base/env/file_system.h"
#include "base/exec/uv_loop.h"
#include "base/testing/seeded_loop.h"
#include "storage/etcd/etcd_store.h"
#include "storage/etcd/testing/fake_cluster.h"
#include "storage/memory/memory_store.h"
#include "storage/sqlite/sqlite_store.h"
#include "storage/store_contract.h"
#include "storage/testing/linked_store.h"

namespace drakkar::storage {
namespace {

LocalStoreLimits NothingResident() {
  LocalStoreLimits limits;
  limits.history_resident_bytes_max = 0;
  return limits;
}

class MemoryHarness final : public StoreHarness {
 public:
  MemoryHarness(LocalStoreLimits limits, bool shuffle) : loop_(7, shuffle), limits_(limits) {
    disk_.set_sync_delay(std::chrono::milliseconds(1));
    store_ = OpenMemoryStore(loop_, disk_, limits_);
  }
  Store& store() override { return *store_; }
  void Do(const std::function<void()>& task) override { task(); }
  void WaitUntil(const std::function<bool()>& condition) override {
    while (!condition()) {
      if (loop_.RunOne()) continue;
      if (loop_.AdvanceToNextTimer(std::chrono::seconds(1))) continue;
      FAIL() << "nothing left to run, and what was waited for has not happened";
    }
  }
  void Reopen() override {
    bool stopped = false;
    store_->Stop([&] { stopped = true; });
    WaitUntil([&] { return stopped; });
    store_.reset();
    store_ = OpenMemoryStore(loop_, disk_, limits_);
  }

 private:
  SeededLoop loop_;
  MemoryDisk disk_;
  LocalStoreLimits limits_;
  std::unique_ptr<Store> store_;
};

// Two links to one store, like two API servers.
class LinkedHarness final : public StoreHarness {
 public:
  LinkedHarness() : loop_(11, true) {
    disk_.set_sync_delay(std::chrono::milliseconds(1));
    server_ = OpenMemoryStore(loop_, disk_);
    Open();
  }
  Store& store() override { return *first_; }
  Store& other() override { return *second_; }
  void Do(const std::function<void()>& task) override { task(); }
  void WaitUntil(const std::function<bool()>& condition) override {
    while (!condition()) {
      if (loop_.RunOne()) continue;
      if (loop_.AdvanceToNextTimer(std::chrono::seconds(1))) continue;
      FAIL() << "nothing left to run, and what was waited for has not happened";
    }
  }
  void Reopen() override {
    bool stopped = false;
    first_->Stop([&] { stopped = true; });
    WaitUntil([&] { return stopped; });
    Open();
  }
  void Disconnect() override { first_->Cut(); }
  void Reconnect() override { first_->Restore(); }

 private:
  void Open() {
    first_ = std::make_unique<LinkedStore>(loop_, *server_, std::chrono::milliseconds(3),
                                           std::chrono::milliseconds(5));
    second_ = std::make_unique<LinkedStore>(loop_, *server_, std::chrono::milliseconds(2),
                                            std::chrono::milliseconds(1));
  }

  SeededLoop loop_;
  MemoryDisk disk_;
  std::unique_ptr<Store> server_;
  std::unique_ptr<LinkedStore> first_;
  std::unique_ptr<LinkedStore> second_;
};

// Two stores on a fake etcd of two members, each connected to one of them.
class FakeEtcdHarness final : public StoreHarness {
 public:
  explicit FakeEtcdHarness(FakeEtcd::Options options) : cluster_(2, std::move(options), 17) {
    first_ = Open(0);
    second_ = Open(1);
  }
  Store& store() override { return *first_; }
  Store& other() override { return *second_; }
  void Do(const std::function<void()>& task) override { task(); }
  void WaitUntil(const std::function<bool()>& condition) override {
    ASSERT_TRUE(cluster_.WaitUntil(condition)) << "nothing left to run, or not in time";
  }
  void Reopen() override {
    bool stopped = false;
    first_->Stop([&] { stopped = true; });
    WaitUntil([&] { return stopped; });
    first_.reset();
    first_ = Open(0);
  }
  void Disconnect() override { cluster_.Stop(0); }
  void Reconnect() override { cluster_.Start(0); }

 private:
  std::unique_ptr<Store> Open(std::size_t member) {
    EtcdStoreOptions options;
    options.client.endpoints = {FakeCluster::Endpoint(member)};
    return OpenEtcdStore(cluster_.loop(), cluster_.loop().random(), cluster_.transport(),
                         std::move(options));
  }

  FakeCluster cluster_;
  std::unique_ptr<Store> first_;
  std::unique_ptr<Store> second_;
};

StoreEngine FakeEtcdEngine(std::string name, FakeEtcd::Options options) {
  return {.name = std::move(name),
          .make = [options] { return std::make_unique<FakeEtcdHarness>(options); },
          .is_remote = true};
}

class SqliteHarness final : public StoreHarness {
 public:
  explicit SqliteHarness(LocalStoreLimits limits) : thread_("store-test") {
    char directory[] = "/tmp/drakkar-store-XXXXXX";
    options_.directory = ::mkdtemp(directory);
    options_.limits = limits;
    Open();
  }
  ~SqliteHarness() override {
    Do([this] { store_.reset(); });
    EXPECT_TRUE(RealFileSystem().RemoveTree(options_.directory).ok());
  }
  Store& store() override { return *store_; }
  void Do(const std::function<void()>& task) override {
    thread_.RunSync([&task] { task(); });
  }
  void WaitUntil(const std::function<bool()>& condition) override {
    bool holds = false;
    while (!holds) Do([&] { holds = condition(); });
  }
  void Reopen() override {
    bool stopped = false;
    Do([&] { store_->Stop([&] { stopped = true; }); });
    WaitUntil([&] { return stopped; });
    Do([this] { store_.reset(); });
    Open();
  }

 private:
  void Open() {
    Do([this] {
      Result<std::unique_ptr<Store>> opened = OpenSqliteStore(thread_.loop(), options_);
      ASSERT_TRUE(opened.ok()) << opened.error().message;
      store_ = std::move(*opened);
    });
  }

  SqliteStoreOptions options_;
  LoopThread thread_;
  std::unique_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(
    Embedded, StoreContract,
    ::testing::Values(
        StoreEngine{"Memory",
                    [] { return std::make_unique<MemoryHarness>(LocalStoreLimits{}, false); }},
        StoreEngine{"MemoryShuffledNothingResident",
                    [] { return std::make_unique<MemoryHarness>(NothingResident(), true); }},
        StoreEngine{.name = "Linked",
                    .make = [] { return std::make_unique<LinkedHarness>(); },
                    .is_remote = true},
        FakeEtcdEngine("FakeEtcd", {}),
        FakeEtcdEngine("FakeEtcdSlowInFragments",
                       {.watch_delay = std::chrono::milliseconds(4), .fragment_events = 1}),
        FakeEtcdEngine("FakeEtcdOld", {.version = "3.4.23",
                                       .watch_delay = std::chrono::milliseconds(4),
                                       .progress_overtakes = true}),
        StoreEngine{"Sqlite", [] { return std::make_unique<SqliteHarness>(LocalStoreLimits{}); }},
        StoreEngine{"SqliteNothingResident",
                    [] { return std::make_unique<SqliteHarness>(NothingResident()); }}),
    [](const ::testing::TestParamInfo<StoreEngine>& engine) { return engine.param.name; });

}  // namespace
}  // namespace drakkar::storage
