// Keys that expire, and compaction by one of several stores.
#include <gmock/gmock.h>

#include "storage/etcd/etcd_store.h"
#include "storage/etcd/leases.h"
#include "storage/etcd/testing/fake_cluster.h"

namespace drakkar::storage {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EtcdExpiryTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> Open(Duration compaction_interval = Duration(0)) {
    EtcdStoreOptions options;
    options.client.endpoints = {FakeCluster::Endpoint(0)};
    options.compaction_interval = compaction_interval;
    return OpenEtcdStore(cluster_.loop(), cluster_.loop().random(), cluster_.transport(),
                         std::move(options));
  }
  void Put(Store& store, const std::string& key, Duration time_to_live) {
    std::optional<bool> succeeded;
    Transaction transaction;
    transaction.operations.push_back({key, std::make_shared<const std::string>("x")});
    transaction.operations.back().time_to_live = time_to_live;
    store.Commit(
        std::move(transaction),
        [&](const Result<TransactionResult>& result) {
          succeeded = result.ok() && result->succeeded;
        },
        nullptr);
    ASSERT_TRUE(cluster_.WaitUntil([&] { return succeeded.has_value(); }));
    EXPECT_TRUE(*succeeded);
  }
  std::vector<std::string> Keys(Store& store) {
    std::optional<std::vector<std::string>> keys;
    store.Range({}, [&](const Result<RangeResult>& result) {
      keys.emplace();
      for (const Entry& entry : result->entries) keys->push_back(entry.key);
    });
    EXPECT_TRUE(cluster_.WaitUntil([&] { return keys.has_value(); }));
    return *keys;
  }

  FakeCluster cluster_{1};
};

TEST_F(EtcdExpiryTest, AKeyGoesAfterItsTimeToLiveAndNotBefore) {
  auto store = Open();
  EXPECT_TRUE(store->expires_keys());
  Put(*store, "event", hours(1));
  Put(*store, "kept", Duration(0));
  cluster_.loop().Advance(hours(1));
  EXPECT_THAT(Keys(*store), ElementsAre("event", "kept"));
  cluster_.loop().Advance(EtcdLeases::kMaxReuse + seconds(1));
  EXPECT_THAT(Keys(*store), ElementsAre("kept"));
}

TEST_F(EtcdExpiryTest, AChangeStartsTheTimeAnew) {
  auto store = Open();
  Put(*store, "event", hours(1));
  cluster_.loop().Advance(minutes(50));
  Put(*store, "event", hours(1));
  cluster_.loop().Advance(minutes(50));
  EXPECT_THAT(Keys(*store), ElementsAre("event"));
  cluster_.loop().Advance(minutes(12));
  EXPECT_THAT(Keys(*store), IsEmpty());
}

TEST_F(EtcdExpiryTest, KeysOfTheSameMinuteShareALeaseUpToALimit) {
  auto store = Open();
  for (std::size_t i = 0; i < 5; ++i) Put(*store, "k" + std::to_string(i), hours(1));
  EXPECT_EQ(cluster_.etcd().leases(), 1u);
  Put(*store, "other", hours(2));
  EXPECT_EQ(cluster_.etcd().leases(), 2u);
  cluster_.loop().Advance(EtcdLeases::kMaxReuse);
  Put(*store, "late", hours(1));
  EXPECT_EQ(cluster_.etcd().leases(), 3u);
  std::size_t answered = 0;
  for (std::size_t i = 0; i < 2 * EtcdLeases::kMaxKeys; ++i) {
    Transaction transaction;
    transaction.operations.push_back(
        {"many" + std::to_string(i), std::make_shared<const std::string>("x")});
    transaction.operations.back().time_to_live = hours(3);
    store->Commit(
        std::move(transaction), [&](const auto&) { ++answered; }, nullptr);
  }
  ASSERT_TRUE(cluster_.WaitUntil([&] { return answered == 2 * EtcdLeases::kMaxKeys; }));
  EXPECT_EQ(cluster_.etcd().leases(), 5u);
}

TEST_F(EtcdExpiryTest, ALeaseThatIsGoneIsReplaced) {
  auto store = Open();
  Put(*store, "k1", hours(1));
  cluster_.etcd().RevokeAll();
  EXPECT_THAT(Keys(*store), IsEmpty());
  Put(*store, "k2", hours(1));
  EXPECT_THAT(Keys(*store), ElementsAre("k2"));
}

TEST_F(EtcdExpiryTest, OneOfSeveralStoresCompactsToTheRevisionOfAnIntervalAgo) {
  std::vector<std::unique_ptr<Store>> stores;
  for (int i = 0; i < 3; ++i) {
    stores.push_back(Open(minutes(5)));
    cluster_.loop().Advance(minutes(1));
  }
  Revision before = 0;
  for (int interval = 0; interval < 6; ++interval) {
    const Revision compacted = cluster_.etcd().compacted();
    EXPECT_LE(compacted, before) << "what is younger than an interval is kept";
    before = cluster_.etcd().revision();
    for (int i = 0; i < 5; ++i) {
      Put(*stores[0], "k", Duration(0));
      cluster_.loop().Advance(minutes(1));
    }
  }
  EXPECT_GT(cluster_.etcd().compacted(), 10);
  // One write of the key per interval, not one per store.
  EXPECT_LE(cluster_.etcd().revision(), 1 + 6 * 5 + 7);
  EXPECT_GT(stores[0]->compacted_revision() + stores[1]->compacted_revision() +
                stores[2]->compacted_revision(),
            0);
}

TEST_F(EtcdExpiryTest, ACompactionThatFailedDoesNotCount) {
  const std::unique_ptr<Store> store = Open(minutes(5));
  cluster_.transport().SetCallFault(
      [](const std::string&, std::string_view method) -> std::optional<Error> {
        if (method != rpc::etcd::kCompactMethod) return std::nullopt;
        return InvalidArgument("etcdserver: no");
      });
  for (int i = 0; i < 20; ++i) {
    Put(*store, "k", Duration(0));
    cluster_.loop().Advance(minutes(1));
  }
  EXPECT_EQ(cluster_.etcd().compacted(), 0);
  EXPECT_EQ(store->compacted_revision(), 0);
}

TEST_F(EtcdExpiryTest, AnotherStoreGoesOnCompactingWhenTheOneThatDidIsGone) {
  std::vector<std::unique_ptr<Store>> stores;
  for (int i = 0; i < 3; ++i) {
    stores.push_back(Open(minutes(5)));
    cluster_.loop().Advance(minutes(1));
  }
  const auto let_pass = [&](int intervals) {
    for (int i = 0; i < 5 * intervals; ++i) {
      Put(*stores.back(), "k", Duration(0));
      cluster_.loop().Advance(minutes(1));
    }
  };
  let_pass(4);
  while (stores.size() > 1) {
    const Revision before = cluster_.etcd().compacted();
    EXPECT_GT(before, 0);
    stores.erase(stores.begin());
    let_pass(4);
    EXPECT_GT(cluster_.etcd().compacted(), before) << stores.size() << " left";
  }
}

TEST_F(EtcdExpiryTest, CompactionGoesOnAfterSomebodyDeletedItsKey) {
  const std::unique_ptr<Store> store = Open(minutes(5));
  const auto let_pass = [&] {
    for (int i = 0; i < 20; ++i) {
      Put(*store, "k", Duration(0));
      cluster_.loop().Advance(minutes(1));
    }
  };
  let_pass();
  const Revision before = cluster_.etcd().compacted();
  EXPECT_GT(before, 0);
  std::optional<bool> deleted;
  store->Commit(
      {{}, {{"compact_rev_key", nullptr}}},
      [&](const Result<TransactionResult>& result) { deleted = result.ok(); }, nullptr);
  ASSERT_TRUE(cluster_.WaitUntil([&] { return deleted.has_value(); }));
  let_pass();
  EXPECT_GT(cluster_.etcd().compacted(), before);
}

}  // namespace
}  // namespace drakkar::storage
