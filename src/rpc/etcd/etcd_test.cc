#include <gtest/gtest.h>

#include "rpc/etcd/etcd_codec.h"

namespace drakkar::rpc::etcd {
namespace {

const KeyValue kKv{.key = std::string("k\0\xff", 3),
                   .value = std::string("\x80\0v", 3),
                   .create_revision = 3,
                   .mod_revision = 1'234'567'890'123,
                   .version = 2,
                   .lease = -5};
const Header kHeader{.cluster_id = ~0ull, .member_id = 7, .revision = 9, .raft_term = 4};

TEST(EtcdCodec, EveryMessageSurvivesBothWays) {
  const RangeRequest range{.key = "a",
                           .range_end = "b",
                           .limit = 5,
                           .revision = 6,
                           .serializable = true,
                           .keys_only = true,
                           .count_only = true};
  EXPECT_EQ(DecodeRangeRequest(Encode(range)).value(), range);
  const RangeResponse ranged{.header = kHeader, .kvs = {kKv, {}}, .more = true, .count = 99};
  EXPECT_EQ(DecodeRangeResponse(Encode(ranged)).value(), ranged);
  const TxnRequest txn{{{"a", Compare::Target::kModRevision, 0},
                        {"b", Compare::Target::kVersion, 3},
                        {"c", Compare::Target::kCreateRevision, 4}},
                       {PutRequest{"a", "v", 8}, DeleteRequest{"b", "c"}, range},
                       {range}};
  EXPECT_EQ(DecodeTxnRequest(Encode(txn)).value(), txn);
  const TxnResponse answered{.header = kHeader,
                             .succeeded = true,
                             .responses = {PutResponse{}, DeleteResponse{3}, ranged}};
  EXPECT_EQ(DecodeTxnResponse(Encode(answered)).value(), answered);
  const CompactRequest compact{.revision = 8, .physical = true};
  EXPECT_EQ(DecodeCompactRequest(Encode(compact)).value(), compact);
  const WatchCreate create{.key = "a",
                           .range_end = "b",
                           .start_revision = 4,
                           .progress_notify = true,
                           .prev_kv = true,
                           .fragment = true};
  for (const WatchRequest& request :
       {WatchRequest(create), WatchRequest(WatchCancel{7}), WatchRequest(WatchProgress{})}) {
    EXPECT_EQ(DecodeWatchRequest(Encode(request)).value(), request);
  }
  const WatchResponse watched{.header = kHeader,
                              .watch_id = -1,
                              .created = true,
                              .canceled = true,
                              .compact_revision = 5,
                              .cancel_reason = "why",
                              .fragment = true,
                              .events = {{false, kKv, std::nullopt}, {true, {}, kKv}}};
  EXPECT_EQ(DecodeWatchResponse(Encode(watched)).value(), watched);
  const LeaseGrantRequest grant{.ttl_seconds = 60, .id = 9};
  EXPECT_EQ(DecodeLeaseGrantRequest(Encode(grant)).value(), grant);
  const LeaseGrantResponse granted{.header = kHeader, .id = 9, .ttl_seconds = 61};
  EXPECT_EQ(DecodeLeaseGrantResponse(Encode(granted)).value(), granted);
  const StatusResponse status{.header = kHeader,
                              .version = "3.5.0",
                              .db_size_bytes = 4'096,
                              .leader = 1,
                              .is_learner = true};
  EXPECT_EQ(DecodeStatusResponse(Encode(status)).value(), status);
  EXPECT_EQ(DecodeLeaseRevoke(EncodeLeaseRevoke(11)).value(), 11);
  EXPECT_EQ(DecodeHeaderOnly(EncodeHeaderOnly(kHeader)).value(), kHeader);
}

TEST(EtcdCodec, BytesThatAreNoMessageAreAnError) {
  const std::string cut = Encode(RangeResponse{.header = kHeader, .kvs = {kKv}});
  EXPECT_EQ(DecodeRangeResponse(cut.substr(0, cut.size() - 1)).error().message,
            "malformed protobuf message RangeResponse");
  EXPECT_FALSE(DecodeWatchResponse("\xff").ok());
  EXPECT_FALSE(DecodeWatchRequest("").ok());
  // A comparison of values, and an operation that is a transaction itself.
  EXPECT_EQ(DecodeTxnRequest(std::string("\x0a\x02\x10\x03", 4)).error().message,
            "unsupported comparison");
  EXPECT_EQ(DecodeTxnRequest(std::string("\x12\x02\x22\x00", 4)).error().message,
            "unsupported operation in a transaction");
}

TEST(EtcdCodec, TheEndOfAPrefixIsBehindAllItsKeys) {
  EXPECT_EQ(PrefixEnd("a"), "b");
  EXPECT_EQ(PrefixEnd("/registry/"), "/registry0");
  EXPECT_EQ(PrefixEnd("a\xff"), "b");
  EXPECT_EQ(PrefixEnd(""), std::string(1, '\0'));
  EXPECT_EQ(PrefixEnd("\xff\xff"), std::string(1, '\0'));
}

}  // namespace
}  // namespace drakkar::rpc::etcd
