#include "storage/etcd/testing/api_contract.h"

#include <gmock/gmock.h>

#include "rpc/etcd/etcd_codec.h"

namespace drakkar::storage {

namespace etcd = rpc::etcd;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void EtcdApiContract::SetUp() {
  harness_ = GetParam().make();
  if (harness_ == nullptr) GTEST_SKIP() << GetParam().name << " is not on this machine";
}

Result<std::string> EtcdApiContract::Call(const char* method, const std::string& request) {
  auto result = std::make_shared<std::optional<Result<std::string>>>();
  harness_->Do([&] {
    harness_->channel().Call(method, request, std::chrono::seconds(20),
                             [result](auto given) { *result = std::move(given); });
  });
  harness_->WaitUntil([&] { return result->has_value(); });
  return std::move(**result);
}

Result<etcd::RangeResponse> EtcdApiContract::Range(const etcd::RangeRequest& request) {
  ASSIGN_OR_RETURN(const std::string response, Call(etcd::kRangeMethod, Encode(request)));
  return etcd::DecodeRangeResponse(response);
}

Result<etcd::TxnResponse> EtcdApiContract::Txn(const etcd::TxnRequest& request) {
  ASSIGN_OR_RETURN(const std::string response, Call(etcd::kTxnMethod, Encode(request)));
  return etcd::DecodeTxnResponse(response);
}

std::int64_t EtcdApiContract::Put(const std::string& key, const std::string& value,
                                  std::int64_t lease) {
  const auto response = Txn({{}, {etcd::PutRequest{key, value, lease}}, {}});
  EXPECT_TRUE(response.ok());
  return response.ok() ? response->header.revision : 0;
}

std::int64_t EtcdApiContract::Delete(const std::string& key) {
  const auto response = Txn({{}, {etcd::DeleteRequest{key, ""}}, {}});
  EXPECT_TRUE(response.ok());
  return response.ok() ? response->header.revision : 0;
}

Result<void> EtcdApiContract::Compact(std::int64_t revision) {
  const auto response = Call(etcd::kCompactMethod, Encode(etcd::CompactRequest{revision, true}));
  if (!response.ok()) return response.error();
  return Ok();
}

std::shared_ptr<EtcdApiContract::WatchLog> EtcdApiContract::Watch(const etcd::WatchCreate& create) {
  auto log = std::make_shared<WatchLog>();
  harness_->Do([&] {
    rpc::StreamCallbacks callbacks;
    callbacks.on_message = [raw = log.get()](const std::string& message) {
      Result<etcd::WatchResponse> response = etcd::DecodeWatchResponse(message);
      ASSERT_TRUE(response.ok());
      raw->responses.push_back(*std::move(response));
    };
    callbacks.on_end = [raw = log.get()](const Result<void>&) { raw->ended = true; };
    log->stream = harness_->channel().Open({.method = etcd::kWatchMethod}, std::move(callbacks));
    log->stream->Send(Encode(etcd::WatchRequest(create)));
  });
  harness_->WaitUntil([&] { return !log->responses.empty() || log->ended; });
  return log;
}

void EtcdApiContract::Send(const std::shared_ptr<WatchLog>& log,
                           const etcd::WatchRequest& request) {
  harness_->Do([&] { log->stream->Send(Encode(request)); });
}

void EtcdApiContract::End(const std::shared_ptr<WatchLog>& log) {
  harness_->Do([&] { log->stream.reset(); });
}

std::vector<std::string> EtcdApiContract::Events(const std::shared_ptr<WatchLog>& log,
                                                 std::size_t count) {
  const auto all = [&] {
    std::vector<std::string> lines;
    for (const etcd::WatchResponse& response : log->responses) {
      for (const etcd::Event& event : response.events) {
        lines.push_back(event.kv.key + (event.is_delete ? "-" : "=" + event.kv.value) + "@" +
                        std::to_string(event.kv.mod_revision));
      }
    }
    return lines;
  };
  harness_->WaitUntil([&] { return all().size() >= count || log->ended; });
  std::vector<std::string> lines;
  harness_->Do([&] { lines = all(); });
  return lines;
}

namespace {

const std::string kZero(1, '\0');

TEST_P(EtcdApiContract, AnEmptyStoreIsAtRevisionOne) {
  const auto all = Range({.key = kZero, .range_end = kZero});
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->header.revision, 1);
  EXPECT_NE(all->header.cluster_id, 0u);
  EXPECT_TRUE(all->kvs.empty());
  const auto status = etcd::DecodeStatusResponse(Call(etcd::kStatusMethod, "").value());
  ASSERT_TRUE(status.ok());
  EXPECT_THAT(status->version, HasSubstr("3."));
  EXPECT_NE(status->leader, 0u);
  EXPECT_EQ(status->header.cluster_id, all->header.cluster_id);
}

TEST_P(EtcdApiContract, RangesAreSortedCountedAndCut) {
  for (const char* key : {"b/2", "b/10", "a", "c", "b"}) Put(key, key);
  const auto page = Range({.key = "b/", .range_end = etcd::PrefixEnd("b/"), .limit = 1});
  ASSERT_TRUE(page.ok());
  ASSERT_EQ(page->kvs.size(), 1u);
  EXPECT_EQ(page->kvs[0].key, "b/10");
  EXPECT_TRUE(page->more);
  EXPECT_EQ(page->count, 2);
  const auto rest = Range({.key = "b/10" + kZero, .range_end = etcd::PrefixEnd("b/"), .limit = 5});
  EXPECT_EQ(rest->kvs.size(), 1u);
  EXPECT_FALSE(rest->more);
  EXPECT_EQ(rest->count, 1);
  const auto count = Range({.key = kZero, .range_end = kZero, .count_only = true});
  EXPECT_EQ(count->count, 5);
  EXPECT_TRUE(count->kvs.empty());
  const auto keys = Range({.key = "a", .keys_only = true});
  EXPECT_EQ(keys->kvs.at(0).value, "");
  EXPECT_EQ(keys->kvs[0].mod_revision, 4);
  EXPECT_TRUE(Range({.key = "z", .range_end = "c"})->kvs.empty()) << "an end before the start";
}

TEST_P(EtcdApiContract, AKeyHasTheRevisionsOfItsLife) {
  Put("a", "1");
  Put("a", "2");
  Put("b", "1");
  auto kv = Range({.key = "a"})->kvs.at(0);
  EXPECT_EQ(kv.create_revision, 2);
  EXPECT_EQ(kv.mod_revision, 3);
  EXPECT_EQ(kv.version, 2);
  EXPECT_EQ(Range({.key = "a", .revision = 2})->kvs.at(0).value, "1");
  EXPECT_EQ(Range({.key = "a", .revision = 2})->header.revision, 4) << "the newest, always";
  Delete("a");
  EXPECT_TRUE(Range({.key = "a"})->kvs.empty());
  Put("a", "3");
  kv = Range({.key = "a"})->kvs.at(0);
  EXPECT_EQ(kv.create_revision, 6);
  EXPECT_EQ(kv.version, 1);
}

TEST_P(EtcdApiContract, ATransactionTakesOneBranchAtOneRevision) {
  using Target = etcd::Compare::Target;
  const etcd::TxnRequest create{{{"a", Target::kModRevision, 0}, {"b", Target::kVersion, 0}},
                                {etcd::PutRequest{"a", "1"}, etcd::PutRequest{"b", "1"}},
                                {etcd::RangeRequest{.key = "a"}, etcd::RangeRequest{.key = "b"}}};
  const auto created = Txn(create);
  ASSERT_TRUE(created.ok());
  EXPECT_TRUE(created->succeeded);
  EXPECT_EQ(created->header.revision, 2);
  EXPECT_EQ(created->responses.size(), 2u);
  const auto again = Txn(create);
  EXPECT_FALSE(again->succeeded);
  EXPECT_EQ(again->header.revision, 2);
  ASSERT_EQ(again->responses.size(), 2u);
  EXPECT_EQ(std::get<etcd::RangeResponse>(again->responses[1]).kvs.at(0).mod_revision, 2);
  const auto update = Txn({{{"a", Target::kModRevision, 2}, {"b", Target::kCreateRevision, 2}},
                           {etcd::DeleteRequest{"b", ""}, etcd::PutRequest{"a", "2"}},
                           {}});
  EXPECT_TRUE(update->succeeded);
  EXPECT_EQ(std::get<etcd::DeleteResponse>(update->responses.at(0)).deleted, 1);
  const auto nothing = Txn({{}, {etcd::DeleteRequest{"b", ""}}, {}});
  EXPECT_TRUE(nothing->succeeded);
  EXPECT_EQ(nothing->header.revision, 3) << "without an effect there is no revision";
}

TEST_P(EtcdApiContract, AMalformedTransactionIsRefused) {
  const auto twice = Txn({{}, {etcd::PutRequest{"a", "1"}, etcd::PutRequest{"a", "2"}}, {}});
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(twice.error().message, HasSubstr("etcdserver: duplicate key given in txn request"));
  const auto empty = Txn({{}, {etcd::PutRequest{"", "1"}}, {}});
  EXPECT_THAT(empty.error().message, HasSubstr("etcdserver: key is not provided"));
  etcd::TxnRequest large;
  for (int i = 0; i < 129; ++i) large.success.push_back(etcd::PutRequest{std::to_string(i), "x"});
  EXPECT_THAT(Txn(large).error().message, HasSubstr("too many operations in txn request"));
}

TEST_P(EtcdApiContract, CompactionForgetsReplacedVersions) {
  Put("a", "1");
  Put("a", "2");
  Put("a", "3");
  ASSERT_TRUE(Compact(3).ok());
  const auto gone = Range({.key = "a", .revision = 2});
  ASSERT_FALSE(gone.ok());
  EXPECT_THAT(gone.error().message,
              HasSubstr("etcdserver: mvcc: required revision has been compacted"));
  EXPECT_EQ(gone.error().code, ErrorCode::kExpired);
  EXPECT_EQ(Range({.key = "a", .revision = 3})->kvs.at(0).value, "2");
  EXPECT_THAT(Compact(3).error().message, HasSubstr("required revision has been compacted"));
  EXPECT_THAT(Compact(9).error().message, HasSubstr("required revision is a future revision"));
  EXPECT_THAT(Range({.key = "a", .revision = 9}).error().message,
              HasSubstr("required revision is a future revision"));
}

TEST_P(EtcdApiContract, AWatchDeliversHistoryAndThenWhatHappens) {
  Put("k/a", "1");
  Put("other", "1");
  Put("k/a", "2");
  auto log = Watch(
      {.key = "k/", .range_end = etcd::PrefixEnd("k/"), .start_revision = 2, .prev_kv = true});
  harness_->Do([&] {
    EXPECT_TRUE(log->responses.at(0).created);
    EXPECT_TRUE(log->responses[0].events.empty());
  });
  EXPECT_THAT(Events(log, 2), ElementsAre("k/a=1@2", "k/a=2@4"));
  Delete("k/a");
  Put("k/b", "1");
  EXPECT_THAT(Events(log, 4), ElementsAre("k/a=1@2", "k/a=2@4", "k/a-@5", "k/b=1@6"));
  harness_->Do([&] {
    std::vector<etcd::Event> events;
    for (const auto& response : log->responses) {
      events.insert(events.end(), response.events.begin(), response.events.end());
    }
    EXPECT_FALSE(events.at(0).prev_kv.has_value());
    EXPECT_EQ(events.at(1).prev_kv->value, "1");
    EXPECT_EQ(events.at(2).prev_kv->value, "2");
    EXPECT_EQ(events.at(2).prev_kv->create_revision, 2);
    EXPECT_EQ(events.at(2).kv.create_revision, 0);
  });
  End(log);
}

TEST_P(EtcdApiContract, AWatchOfAllKeysSeesEveryRevision) {
  auto log = Watch({.key = kZero, .range_end = kZero, .start_revision = 2});
  std::vector<std::string> expected;
  for (int i = 0; i < 20; ++i) {
    expected.push_back("k" + std::to_string(i) + "=x@" +
                       std::to_string(Put("k" + std::to_string(i), "x")));
  }
  EXPECT_EQ(Events(log, 20), expected);
  End(log);
}

TEST_P(EtcdApiContract, AWatchBehindMoreThanABatchGetsWholeRevisions) {
  for (int i = 0; i < 1'100; ++i) {
    ASSERT_TRUE(Txn({{}, {etcd::PutRequest{"a", "x"}, etcd::PutRequest{"b", "x"}}, {}}).ok());
  }
  auto log = Watch({.key = "a", .range_end = "c", .start_revision = 2});
  EXPECT_EQ(Events(log, 2'200).size(), 2'200u);
  harness_->Do([&] {
    std::int64_t last = 1;
    for (const auto& response : log->responses) {
      if (response.events.empty()) continue;
      EXPECT_EQ(response.events.size() % 2, 0u) << "half a revision";
      EXPECT_EQ(response.events.front().kv.mod_revision, last + 1) << "a gap";
      last = response.events.back().kv.mod_revision;
      EXPECT_GE(response.header.revision, last);
    }
  });
  End(log);
}

TEST_P(EtcdApiContract, AWatchFromACompactedRevisionIsCanceled) {
  for (int i = 0; i < 5; ++i) Put("a", std::to_string(i));
  ASSERT_TRUE(Compact(5).ok());
  auto log = Watch({.key = "a", .start_revision = 3});
  harness_->WaitUntil(
      [&] { return log->ended || (!log->responses.empty() && log->responses.back().canceled); });
  harness_->Do([&] {
    ASSERT_FALSE(log->responses.empty());
    EXPECT_TRUE(log->responses.back().canceled);
    EXPECT_EQ(log->responses.back().compact_revision, 5);
  });
  End(log);
}

TEST_P(EtcdApiContract, AWatchFromTheFutureStartsThere) {
  auto log = Watch({.key = "a", .start_revision = 4});
  Put("a", "1");
  Put("a", "2");
  Put("a", "3");
  EXPECT_THAT(Events(log, 1), ElementsAre("a=3@4"));
  End(log);
}

// A watch that starts in the past may drop requests until it has caught up; this one does not.
TEST_P(EtcdApiContract, ProgressIsReportedOnRequestAndNotBeforeTheEvents) {
  if (!GetParam().has_reliable_progress) {
    GTEST_SKIP() << "progress reports of this release may overtake events";
  }
  auto log = Watch({.key = "k", .start_revision = 2});
  for (int i = 0; i < 50; ++i) {
    Put("k", "x");
    Send(log, etcd::WatchProgress{});
    const std::int64_t newest = Put("other", "x");
    Send(log, etcd::WatchProgress{});
    harness_->WaitUntil([&] {
      const auto& last = log->responses.back();
      const bool reported = last.events.empty() && !last.created && last.header.revision >= newest;
      return log->ended || reported;
    });
  }
  harness_->Do([&] {
    ASSERT_FALSE(log->ended);
    std::int64_t promised = 0;
    for (const auto& response : log->responses) {
      for (const etcd::Event& event : response.events) {
        EXPECT_GT(event.kv.mod_revision, promised) << "an event after progress beyond it";
      }
      if (response.events.empty() && !response.created) promised = response.header.revision;
    }
  });
  End(log);
}

TEST_P(EtcdApiContract, KeysGoWithTheirLeaseAtOneRevision) {
  const auto grant = etcd::DecodeLeaseGrantResponse(
      Call(etcd::kLeaseGrantMethod, Encode(etcd::LeaseGrantRequest{.ttl_seconds = 60})).value());
  ASSERT_TRUE(grant.ok());
  EXPECT_NE(grant->id, 0);
  EXPECT_EQ(grant->ttl_seconds, 60);
  Put("a", "1", grant->id);
  Put("b", "1", grant->id);
  Put("b", "2");  // which detaches it
  Put("c", "1", grant->id);
  EXPECT_EQ(Range({.key = "a"})->kvs.at(0).lease, grant->id);
  auto log = Watch({.key = kZero, .range_end = kZero});
  ASSERT_TRUE(Call(etcd::kLeaseRevokeMethod, etcd::EncodeLeaseRevoke(grant->id)).ok());
  EXPECT_THAT(Events(log, 2), ElementsAre("a-@6", "c-@6"));
  End(log);
  const auto unknown = Txn({{}, {etcd::PutRequest{"d", "1", 12'345}}, {}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(unknown.error().message, HasSubstr("etcdserver: requested lease not found"));
}

TEST_P(EtcdApiContract, ALeaseExpires) {
  const auto grant = etcd::DecodeLeaseGrantResponse(
      Call(etcd::kLeaseGrantMethod, Encode(etcd::LeaseGrantRequest{.ttl_seconds = 1})).value());
  ASSERT_TRUE(grant.ok());
  Put("a", "1", grant->id);
  auto log = Watch({.key = "a"});
  EXPECT_THAT(Events(log, 1), ElementsAre("a-@3"));
  End(log);
}

}  // namespace
}  // namespace drakkar::storage
