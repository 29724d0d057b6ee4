#include "storage/etcd/range_pager.h"

#include <gmock/gmock.h>

#include "rpc/etcd/etcd.h"
#include "storage/etcd/etcd_store.h"
#include "storage/etcd/testing/fake_cluster.h"

namespace drakkar::storage {
namespace {

TEST(NextPageKeys, AimsAtFourMebibytesAndGrowsSlowly) {
  EXPECT_EQ(NextPageKeys(500, 500 * 1'000), 1'000u) << "no more than twice as many";
  EXPECT_EQ(NextPageKeys(500, 0), 1'000u);
  EXPECT_EQ(NextPageKeys(8'000, 8'000 * 100), 10'000u);
  EXPECT_EQ(NextPageKeys(500, 500 * 16'384), 256u);
  EXPECT_EQ(NextPageKeys(100, std::size_t{100} << 23), 1u) << "each is larger than a page";
}

class RangePagerTest : public ::testing::Test {
 protected:
  RangePagerTest() {
    EtcdStoreOptions options;
    options.client.endpoints = {FakeCluster::Endpoint(0)};
    store_ = OpenEtcdStore(cluster_.loop(), cluster_.loop().random(), cluster_.transport(),
                           std::move(options));
  }
  // Writes a/0000 to a/1699, and a neighbour on each side.
  void Fill() {
    const auto value = std::make_shared<const std::string>("x");
    for (int from = 0; from < kKeys; from += 100) {
      Transaction transaction;
      for (int i = from; i < from + 100; ++i) {
        transaction.operations.push_back({"a/" + std::to_string(10'000 + i), value});
      }
      Commit(std::move(transaction));
    }
    Commit({{}, {{"a", value}, {"b", value}}});
  }
  void Commit(Transaction transaction) {
    bool done = false;
    store_->Commit(
        std::move(transaction), [&](const auto& result) { done = result.ok(); }, nullptr);
    ASSERT_TRUE(cluster_.WaitUntil([&] { return done; }));
  }
  Result<RangeResult> Range(RangeOptions options) {
    std::optional<Result<RangeResult>> result;
    store_->Range(std::move(options), [&](auto given) { result = std::move(given); });
    EXPECT_TRUE(cluster_.WaitUntil([&] { return result.has_value(); }));
    return *std::move(result);
  }
  // Counts calls for ranges; the first `failures` of them fail.
  void CountRanges(int failures = 0, std::string why = "") {
    ranges_ = 0;
    cluster_.transport().SetCallFault(
        [this, failures, why](const std::string&, std::string_view method) -> std::optional<Error> {
          if (method != rpc::etcd::kRangeMethod) return std::nullopt;
          if (ranges_++ >= failures) return std::nullopt;
          return Error{ErrorCode::kResourceExhausted, why};
        });
  }

  static constexpr int kKeys = 1'700;
  FakeCluster cluster_{1};
  std::unique_ptr<Store> store_;
  int ranges_ = 0;
};

TEST_F(RangePagerTest, PagesJoinWithoutGapsAndEndWhereTheyShould) {
  Fill();
  CountRanges();
  Result<RangeResult> all = Range({.prefix = "a/"});
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(ranges_, 3) << "500, 1,000 and the rest";
  ASSERT_EQ(all->entries.size(), static_cast<std::size_t>(kKeys));
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_EQ(all->entries[i].key, "a/" + std::to_string(10'000 + i));
    EXPECT_EQ(*all->entries[i].value, "x");
    EXPECT_EQ(all->entries[i].mod_revision, 2 + i / 100);
  }
  EXPECT_FALSE(all->more);
  EXPECT_EQ(all->remaining, 0u);

  ranges_ = 0;
  Result<RangeResult> some = Range({.prefix = "a/", .limit = 700});
  EXPECT_EQ(ranges_, 2);
  EXPECT_EQ(some->entries.size(), 700u);
  EXPECT_TRUE(some->more);
  EXPECT_EQ(some->remaining, static_cast<std::size_t>(kKeys) - 700);

  ranges_ = 0;
  Result<RangeResult> rest =
      Range({.prefix = "a/", .start_after = some->entries.back().key, .limit = 1'000});
  EXPECT_EQ(ranges_, 2);
  EXPECT_EQ(rest->entries.size(), 1'000u);
  EXPECT_FALSE(rest->more);
  EXPECT_EQ(rest->entries.front().key, "a/10700");

  EXPECT_EQ(Range({.prefix = "a/", .start_after = "a"})->entries.size(),
            static_cast<std::size_t>(kKeys))
      << "a start before the prefix is none";
  EXPECT_EQ(Range({})->entries.size(), static_cast<std::size_t>(kKeys) + 2);
  EXPECT_EQ(Range({.start_after = "a"})->entries.size(), static_cast<std::size_t>(kKeys) + 1);
  EXPECT_EQ(Range({.prefix = "a/", .limit = 500})->remaining,
            static_cast<std::size_t>(kKeys) - 500);
}

TEST_F(RangePagerTest, AnOldRevisionIsReadToItsEnd) {
  Fill();
  const Result<RangeResult> old = Range({.prefix = "a/", .revision = 9});
  ASSERT_TRUE(old.ok());
  EXPECT_EQ(old->revision, 9);
  EXPECT_EQ(old->entries.size(), 800u);
  EXPECT_FALSE(old->more);
}

TEST_F(RangePagerTest, APageThatDoesNotFitIsHalved) {
  Fill();
  CountRanges(2, "received message larger than max");
  const Result<RangeResult> all = Range({.prefix = "a/"});
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_EQ(all->entries.size(), static_cast<std::size_t>(kKeys));
  EXPECT_EQ(ranges_, 2 + 4) << "125, 250, 500, the rest";
  CountRanges(1'000, "received message larger than max");
  EXPECT_FALSE(Range({.prefix = "a/"}).ok()) << "a single key cannot be halved";
  EXPECT_EQ(ranges_, 9) << "500, 250, 125, ... 1";
  CountRanges(1, "etcdserver: mvcc: database space exceeded");
  const Result<RangeResult> full = Range({.prefix = "a/"});
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace drakkar::storage
