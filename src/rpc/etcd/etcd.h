#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace drakkar::rpc::etcd {

// The part of etcd's v3 API that a store needs, in plain types. Field names are etcd's.

inline constexpr char kRangeMethod[] = "/etcdserverpb.KV/Range";
inline constexpr char kTxnMethod[] = "/etcdserverpb.KV/Txn";
inline constexpr char kCompactMethod[] = "/etcdserverpb.KV/Compact";
inline constexpr char kWatchMethod[] = "/etcdserverpb.Watch/Watch";
inline constexpr char kLeaseGrantMethod[] = "/etcdserverpb.Lease/LeaseGrant";
inline constexpr char kLeaseRevokeMethod[] = "/etcdserverpb.Lease/LeaseRevoke";
inline constexpr char kStatusMethod[] = "/etcdserverpb.Maintenance/Status";

struct Header {
  std::uint64_t cluster_id = 0;
  std::uint64_t member_id = 0;
  std::int64_t revision = 0;
  std::uint64_t raft_term = 0;
  bool operator==(const Header&) const = default;
};

struct KeyValue {
  std::string key;
  std::string value;
  std::int64_t create_revision = 0;
  std::int64_t mod_revision = 0;
  std::int64_t version = 0;  // 1 when created, one more with each change
  std::int64_t lease = 0;    // 0: none
  bool operator==(const KeyValue&) const = default;
};

struct RangeRequest {
  std::string key;
  std::string range_end;      // exclusive; empty: `key` alone; "\0": everything from `key` on
  std::int64_t limit = 0;     // 0: none
  std::int64_t revision = 0;  // 0: the newest
  bool serializable = false;  // from the member's own, possibly stale, state
  bool keys_only = false;
  bool count_only = false;
  bool operator==(const RangeRequest&) const = default;
};

struct RangeResponse {
  Header header;
  std::vector<KeyValue> kvs;  // sorted by key
  bool more = false;          // `limit` cut it short
  std::int64_t count = 0;     // keys in the range, whatever the limit
  bool operator==(const RangeResponse&) const = default;
};

struct PutRequest {
  std::string key;
  std::string value;
  std::int64_t lease = 0;
  bool operator==(const PutRequest&) const = default;
};

struct DeleteRequest {
  std::string key;
  std::string range_end;  // as in RangeRequest
  bool operator==(const DeleteRequest&) const = default;
};

using RequestOp = std::variant<RangeRequest, PutRequest, DeleteRequest>;

// Holds if the number of `key` is `number`; every number of an absent key is 0.
struct Compare {
  enum class Target { kVersion, kCreateRevision, kModRevision };
  std::string key;
  Target target = Target::kModRevision;
  std::int64_t number = 0;
  bool operator==(const Compare&) const = default;
};

// All of `success` if every comparison holds, else all of `failure`; at one revision.
struct TxnRequest {
  std::vector<Compare> compare;
  std::vector<RequestOp> success;
  std::vector<RequestOp> failure;
  bool operator==(const TxnRequest&) const = default;
};

struct PutResponse {
  bool operator==(const PutResponse&) const = default;
};
struct DeleteResponse {
  std::int64_t deleted = 0;
  bool operator==(const DeleteResponse&) const = default;
};
using ResponseOp = std::variant<RangeResponse, PutResponse, DeleteResponse>;

struct TxnResponse {
  Header header;
  bool succeeded = false;
  std::vector<ResponseOp> responses;  // one per operation of the branch taken
  bool operator==(const TxnResponse&) const = default;
};

struct CompactRequest {
  std::int64_t revision = 0;
  bool physical = false;  // answer once the data has been removed
  bool operator==(const CompactRequest&) const = default;
};

struct WatchCreate {
  std::string key;
  std::string range_end;            // as in RangeRequest
  std::int64_t start_revision = 0;  // inclusive; 0: from now on
  bool progress_notify = false;
  bool prev_kv = false;
  bool fragment = false;  // large responses may be split
  bool operator==(const WatchCreate&) const = default;
};
struct WatchCancel {
  std::int64_t watch_id = 0;
  bool operator==(const WatchCancel&) const = default;
};
struct WatchProgress {
  bool operator==(const WatchProgress&) const = default;
};
using WatchRequest = std::variant<WatchCreate, WatchCancel, WatchProgress>;

struct Event {
  bool is_delete = false;
  KeyValue kv;  // of a deletion: key and mod_revision only
  std::optional<KeyValue> prev_kv;
  bool operator==(const Event&) const = default;
};

struct WatchResponse {
  Header header;
  std::int64_t watch_id = 0;
  bool created = false;
  bool canceled = false;
  std::int64_t compact_revision =
      0;  // canceled because the requested revisions have been compacted
  std::string cancel_reason;
  bool fragment = false;  // more of the same response follows
  std::vector<Event> events;
  bool operator==(const WatchResponse&) const = default;
};

struct LeaseGrantRequest {
  std::int64_t ttl_seconds = 0;
  std::int64_t id = 0;  // 0: the server chooses
  bool operator==(const LeaseGrantRequest&) const = default;
};
struct LeaseGrantResponse {
  Header header;
  std::int64_t id = 0;
  std::int64_t ttl_seconds = 0;
  bool operator==(const LeaseGrantResponse&) const = default;
};

struct StatusResponse {
  Header header;
  std::string version;  // "3.4.23"
  std::int64_t db_size_bytes = 0;
  std::uint64_t leader = 0;  // 0: the member knows of none
  bool is_learner = false;
  bool operator==(const StatusResponse&) const = default;
};

// The end of the range of all keys that start with `prefix`; of all keys if it is empty.
std::string PrefixEnd(std::string_view prefix);

}  // namespace drakkar::rpc::etcd
