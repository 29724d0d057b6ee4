#include "storage/etcd/etcd_watch.h"

#include <algorithm>
#include <utility>

#include "rpc/etcd/etcd_codec.h"
#include "storage/etcd/server_version.h"

namespace drakkar::storage {
namespace {

namespace etcd = rpc::etcd;

// Between attempts to open a stream.
constexpr Backoff::Options kBackoff = {
    .initial = std::chrono::milliseconds(20), .max = std::chrono::seconds(1), .jitter = 0.5};
constexpr Duration kProbeTimeout = std::chrono::seconds(3);
// A member drops a progress request while it has not caught up, so the request is repeated.
constexpr Duration kProgressInterval = std::chrono::milliseconds(100);

}  // namespace

EtcdWatch::EtcdWatch(EventLoop& loop, Random& random, EtcdClient& client, std::string prefix,
                     Revision after, Callbacks callbacks)
    : loop_(loop),
      client_(client),
      callbacks_(std::make_shared<const Callbacks>(std::move(callbacks))),
      cursor_(std::move(prefix), after),
      backoff_(kBackoff, &random) {}

void EtcdWatch::Start() {
  Open();
}

void EtcdWatch::Open() {
  ++attempt_;
  created_ = false;
  stream_.reset();
  progress_timer_.reset();
  const std::optional<std::size_t> endpoint = client_.PickForStream(endpoint_);
  endpoint_ = endpoint;
  if (!endpoint) {
    waiter_ = client_.WhenConnected([this] {
      const std::unique_ptr<EtcdClient::Waiter> done = std::move(waiter_);
      Open();
    });
    return;
  }
  client_.channel(*endpoint).Start(
      {.method = etcd::kStatusMethod, .message = "", .timeout = kProbeTimeout},
      lifetime_.Guard([this, attempt = attempt_,
                       endpoint = *endpoint](const rpc::CallResult& result) {
        if (attempt != attempt_) return;
        if (!result.response.ok()) return OnLost(result.response.error());
        const Result<etcd::StatusResponse> status = etcd::DecodeStatusResponse(*result.response);
        if (!status.ok()) return OnLost(status.error());
        whole_keyspace_ = !HasReliableProgress(status->version);
        CheckHistory(endpoint);
      }));
}

// etcd compares the first revision of a watch with the compacted revision. If they are equal, it
// lets the watch start, although a deletion at exactly that revision may be lost. A range at the
// revision reached is then rejected.
void EtcdWatch::CheckHistory(std::size_t endpoint) {
  const etcd::RangeRequest probe{.key = std::string(1, '\0'),
                                 .revision = cursor_.reached(),
                                 .serializable = true,
                                 .count_only = true};
  client_.channel(endpoint).Start(
      {.method = etcd::kRangeMethod, .message = etcd::Encode(probe), .timeout = kProbeTimeout},
      lifetime_.Guard([this, attempt = attempt_, endpoint](const rpc::CallResult& result) {
        if (attempt != attempt_) return;
        if (!result.response.ok()) {
          const Error error = ToStoreError(result.response.error());
          if (error.code == ErrorCode::kExpired) return Close(error);
          // A member that lags behind does not have the revision yet.
          if (error.code != ErrorCode::kInvalidArgument) return OnLost(result.response.error());
        }
        OpenStream(endpoint);
      }));
}

void EtcdWatch::OpenStream(std::size_t endpoint) {
  rpc::StreamCallbacks callbacks;
  // An abandoned stream may still deliver until the next one replaces it.
  callbacks.on_message = [this, attempt = attempt_](std::string message) {
    if (attempt == attempt_) OnMessage(std::move(message));
  };
  callbacks.on_end = [this, attempt = attempt_](const Result<void>& result) {
    if (attempt != attempt_) return;
    OnLost(result.ok() ? Unavailable("the member ended the watch") : result.error());
  };
  // A member without a leader ends the stream instead of keeping it silent.
  stream_ = client_.channel(endpoint).Open(
      {.method = etcd::kWatchMethod, .metadata = {{"hasleader", "true"}}}, std::move(callbacks));
  stream_->Send(etcd::Encode(etcd::WatchRequest(cursor_.Resume(whole_keyspace_))));
}

void EtcdWatch::OnMessage(std::string message) {
  Result<etcd::WatchResponse> response = etcd::DecodeWatchResponse(message);
  if (!response.ok()) return OnLost(response.error());
  const Revision compacted = response->compact_revision;
  WatchCursor::Step step = cursor_.On(*std::move(response));
  const Lifetime::Observer self = lifetime_.Observe();
  const std::shared_ptr<const Callbacks> callbacks = callbacks_;
  if (compacted > 0 && callbacks->on_compacted) callbacks->on_compacted(compacted);
  if (!self.alive()) return;
  if (step.closed) return Close(*std::move(step.closed));
  if (step.lost) return OnLost(*step.lost);
  if (step.created) {
    created_ = true;
    backoff_.Reset();
  }
  if (step.up_to != 0) callbacks->on_events(step.events, step.up_to);
  if (!self.alive()) return;
  if (wanted_ <= cursor_.reached()) {
    progress_timer_.reset();
  } else if (step.created || (step.up_to != 0 && asked_ < wanted_)) {
    // The request in flight was sent before the revision that is wanted now.
    AskProgress();
  }
}

void EtcdWatch::WantProgress(Revision revision) {
  if (revision <= std::max(wanted_, cursor_.reached())) return;
  const bool asking = progress_timer_ != nullptr;
  wanted_ = revision;
  if (created_ && !asking) AskProgress();
}

void EtcdWatch::AskProgress() {
  // On the whole keyspace every revision arrives by itself.
  if (whole_keyspace_ || wanted_ <= cursor_.reached()) {
    progress_timer_.reset();
    return;
  }
  asked_ = wanted_;
  stream_->Send(etcd::Encode(etcd::WatchRequest(etcd::WatchProgress{})));
  progress_timer_ = loop_.RunAfter(kProgressInterval, [this] { AskProgress(); });
}

void EtcdWatch::OnLost(const Error&) {
  // The stream may be the caller of this; it is destroyed with the next attempt.
  if (endpoint_) client_.ReportFailure(*endpoint_);
  ++attempt_;
  created_ = false;
  progress_timer_.reset();
  timer_ = loop_.RunAfter(backoff_.Next(), [this] { Open(); });
}

void EtcdWatch::Close(Error why) {
  ++attempt_;
  created_ = false;
  timer_.reset();
  progress_timer_.reset();
  waiter_.reset();
  const std::shared_ptr<const Callbacks> callbacks = callbacks_;
  if (callbacks->on_closed) callbacks->on_closed(std::move(why));
}

}  // namespace drakkar::storage
