#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "rpc/transport/transport.h"
#include "storage/etcd/endpoint.h"
#include "storage/etcd/endpoint_picker.h"

namespace drakkar::storage {

struct EtcdClientOptions {
  std::vector<EtcdEndpoint> endpoints;                 // at least one
  std::shared_ptr<const net::TlsContext> tls = {};     // for endpoints with TLS
  Duration attempt_timeout = std::chrono::seconds(5);  // one attempt at one member
  Duration total_timeout = std::chrono::seconds(10);   // a call with all its attempts
  // How long a call waits for a member while none is connected.
  Duration connect_patience = std::chrono::seconds(3);
  std::size_t max_calls = 10'000;  // in flight; beyond that kResourceExhausted
};

// What the failure of an attempt says about the call.
enum class Fate {
  kRefused,    // etcd answered: this will not work, and nothing happened
  kUntouched,  // no member has acted on it
  kUnknown,    // it may have happened
};

// `error` as a channel reported it.
Fate FateOf(const Error& error, bool unprocessed);
// Whether `error` means that a response does not fit into a message. Retrying does not help.
bool IsTooLarge(const Error& error);
// The failure of a call in the words and codes of storage::Store.
Error ToStoreError(const Error& error);

// Calls to an etcd cluster: connects to all members, distributes calls over them, and retries at
// the next member if that is safe. A repeatable call is retried after any failure, unless its
// response is too large; any other call only if no member has acted on it. Attempts continue until
// `total_timeout`, with a short backoff between rounds.
//
// Loop-bound. No callback runs inside a call, and none after destruction.
class EtcdClient {
 public:
  EtcdClient(EventLoop& loop, Random& random, rpc::Transport& transport, EtcdClientOptions options);
  ~EtcdClient();
  EtcdClient(const EtcdClient&) = delete;
  EtcdClient& operator=(const EtcdClient&) = delete;

  enum class Safety { kRepeatable, kOnce };
  struct Outcome {
    Result<std::string> response;
    Fate fate = Fate::kRefused;  // only with an error
  };
  using Done = absl::AnyInvocable<void(Outcome)>;
  void Call(std::string method, std::string request, Safety safety, Done done);

  // For streams: a connected member other than `avoid` if possible, and its channel.
  std::optional<std::size_t> PickForStream(std::optional<std::size_t> avoid);
  rpc::Channel& channel(std::size_t endpoint) { return *channels_[endpoint]; }
  const std::string& url(std::size_t endpoint) const { return options_.endpoints[endpoint].url; }
  void ReportFailure(std::size_t endpoint);
  // Runs `task` on the loop once a member is connected. Destroying the handle forgets it.
  class Waiter {
   public:
    virtual ~Waiter() = default;
  };
  [[nodiscard]] std::unique_ptr<Waiter> WhenConnected(std::function<void()> task);

  // Why calls fail at the moment; nullopt while they work.
  std::optional<Error> outage() const;
  std::size_t calls_in_flight() const { return calls_.size(); }

 private:
  struct PendingCall;
  class WaiterHandle;
  using CallPointer = std::shared_ptr<PendingCall>;

  void OnConnectionChange(std::size_t endpoint, bool connected);
  void Attempt(const CallPointer& call);
  void OnResult(const CallPointer& call, std::size_t endpoint, rpc::CallResult result);
  void RetryLater(const CallPointer& call);
  void Finish(const CallPointer& call, Outcome outcome);
  void FailAtDeadline(const CallPointer& call);
  Error NoConnection() const;

  EventLoop& loop_;
  Random& random_;
  const EtcdClientOptions options_;
  EndpointPicker picker_;
  std::unordered_map<std::uint64_t, CallPointer> calls_;
  std::uint64_t next_call_ = 1;
  std::map<std::uint64_t, std::function<void()>> waiters_;  // oldest first
  std::uint64_t next_waiter_ = 1;
  std::optional<Error> last_failure_;
  std::vector<std::string> unreachable_;  // by endpoint, why it is not connected, if known
  std::vector<std::unique_ptr<rpc::Channel>> channels_;
  Lifetime lifetime_;
};

}  // namespace drakkar::storage
