#include "storage/etcd/etcd_client.h"

#include <algorithm>
#include <utility>

#include "base/exec/backoff.h"
#include "base/text/text.h"

namespace drakkar::storage {
namespace {

// Between rounds of attempts.
constexpr Backoff::Options kBackoff = {
    .initial = std::chrono::milliseconds(25), .max = std::chrono::milliseconds(500), .jitter = 0.5};

constexpr Duration kReconnectMin = std::chrono::milliseconds(100);
constexpr Duration kReconnectMax = std::chrono::seconds(2);
constexpr Duration kConnectTimeout = std::chrono::seconds(5);
// etcd closes connections that ping more often than every five seconds.
constexpr Duration kKeepaliveInterval = std::chrono::seconds(10);
constexpr Duration kKeepaliveTimeout = std::chrono::seconds(5);
// When a member's machine is lost, calls to it fail after this, and the next ones go elsewhere.
constexpr Duration kUnacknowledgedTimeout = std::chrono::seconds(3);
// Ranges are read in pages that stay far below this.
constexpr std::size_t kMaxResponseBytes = 256u << 20;

// The text of etcd's own errors, as gRPC delivers them.
constexpr std::string_view kDescription = " desc = ";
std::string_view DescriptionOf(const Error& error) {
  const std::size_t at = error.message.find(kDescription);
  if (at == std::string::npos) return error.message;
  return std::string_view(error.message).substr(at + kDescription.size());
}

// In an error.
constexpr std::size_t kMaxNamedMembers = 5;

constexpr std::string_view kTooManyRequests = "etcdserver: too many requests";

}  // namespace

Fate FateOf(const Error& error, bool unprocessed) {
  const std::string_view description = DescriptionOf(error);
  // etcd rejects these before it proposes them.
  if (unprocessed || description == kTooManyRequests) return Fate::kUntouched;
  switch (error.code) {
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadlineExceeded:
    case ErrorCode::kCancelled:
    case ErrorCode::kInternal:
    case ErrorCode::kDataLoss:
    case ErrorCode::kConflict:
      return Fate::kUnknown;
    case ErrorCode::kResourceExhausted:
      // Ours, for a response that is too large, or etcd's, for a full database.
      return description.starts_with("etcdserver: ") ? Fate::kRefused : Fate::kUnknown;
    default:
      return Fate::kRefused;
  }
}

bool IsTooLarge(const Error& error) {
  return error.code == ErrorCode::kResourceExhausted &&
         error.message.find("larger than max") != std::string::npos;
}

Error ToStoreError(const Error& error) {
  const std::string description(DescriptionOf(error));
  if (description.find("revision has been compacted") != std::string::npos) {
    return {ErrorCode::kExpired, description};
  }
  if (description.find("is a future revision") != std::string::npos) {
    return InvalidArgument(description);
  }
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kForbidden:
    case ErrorCode::kUnauthenticated:
    case ErrorCode::kResourceExhausted:
    case ErrorCode::kNotFound:
      return {error.code, description};
    default:
      return Unavailable(StrCat("etcd: ", description));
  }
}

struct EtcdClient::PendingCall {
  explicit PendingCall(Random& random) : backoff(kBackoff, &random) {}

  std::uint64_t id = 0;
  std::string method;
  std::string request;
  Safety safety = Safety::kRepeatable;
  Done done;
  MonotonicTime deadline{};
  std::vector<bool> tried;  // in this round, by endpoint
  Backoff backoff;
  bool may_have_run = false;  // the outcome of an attempt is unknown
  std::optional<Error> last_error;
  TimerHandle timer;               // the next attempt, or the end of the wait for a connection
  std::unique_ptr<Waiter> waiter;  // while no member is connected
};

class EtcdClient::WaiterHandle final : public Waiter {
 public:
  WaiterHandle(EtcdClient& client, std::uint64_t id)
      : client_(client), owner_(client.lifetime_.Observe()), id_(id) {}
  ~WaiterHandle() override {
    if (owner_.alive()) client_.waiters_.erase(id_);
  }

 private:
  EtcdClient& client_;
  const Lifetime::Observer owner_;
  const std::uint64_t id_;
};

EtcdClient::EtcdClient(EventLoop& loop, Random& random, rpc::Transport& transport,
                       EtcdClientOptions options)
    : loop_(loop),
      random_(random),
      options_(std::move(options)),
      picker_(options_.endpoints.size()),
      unreachable_(options_.endpoints.size()) {
  for (std::size_t i = 0; i < options_.endpoints.size(); ++i) {
    const EtcdEndpoint& endpoint = options_.endpoints[i];
    rpc::ChannelOptions channel;
    channel.socket_path = endpoint.socket_path;
    channel.host = endpoint.host;
    channel.port = endpoint.port;
    if (endpoint.is_tls) channel.tls = options_.tls;
    if (!endpoint.host.empty()) {
      const bool is_ipv6 = endpoint.host.find(':') != std::string::npos;
      channel.authority = is_ipv6 ? StrCat("[", endpoint.host, "]:", endpoint.port)
                                  : StrCat(endpoint.host, ":", endpoint.port);
    }
    channel.max_message_bytes = kMaxResponseBytes;
    channel.initial_backoff = kReconnectMin;
    channel.max_backoff = kReconnectMax;
    channel.connect_timeout = kConnectTimeout;
    channel.keepalive_interval = kKeepaliveInterval;
    channel.keepalive_timeout = kKeepaliveTimeout;
    channel.unacknowledged_timeout = kUnacknowledgedTimeout;
    channel.on_connection_change = [this, i](bool connected) { OnConnectionChange(i, connected); };
    channel.on_connect_failed = [this, i](const std::string& why) { unreachable_[i] = why; };
    channels_.push_back(transport.OpenChannel(std::move(channel)));
  }
}

EtcdClient::~EtcdClient() {
  lifetime_.End();
  // Calls own timers and waiters that point to this object.
  for (const auto& [id, call] : std::exchange(calls_, {})) {
    call->done = nullptr;
    call->timer.reset();
    call->waiter.reset();
  }
}

void EtcdClient::OnConnectionChange(std::size_t endpoint, bool connected) {
  if (!connected) return picker_.OnDisconnected(endpoint);
  picker_.OnConnected(endpoint);
  unreachable_[endpoint].clear();
  const Lifetime::Observer self = lifetime_.Observe();
  // Do not run those that a task adds.
  const std::uint64_t first_later = next_waiter_;
  while (self.alive() && !waiters_.empty() && waiters_.begin()->first < first_later) {
    const std::function<void()> task = std::move(waiters_.begin()->second);
    waiters_.erase(waiters_.begin());
    task();
  }
}

std::unique_ptr<EtcdClient::Waiter> EtcdClient::WhenConnected(std::function<void()> task) {
  const std::uint64_t id = next_waiter_++;
  if (picker_.IsAnyConnected()) {
    loop_.Post(lifetime_.Guard([this, id] {
      const auto found = waiters_.find(id);
      if (found == waiters_.end()) return;
      const std::function<void()> run = std::move(found->second);
      waiters_.erase(found);
      run();
    }));
  }
  waiters_.emplace(id, std::move(task));
  return std::make_unique<WaiterHandle>(*this, id);
}

std::optional<std::size_t> EtcdClient::PickForStream(std::optional<std::size_t> avoid) {
  std::vector<bool> tried(channels_.size());
  const MonotonicTime now = loop_.clock().Monotonic();
  if (avoid) tried[*avoid] = true;
  if (const std::optional<std::size_t> other = picker_.Pick(tried, now)) return other;
  return picker_.Pick({}, now);
}

void EtcdClient::ReportFailure(std::size_t endpoint) {
  picker_.OnFailure(endpoint, loop_.clock().Monotonic());
}

std::optional<Error> EtcdClient::outage() const {
  if (!picker_.IsAnyConnected()) {
    return last_failure_ ? *last_failure_ : Unavailable("etcd: not connected");
  }
  return last_failure_;
}

void EtcdClient::Call(std::string method, std::string request, Safety safety, Done done) {
  loop_.AssertInLoop();
  auto call = std::make_shared<PendingCall>(random_);
  call->id = next_call_++;
  call->method = std::move(method);
  call->request = std::move(request);
  call->safety = safety;
  call->done = std::move(done);
  call->deadline = loop_.clock().Monotonic() + options_.total_timeout;
  calls_.emplace(call->id, call);
  if (calls_.size() > options_.max_calls) {
    loop_.Post(lifetime_.Guard([this, call] {
      Finish(call, {Error{ErrorCode::kResourceExhausted,
                          StrCat(options_.max_calls, " calls to etcd are in flight")},
                    Fate::kUntouched});
    }));
    return;
  }
  Attempt(call);
}

void EtcdClient::Attempt(const CallPointer& call) {
  const MonotonicTime now = loop_.clock().Monotonic();
  if (now >= call->deadline) return FailAtDeadline(call);
  const std::optional<std::size_t> endpoint = picker_.Pick(call->tried, now);
  if (!endpoint) {
    if (picker_.IsAnyConnected()) return RetryLater(call);
    call->tried.clear();
    const Duration patience = std::min(options_.connect_patience, call->deadline - now);
    call->timer = loop_.RunAfter(patience, [this, call] {
      call->waiter.reset();
      FailAtDeadline(call);
    });
    call->waiter = WhenConnected([this, call] {
      call->timer.reset();
      // Handed over, because the attempt may want to wait again.
      const std::unique_ptr<Waiter> done = std::move(call->waiter);
      Attempt(call);
    });
    return;
  }
  call->tried.resize(channels_.size());
  call->tried[*endpoint] = true;
  rpc::CallRequest request;
  request.method = call->method;
  request.message = call->request;
  request.timeout = std::min(options_.attempt_timeout, call->deadline - now);
  channels_[*endpoint]->Start(std::move(request),
                              [this, call, endpoint = *endpoint](rpc::CallResult result) {
                                OnResult(call, endpoint, std::move(result));
                              });
}

void EtcdClient::OnResult(const CallPointer& call, std::size_t endpoint, rpc::CallResult result) {
  if (result.response.ok()) {
    picker_.OnSuccess(endpoint);
    last_failure_ = std::nullopt;
    return Finish(call, {std::move(result.response)});
  }
  const Fate fate = FateOf(result.response.error(), result.unprocessed);
  call->last_error = std::move(result.response).error();
  if (fate == Fate::kRefused) {
    picker_.OnSuccess(endpoint);
    last_failure_ = std::nullopt;
    return Finish(call, {*call->last_error, call->may_have_run ? Fate::kUnknown : Fate::kRefused});
  }
  if (IsTooLarge(*call->last_error)) {
    picker_.OnSuccess(endpoint);
    last_failure_ = std::nullopt;
    return Finish(call, {*call->last_error, Fate::kUnknown});
  }
  picker_.OnFailure(endpoint, loop_.clock().Monotonic());
  if (fate == Fate::kUnknown) call->may_have_run = true;
  if (call->may_have_run && call->safety == Safety::kOnce) {
    last_failure_ = ToStoreError(*call->last_error);
    return Finish(call, {*call->last_error, Fate::kUnknown});
  }
  Attempt(call);
}

void EtcdClient::RetryLater(const CallPointer& call) {
  call->tried.clear();
  const Duration left = call->deadline - loop_.clock().Monotonic();
  call->timer =
      loop_.RunAfter(std::min(call->backoff.Next(), left), [this, call] { Attempt(call); });
}

void EtcdClient::FailAtDeadline(const CallPointer& call) {
  Error error = call->last_error ? *call->last_error : NoConnection();
  last_failure_ = ToStoreError(error);
  Finish(call, {std::move(error), call->may_have_run ? Fate::kUnknown : Fate::kUntouched});
}

Error EtcdClient::NoConnection() const {
  std::vector<std::string> members;
  for (std::size_t i = 0; i < options_.endpoints.size() && i < kMaxNamedMembers; ++i) {
    members.push_back(StrCat(options_.endpoints[i].url, " (",
                             unreachable_[i].empty() ? "no answer" : unreachable_[i], ")"));
  }
  const std::size_t others = options_.endpoints.size() - members.size();
  return Unavailable(StrCat("no connection to ", Join(members, ", "),
                            others > 0 ? StrCat(" and ", others, " others") : ""));
}

void EtcdClient::Finish(const CallPointer& call, Outcome outcome) {
  if (calls_.erase(call->id) == 0) return;
  call->timer.reset();
  call->waiter.reset();
  Done done = std::move(call->done);
  done(std::move(outcome));
}

}  // namespace drakkar::storage
