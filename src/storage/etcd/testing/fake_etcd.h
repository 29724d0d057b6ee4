#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/exec/event_loop.h"
#include "rpc/etcd/etcd.h"
#include "rpc/transport/transport.h"

namespace drakkar::storage {

// An etcd cluster in memory: revisions, transactions, watches, compaction, leases and status, as an
// etcd store uses them. etcd_api_contract_test.cc holds it to what a real etcd does. Serve the
// services of each member on a socket of its own, of any transport on `loop`.
//
// Loop-bound; outlives the servers.
class FakeEtcd {
 public:
  struct Options {
    std::string version = "3.6.0";
    // Watch responses take this long; each stream keeps its order.
    Duration watch_delay = Duration(0);
    // More events than this are split into fragments, if the watch allows that.
    std::size_t fragment_events = 1'000;
    // Progress reports overtake events, as in releases before 3.4.31 and 3.5.13.
    bool progress_overtakes = false;
  };

  FakeEtcd(EventLoop& loop, Options options);
  explicit FakeEtcd(EventLoop& loop);
  ~FakeEtcd();

  // The services of one member.
  std::vector<std::unique_ptr<rpc::RpcService>> Services();

  // Without a leader calls fail and watches end.
  void SetLeader(bool has_leader);
  void RevokeAll();
  // As if it was restored from an empty backup.
  void Wipe();
  // As if another cluster with the same data took its place.
  void ChangeCluster() { ++cluster_id_; }
  std::int64_t revision() const { return revision_; }
  std::int64_t compacted() const { return compacted_; }
  std::size_t open_watches() const { return watches_.size(); }
  std::size_t leases() const { return leases_.size(); }

 private:
  class Service;
  struct Watch;
  struct Stream;
  struct Version {
    rpc::etcd::KeyValue kv;
    bool deleted = false;
  };
  struct Lease {
    std::set<std::string> keys;
    TimerHandle timer;
  };

  rpc::etcd::Header MakeHeader(std::int64_t revision) const;
  void Handle(std::string_view method, const std::string& request,
              std::unique_ptr<rpc::ServerCall> call);
  void OpenStream(const std::string& first, std::unique_ptr<rpc::ServerCall> call);

  Result<std::string> Answer(std::string_view method, const std::string& request);
  Result<rpc::etcd::RangeResponse> Range(const rpc::etcd::RangeRequest& request) const;
  Result<rpc::etcd::TxnResponse> Txn(const rpc::etcd::TxnRequest& request);
  Result<std::string> Compact(const rpc::etcd::CompactRequest& request);
  Result<rpc::etcd::LeaseGrantResponse> Grant(const rpc::etcd::LeaseGrantRequest& request);
  void Revoke(std::int64_t lease);

  // The value at the newest revision; null if absent.
  const rpc::etcd::KeyValue* Find(const std::string& key) const;
  // The state of `key` at `revision`; null if absent.
  const rpc::etcd::KeyValue* FindAt(const std::string& key, std::int64_t revision) const;
  void Put(std::int64_t at, const rpc::etcd::PutRequest& put,
           std::vector<rpc::etcd::Event>& events);
  std::int64_t Delete(std::int64_t at, const rpc::etcd::DeleteRequest& deletion,
                      std::vector<rpc::etcd::Event>& events);
  // A new revision, if there are events.
  void Publish(std::int64_t at, std::vector<rpc::etcd::Event> events);

  void OnWatchRequest(const std::shared_ptr<Stream>& stream, const std::string& bytes);
  // Sends what the watch has not been sent.
  void Sync(const std::shared_ptr<Watch>& watch);
  void SendEvents(Watch& watch, std::vector<rpc::etcd::Event> events);
  void Send(const std::shared_ptr<Stream>& stream, rpc::etcd::WatchResponse response,
            bool in_order = true);
  void EndStream(const std::shared_ptr<Stream>& stream, const Error& why);

  EventLoop& loop_;
  const Options options_;
  bool has_leader_ = true;
  std::uint64_t cluster_id_ = 0xe7cd;
  std::int64_t revision_ = 1;
  std::int64_t compacted_ = 0;
  std::map<std::string, std::vector<Version>> keys_;
  std::map<std::int64_t, std::vector<rpc::etcd::Event>> history_;  // by revision
  std::map<std::int64_t, Lease> leases_;
  std::int64_t next_lease_ = 1;
  std::vector<std::shared_ptr<Watch>> watches_;
  std::vector<std::shared_ptr<Stream>> streams_;
};

}  // namespace drakkar::storage
