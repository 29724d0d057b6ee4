#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"

namespace drakkar::client {

// How instances elect the active one. The defaults are those of Kubernetes.
struct LeaderElectionConfig {
  bool leader_elect = true;
  Duration lease_duration = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry_period = std::chrono::seconds(2);
  std::string lease_namespace = "kube-system";
  std::string lease_name;
};
// Requires lease > renew > 1.2 * retry, all positive, and a name.
Result<void> CheckLeaderElection(const LeaderElectionConfig& config);

// The spec of a Lease.
struct LeaseRecord {
  std::string holder;
  Duration duration{};
  std::string acquired;  // MicroTime, as written
  std::string renewed;
  std::int64_t transitions = 0;
  bool operator==(const LeaseRecord&) const = default;
};
LeaseRecord ReadLease(const api::Object& lease);
api::TreePtr WriteLease(const LeaseRecord& record, const LeaderElectionConfig& config,
                        const api::Object* old);

// The rules of the election for one Lease, without I/O: given what was read, it decides what to
// write. The expiry of another holder's record is counted from when we first saw it, by our own
// clock, so clocks need not agree.
class LeaseContest {
 public:
  LeaseContest(LeaderElectionConfig config, std::string identity)
      : config_(std::move(config)), identity_(std::move(identity)) {}

  // Takes the Lease as read, nothing if it does not exist. Returns the record to write, or nothing
  // if another instance leads.
  std::optional<LeaseRecord> OnRead(const std::optional<LeaseRecord>& seen, MonotonicTime now,
                                    WallTime wall);
  // Takes a record that a watch delivered. OnRead decides.
  void Observe(const LeaseRecord& seen, MonotonicTime now);
  // Our record, proposed at `proposed`, was written.
  void OnWritten(const LeaseRecord& written, MonotonicTime proposed);
  // The record that a leader writes when it steps down.
  LeaseRecord Release(WallTime wall) const;

  bool is_leader() const { return is_leader_; }
  // When leadership ends unless it is renewed.
  MonotonicTime deadline() const { return last_success_ + config_.renew_deadline; }
  // When the record of another holder expires, or when it released the Lease.
  MonotonicTime expiry() const;
  // The holder named by the last record.
  const std::string& holder() const { return observed_.holder; }

 private:
  const LeaderElectionConfig config_;
  const std::string identity_;
  LeaseRecord observed_;
  MonotonicTime observed_at_{};
  bool is_leader_ = false;
  MonotonicTime last_success_{};
};

// Takes part in the election: tries to acquire the lease every retry period, renews it while it
// leads, and stops leading if it could not renew before the deadline, even if a request hangs.
//
// A candidate also watches the Lease. It therefore knows the last renewal at once and tries when
// that expires or when the Lease is released, instead of up to two retry periods later. Where it
// may not watch, the retry period decides.
//
// Loop-bound. One request and one watch are in flight at a time.
class LeaderElector {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    Client& client;
    LeaderElectionConfig config;
    std::string identity;  // unique among the instances
    std::function<void()> on_started;
    std::function<void()>
        on_lost;  // at most once, after on_started; the elector does not try again
  };
  explicit LeaderElector(Options options);
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

  void Start();
  // Releases the lease if we lead, so that another instance need not wait for it to expire. `done`
  // runs once the release is written or has failed, after kReleaseTimeout at the latest. No other
  // callback follows.
  static constexpr Duration kReleaseTimeout = std::chrono::seconds(2);
  void Stop(std::function<void()> done);

  bool is_leader() const { return contest_.is_leader() && !ended_; }
  const std::string& holder() const { return contest_.holder(); }

 private:
  void Try();
  void TryLater();
  void Follow();
  void OnLeaseEvent(const WatchEvent& event);
  void OnRead(Reply reply);
  void OnWritten(const LeaseRecord& record, MonotonicTime proposed, Reply reply);
  void Write(const LeaseRecord& record, ReplyCallback done);
  void ArmDeadline();
  void Lose();
  void FinishStop();

  const Options options_;
  LeaseContest contest_;
  api::ObjectPtr lease_;                // as last read; null: none
  std::uint64_t attempt_ = 0;           // answers to older ones are dropped
  std::unique_ptr<WatchHandle> watch_;  // only a candidate's
  bool may_watch_ = true;
  bool attempting_ = false;  // a request is in flight
  bool announced_ = false;
  bool ended_ = false;
  std::function<void()> on_stopped_;
  TimerHandle retry_;
  TimerHandle deadline_;
  Lifetime lifetime_;
};

}  // namespace drakkar::client
