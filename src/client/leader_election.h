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

// How several instances agree on who is active; the defaults are Kubernetes'.
struct LeaderElectionConfig {
  bool leader_elect = true;
  Duration lease_duration = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry_period = std::chrono::seconds(2);
  std::string lease_namespace = "kube-system";
  std::string lease_name;
};
// lease > renew > 1.2 * retry, all positive, and a name; one sentence if not.
Result<void> CheckLeaderElection(const LeaderElectionConfig& config);

// What a Lease says.
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

// The rules of the contest for one Lease, without I/O: what is read and what was written in, what
// to write out. A record of somebody else counts from when we first saw it, by our own clock, so
// clocks need not agree.
class LeaseContest {
 public:
  LeaseContest(LeaderElectionConfig config, std::string identity)
      : config_(std::move(config)), identity_(std::move(identity)) {}

  // The Lease as read (none: it does not exist). What to write, or none: somebody else leads.
  std::optional<LeaseRecord> OnRead(const std::optional<LeaseRecord>& seen, MonotonicTime now,
                                    WallTime wall);
  // Our record, proposed at `proposed`, is in the API.
  void OnWritten(const LeaseRecord& written, MonotonicTime proposed);
  // What a leader that steps down writes.
  LeaseRecord Release(WallTime wall) const;

  bool is_leader() const { return is_leader_; }
  // A leader must not act after this.
  MonotonicTime deadline() const { return last_success_ + config_.renew_deadline; }
  // Whom the last record named.
  const std::string& holder() const { return observed_.holder; }

 private:
  const LeaderElectionConfig config_;
  const std::string identity_;
  LeaseRecord observed_;
  MonotonicTime observed_at_{};
  bool is_leader_ = false;
  MonotonicTime last_success_{};
};

// Takes part in the contest: tries every retry period, renews while it leads, gives up leading when
// it could not renew before the deadline, also while a request hangs.
//
// Loop-bound. One request is under way at a time.
class LeaderElector {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    Client& client;
    LeaderElectionConfig config;
    std::string identity;  // unique among the instances
    std::function<void()> on_started;
    std::function<void()> on_lost;  // after on_started, once; it does not try again
  };
  explicit LeaderElector(Options options);
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

  void Start();
  // Steps down, if it leads, so that another need not wait for the lease to run out; `done` runs
  // when that is written, or cannot be, kReleaseTimeout later at most. No callback but it follows.
  static constexpr Duration kReleaseTimeout = std::chrono::seconds(2);
  void Stop(std::function<void()> done);

  bool is_leader() const { return contest_.is_leader() && !ended_; }
  const std::string& holder() const { return contest_.holder(); }

 private:
  void Try();
  void TryLater();
  void OnRead(Reply reply);
  void OnWritten(const LeaseRecord& record, MonotonicTime proposed, Reply reply);
  void Write(const LeaseRecord& record, ReplyCallback done);
  void ArmDeadline();
  void Lose();
  void FinishStop();

  const Options options_;
  LeaseContest contest_;
  api::ObjectPtr lease_;       // as last seen; null: none
  std::uint64_t attempt_ = 0;  // answers of older ones are dropped
  bool announced_ = false;
  bool ended_ = false;
  std::function<void()> on_stopped_;
  TimerHandle retry_;
  TimerHandle deadline_;
  Lifetime lifetime_;
};

}  // namespace drakkar::client
