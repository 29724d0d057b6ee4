#include "storage/etcd/testing/fake_etcd.h"

#include <algorithm>
#include <utility>

#include "base/text/text.h"
#include "rpc/etcd/etcd_codec.h"

namespace drakkar::storage {
namespace {

namespace etcd = rpc::etcd;

// As etcd's batches for a watch that is behind.
constexpr std::size_t kMaxBatchRevisions = 1'000;
constexpr std::size_t kMaxTxnOps = 128;

Error Compacted() {
  return {ErrorCode::kExpired, "etcdserver: mvcc: required revision has been compacted"};
}
Error FutureRevision() {
  return {ErrorCode::kExpired, "etcdserver: mvcc: required revision is a future revision"};
}

bool IsInRange(const std::string& key, const std::string& from, const std::string& end) {
  if (end.empty()) return key == from;
  if (end == std::string(1, '\0')) return key >= from;
  return key >= from && key < end;
}

}  // namespace

struct FakeEtcd::Stream {
  std::unique_ptr<rpc::ServerCall> call;
  std::int64_t next_watch = 0;
  std::deque<etcd::WatchResponse> queue;  // on their way
  std::map<std::uint64_t, TimerHandle> timers;
  std::uint64_t next_timer = 0;
  bool open = true;
};

struct FakeEtcd::Watch {
  std::shared_ptr<Stream> stream;
  std::int64_t id = 0;
  etcd::WatchCreate create;
  std::int64_t next = 0;  // the first revision it has not been sent
};

class FakeEtcd::Service final : public rpc::RpcService {
 public:
  explicit Service(FakeEtcd& etcd) : etcd_(etcd) {}
  std::vector<std::string> MethodPaths() const override {
    return {etcd::kRangeMethod, etcd::kTxnMethod,        etcd::kCompactMethod,
            etcd::kWatchMethod, etcd::kLeaseGrantMethod, etcd::kLeaseRevokeMethod,
            etcd::kStatusMethod};
  }
  std::vector<std::string> StreamingPaths() const override { return {etcd::kWatchMethod}; }
  void Handle(std::string_view method, std::string request,
              std::unique_ptr<rpc::ServerCall> call) override {
    etcd_.Handle(method, request, std::move(call));
  }

 private:
  FakeEtcd& etcd_;
};

FakeEtcd::FakeEtcd(EventLoop& loop, Options options) : loop_(loop), options_(std::move(options)) {}
FakeEtcd::FakeEtcd(EventLoop& loop) : FakeEtcd(loop, Options()) {}
FakeEtcd::~FakeEtcd() = default;

std::vector<std::unique_ptr<rpc::RpcService>> FakeEtcd::Services() {
  std::vector<std::unique_ptr<rpc::RpcService>> services;
  services.push_back(std::make_unique<Service>(*this));
  return services;
}

void FakeEtcd::SetLeader(bool has_leader) {
  has_leader_ = has_leader;
  if (has_leader) return;
  for (const auto& stream : std::vector(streams_)) {
    EndStream(stream, Unavailable("etcdserver: no leader"));
  }
}

void FakeEtcd::RevokeAll() {
  while (!leases_.empty()) Revoke(leases_.begin()->first);
}

void FakeEtcd::Wipe() {
  for (const auto& stream : std::vector(streams_)) {
    EndStream(stream, Unavailable("etcdserver: server stopped"));
  }
  revision_ = 1;
  compacted_ = 0;
  keys_.clear();
  history_.clear();
  leases_.clear();
}

etcd::Header FakeEtcd::MakeHeader(std::int64_t revision) const {
  return {.cluster_id = cluster_id_, .member_id = 1, .revision = revision, .raft_term = 2};
}

void FakeEtcd::Handle(std::string_view method, const std::string& request,
                      std::unique_ptr<rpc::ServerCall> call) {
  if (method == etcd::kWatchMethod) return OpenStream(request, std::move(call));
  Result<std::string> answer = Answer(method, request);
  if (!answer.ok()) return call->Finish(std::move(answer).error());
  call->Send(*answer);
  call->Finish(Ok());
}

Result<std::string> FakeEtcd::Answer(std::string_view method, const std::string& request) {
  if (method == etcd::kStatusMethod) {
    return Encode(etcd::StatusResponse{.header = MakeHeader(revision_),
                                       .version = options_.version,
                                       .leader = has_leader_ ? 1u : 0u});
  }
  if (method == etcd::kRangeMethod) {
    ASSIGN_OR_RETURN(const auto range, etcd::DecodeRangeRequest(request));
    if (!has_leader_ && !range.serializable) return Unavailable("etcdserver: request timed out");
    ASSIGN_OR_RETURN(const auto response, Range(range));
    return Encode(response);
  }
  if (!has_leader_) return Unavailable("etcdserver: request timed out");
  if (method == etcd::kTxnMethod) {
    ASSIGN_OR_RETURN(const auto txn, etcd::DecodeTxnRequest(request));
    ASSIGN_OR_RETURN(const auto response, Txn(txn));
    return Encode(response);
  }
  if (method == etcd::kCompactMethod) {
    ASSIGN_OR_RETURN(const auto compact, etcd::DecodeCompactRequest(request));
    return Compact(compact);
  }
  if (method == etcd::kLeaseGrantMethod) {
    ASSIGN_OR_RETURN(const auto grant, etcd::DecodeLeaseGrantRequest(request));
    ASSIGN_OR_RETURN(const auto response, Grant(grant));
    return Encode(response);
  }
  ASSIGN_OR_RETURN(const std::int64_t lease, etcd::DecodeLeaseRevoke(request));
  if (!leases_.contains(lease)) return NotFound("etcdserver: requested lease not found");
  Revoke(lease);
  return EncodeHeaderOnly(MakeHeader(revision_));
}

const etcd::KeyValue* FakeEtcd::FindAt(const std::string& key, std::int64_t revision) const {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return nullptr;
  const Version* last = nullptr;
  for (const Version& version : found->second) {
    if (version.kv.mod_revision <= revision) last = &version;
  }
  return last == nullptr || last->deleted ? nullptr : &last->kv;
}

const etcd::KeyValue* FakeEtcd::Find(const std::string& key) const {
  const auto found = keys_.find(key);
  if (found == keys_.end() || found->second.back().deleted) return nullptr;
  return &found->second.back().kv;
}

Result<etcd::RangeResponse> FakeEtcd::Range(const etcd::RangeRequest& request) const {
  if (request.key.empty()) return InvalidArgument("etcdserver: key is not provided");
  if (request.revision > revision_) return FutureRevision();
  if (request.revision > 0 && request.revision < compacted_) return Compacted();
  const std::int64_t at = request.revision > 0 ? request.revision : revision_;
  etcd::RangeResponse response;
  response.header = MakeHeader(revision_);
  for (auto it = keys_.lower_bound(request.key); it != keys_.end(); ++it) {
    if (!IsInRange(it->first, request.key, request.range_end)) break;
    const etcd::KeyValue* kv = FindAt(it->first, at);
    if (kv == nullptr) continue;
    ++response.count;
    if (request.count_only) continue;
    if (request.limit > 0 && static_cast<std::int64_t>(response.kvs.size()) == request.limit) {
      response.more = true;
      continue;
    }
    response.kvs.push_back(*kv);
    if (request.keys_only) response.kvs.back().value.clear();
  }
  return response;
}

void FakeEtcd::Put(std::int64_t at, const etcd::PutRequest& put, std::vector<etcd::Event>& events) {
  const etcd::KeyValue* before = Find(put.key);
  etcd::Event event;
  event.kv = {.key = put.key,
              .value = put.value,
              .create_revision = before == nullptr ? at : before->create_revision,
              .mod_revision = at,
              .version = before == nullptr ? 1 : before->version + 1,
              .lease = put.lease};
  if (before != nullptr) {
    event.prev_kv = *before;
    if (before->lease != 0) leases_[before->lease].keys.erase(put.key);
  }
  if (put.lease != 0) leases_[put.lease].keys.insert(put.key);
  keys_[put.key].push_back({event.kv, false});
  events.push_back(std::move(event));
}

std::int64_t FakeEtcd::Delete(std::int64_t at, const etcd::DeleteRequest& deletion,
                              std::vector<etcd::Event>& events) {
  std::int64_t deleted = 0;
  for (auto& [key, versions] : keys_) {
    if (!IsInRange(key, deletion.key, deletion.range_end) || versions.back().deleted) continue;
    etcd::Event event;
    event.is_delete = true;
    event.kv = {.key = key, .value = {}, .mod_revision = at};
    event.prev_kv = versions.back().kv;
    if (event.prev_kv->lease != 0) leases_[event.prev_kv->lease].keys.erase(key);
    versions.push_back({event.kv, true});
    events.push_back(std::move(event));
    ++deleted;
  }
  return deleted;
}

Result<etcd::TxnResponse> FakeEtcd::Txn(const etcd::TxnRequest& request) {
  for (const auto* branch : {&request.success, &request.failure}) {
    if (branch->size() > kMaxTxnOps || request.compare.size() > kMaxTxnOps) {
      return InvalidArgument("etcdserver: too many operations in txn request");
    }
    std::set<std::string> puts;
    for (const etcd::RequestOp& operation : *branch) {
      const auto* put = std::get_if<etcd::PutRequest>(&operation);
      if (put == nullptr) continue;
      if (put->key.empty()) return InvalidArgument("etcdserver: key is not provided");
      if (!puts.insert(put->key).second) {
        return InvalidArgument("etcdserver: duplicate key given in txn request");
      }
      if (put->lease != 0 && !leases_.contains(put->lease)) {
        return NotFound("etcdserver: requested lease not found");
      }
    }
  }
  etcd::TxnResponse response;
  response.succeeded = true;
  for (const etcd::Compare& compare : request.compare) {
    const etcd::KeyValue* kv = Find(compare.key);
    std::int64_t number = 0;
    if (kv != nullptr) {
      number = compare.target == etcd::Compare::Target::kVersion          ? kv->version
               : compare.target == etcd::Compare::Target::kCreateRevision ? kv->create_revision
                                                                          : kv->mod_revision;
    }
    response.succeeded = response.succeeded && number == compare.number;
  }
  const std::int64_t at = revision_ + 1;
  std::vector<etcd::Event> events;
  for (const etcd::RequestOp& operation : response.succeeded ? request.success : request.failure) {
    if (const auto* range = std::get_if<etcd::RangeRequest>(&operation)) {
      ASSIGN_OR_RETURN(etcd::RangeResponse read, Range(*range));
      response.responses.emplace_back(std::move(read));
    } else if (const auto* put = std::get_if<etcd::PutRequest>(&operation)) {
      Put(at, *put, events);
      response.responses.emplace_back(etcd::PutResponse{});
    } else {
      const std::int64_t deleted = Delete(at, std::get<etcd::DeleteRequest>(operation), events);
      response.responses.emplace_back(etcd::DeleteResponse{deleted});
    }
  }
  Publish(at, std::move(events));
  response.header = MakeHeader(revision_);
  return response;
}

void FakeEtcd::Publish(std::int64_t at, std::vector<etcd::Event> events) {
  if (events.empty()) return;
  revision_ = at;
  history_[at] = std::move(events);
  for (const auto& watch : std::vector(watches_)) Sync(watch);
}

Result<std::string> FakeEtcd::Compact(const etcd::CompactRequest& request) {
  if (request.revision <= compacted_) return Compacted();
  if (request.revision > revision_) return FutureRevision();
  compacted_ = request.revision;
  for (auto it = keys_.begin(); it != keys_.end();) {
    std::vector<Version>& versions = it->second;
    // The last version up to the revision stays, unless it is a deletion.
    auto last = versions.end();
    for (auto each = versions.begin(); each != versions.end(); ++each) {
      if (each->kv.mod_revision <= compacted_) last = each;
    }
    if (last != versions.end()) versions.erase(versions.begin(), last->deleted ? last + 1 : last);
    it = versions.empty() ? keys_.erase(it) : std::next(it);
  }
  history_.erase(history_.begin(), history_.lower_bound(compacted_));
  // So it is with the events; what they replaced is gone, too.
  for (auto& [revision, events] : history_) {
    if (revision == compacted_)
      std::erase_if(events, [](const auto& each) { return each.is_delete; });
    for (etcd::Event& event : events) {
      if (revision <= compacted_) event.prev_kv = std::nullopt;
    }
  }
  return EncodeHeaderOnly(MakeHeader(revision_));
}

Result<etcd::LeaseGrantResponse> FakeEtcd::Grant(const etcd::LeaseGrantRequest& request) {
  if (request.ttl_seconds <= 0) return InvalidArgument("etcdserver: too large lease TTL");
  const std::int64_t id = request.id != 0 ? request.id : next_lease_++;
  if (leases_.contains(id)) return FailedPrecondition("etcdserver: lease already exists");
  leases_[id].timer =
      loop_.RunAfter(std::chrono::seconds(request.ttl_seconds), [this, id] { Revoke(id); });
  return etcd::LeaseGrantResponse{
      .header = MakeHeader(revision_), .id = id, .ttl_seconds = request.ttl_seconds};
}

void FakeEtcd::Revoke(std::int64_t lease) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return;
  const std::set<std::string> keys = found->second.keys;
  std::vector<etcd::Event> events;
  for (const std::string& key : keys) Delete(revision_ + 1, {key, ""}, events);
  leases_.erase(lease);
  Publish(revision_ + 1, std::move(events));
}

void FakeEtcd::OpenStream(const std::string& first, std::unique_ptr<rpc::ServerCall> call) {
  auto stream = std::make_shared<Stream>();
  stream->call = std::move(call);
  streams_.push_back(stream);
  stream->call->OnMessage(
      [this, stream](const std::string& bytes) { OnWatchRequest(stream, bytes); },
      [this, stream] { EndStream(stream, Unavailable("the client has finished")); });
  stream->call->OnCancelled([this, stream] {
    EndStream(stream, Error{ErrorCode::kCancelled, "the client has gone"});
  });
  if (!has_leader_) return EndStream(stream, Unavailable("etcdserver: no leader"));
  OnWatchRequest(stream, first);
}

void FakeEtcd::EndStream(const std::shared_ptr<Stream>& held, const Error& why) {
  const std::shared_ptr<Stream> stream = held;
  if (!std::exchange(stream->open, false)) return;
  std::erase_if(watches_, [&](const auto& watch) { return watch->stream == stream; });
  std::erase(streams_, stream);
  stream->timers.clear();
  // The call's callbacks hold the stream.
  const std::unique_ptr<rpc::ServerCall> call = std::move(stream->call);
  call->Finish(why);
}

void FakeEtcd::OnWatchRequest(const std::shared_ptr<Stream>& stream, const std::string& bytes) {
  if (!stream->open) return;
  const Result<etcd::WatchRequest> request = etcd::DecodeWatchRequest(bytes);
  if (!request.ok()) return EndStream(stream, request.error());
  if (const auto* create = std::get_if<etcd::WatchCreate>(&*request)) {
    auto watch = std::make_shared<Watch>();
    watch->stream = stream;
    watch->id = stream->next_watch++;
    watch->create = *create;
    watch->next = create->start_revision > 0 ? create->start_revision : revision_ + 1;
    watches_.push_back(watch);
    Send(stream, {.header = MakeHeader(revision_), .watch_id = watch->id, .created = true});
    return Sync(watch);
  }
  if (const auto* cancel = std::get_if<etcd::WatchCancel>(&*request)) {
    std::erase_if(watches_, [&](const auto& watch) {
      return watch->stream == stream && watch->id == cancel->watch_id;
    });
    return Send(stream,
                {.header = MakeHeader(revision_), .watch_id = cancel->watch_id, .canceled = true});
  }
  // No answer while a watch of the stream waits for a revision to come.
  for (const auto& watch : watches_) {
    if (watch->stream == stream && watch->next > revision_ + 1) return;
  }
  Send(stream, {.header = MakeHeader(revision_), .watch_id = -1}, !options_.progress_overtakes);
}

void FakeEtcd::Sync(const std::shared_ptr<Watch>& watch) {
  if (watch->next < compacted_) {
    Send(watch->stream, {.header = MakeHeader(revision_),
                         .watch_id = watch->id,
                         .canceled = true,
                         .compact_revision = compacted_});
    std::erase(watches_, watch);
    return;
  }
  while (watch->next <= revision_) {
    std::vector<etcd::Event> events;
    std::size_t revisions = 0;
    auto it = history_.lower_bound(watch->next);
    for (; it != history_.end() && revisions < kMaxBatchRevisions; ++it) {
      bool counts = false;
      for (const etcd::Event& event : it->second) {
        if (!IsInRange(event.kv.key, watch->create.key, watch->create.range_end)) continue;
        counts = true;
        events.push_back(event);
        if (!watch->create.prev_kv) events.back().prev_kv = std::nullopt;
      }
      revisions += counts ? 1 : 0;
    }
    watch->next = it == history_.end() ? revision_ + 1 : it->first;
    if (!events.empty()) SendEvents(*watch, std::move(events));
  }
}

void FakeEtcd::SendEvents(Watch& watch, std::vector<etcd::Event> events) {
  const std::size_t part = watch.create.fragment ? options_.fragment_events : events.size();
  for (std::size_t i = 0; i < events.size(); i += part) {
    etcd::WatchResponse response{.header = MakeHeader(revision_), .watch_id = watch.id};
    const std::size_t end = std::min(events.size(), i + part);
    response.fragment = end < events.size();
    for (std::size_t j = i; j < end; ++j) response.events.push_back(std::move(events[j]));
    Send(watch.stream, std::move(response));
  }
}

void FakeEtcd::Send(const std::shared_ptr<Stream>& stream, etcd::WatchResponse response,
                    bool in_order) {
  if (!stream->open) return;
  if (!in_order || (options_.watch_delay == Duration(0) && stream->queue.empty())) {
    return stream->call->Send(Encode(response));
  }
  stream->queue.push_back(std::move(response));
  const std::uint64_t id = stream->next_timer++;
  stream->timers.emplace(id, loop_.RunAfter(options_.watch_delay, [stream = stream.get(), id] {
    const auto timer = stream->timers.extract(id);
    const etcd::WatchResponse next = std::move(stream->queue.front());
    stream->queue.pop_front();
    stream->call->Send(Encode(next));
  }));
}

}  // namespace drakkar::storage
