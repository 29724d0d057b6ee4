#include "client/leader_election.h"

#include <algorithm>
#include <utility>

#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::client {
namespace {

constexpr Logger kLog("leader-election");
// Spreads the attempts of candidates.
constexpr double kJitter = 1.2;
// Between attempts to take a lease that has expired.
constexpr Duration kEagerPeriod = std::chrono::milliseconds(200);

std::int64_t WholeSeconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

}  // namespace

Result<void> CheckLeaderElection(const LeaderElectionConfig& config) {
  if (!config.leader_elect) return Ok();
  if (config.lease_name.empty() || config.lease_namespace.empty()) {
    return InvalidArgument("leader election: the name and namespace of the Lease must be set");
  }
  if (config.retry_period <= Duration::zero()) {
    return InvalidArgument("leader election: retryPeriod must be greater than zero");
  }
  if (config.lease_duration < std::chrono::seconds(1) ||
      config.lease_duration <= config.renew_deadline) {
    return InvalidArgument(
        "leader election: leaseDuration must be at least a second and longer than renewDeadline");
  }
  if (config.renew_deadline <=
      std::chrono::duration_cast<Duration>(config.retry_period * kJitter)) {
    return InvalidArgument(
        "leader election: renewDeadline must be longer than 1.2 times retryPeriod");
  }
  return Ok();
}

LeaseRecord ReadLease(const api::Object& lease) {
  const api::Value spec = lease.root()["spec"];
  return {std::string(spec["holderIdentity"].str()),
          std::chrono::seconds(spec["leaseDurationSeconds"].integer()),
          std::string(spec["acquireTime"].str()), std::string(spec["renewTime"].str()),
          spec["leaseTransitions"].integer()};
}

api::TreePtr WriteLease(const LeaseRecord& record, const LeaderElectionConfig& config,
                        const api::Object* old) {
  api::Draft draft =
      old != nullptr
          ? api::Draft(old->tree())
          : api::Draft{
                {"apiVersion", "coordination.k8s.io/v1"},
                {"kind", "Lease"},
                {"metadata", {{"name", config.lease_name}, {"namespace", config.lease_namespace}}}};
  api::Draft& spec = draft["spec"];
  spec["holderIdentity"] = record.holder;
  spec["leaseDurationSeconds"] = WholeSeconds(record.duration);
  spec["acquireTime"] = record.acquired;
  spec["renewTime"] = record.renewed;
  spec["leaseTransitions"] = record.transitions;
  return draft.Freeze();
}

std::optional<LeaseRecord> LeaseContest::OnRead(const std::optional<LeaseRecord>& seen,
                                                MonotonicTime now, WallTime wall) {
  const std::string time = api::FormatMicroTime(wall);
  LeaseRecord next{identity_, config_.lease_duration, time, time, 0};
  if (!seen) return next;
  Observe(*seen, now);
  const bool ours = seen->holder == identity_;
  if (!ours && !seen->holder.empty() && now < observed_at_ + seen->duration) {
    is_leader_ = false;
    return std::nullopt;
  }
  if (ours) next.acquired = seen->acquired;
  next.transitions = seen->transitions + (ours ? 0 : 1);
  return next;
}

void LeaseContest::Observe(const LeaseRecord& seen, MonotonicTime now) {
  if (seen == observed_) return;
  observed_ = seen;
  observed_at_ = now;
}

MonotonicTime LeaseContest::expiry() const {
  return observed_.holder.empty() ? observed_at_ : observed_at_ + observed_.duration;
}

void LeaseContest::OnWritten(const LeaseRecord& written, MonotonicTime proposed) {
  observed_ = written;
  observed_at_ = proposed;
  is_leader_ = true;
  last_success_ = proposed;
}

LeaseRecord LeaseContest::Release(WallTime wall) const {
  const std::string time = api::FormatMicroTime(wall);
  return {"", std::chrono::seconds(1), time, time, observed_.transitions};
}

LeaderElector::LeaderElector(Options options)
    : options_(std::move(options)), contest_(options_.config, options_.identity) {}

void LeaderElector::Start() {
  options_.loop.AssertInLoop();
  Try();
}

void LeaderElector::Try() {
  const std::uint64_t attempt = ++attempt_;
  attempting_ = true;
  // Retry even if the answer never arrives, and while there is time to renew.
  retry_ = options_.loop.RunAfter(options_.config.renew_deadline / 2, [this] { Try(); });
  options_.client.Get({api::FindKind("coordination.k8s.io", "v1", "Lease"),
                       options_.config.lease_namespace, options_.config.lease_name, ""},
                      lifetime_.Guard([this, attempt](Reply reply) {
                        if (attempt == attempt_ && !ended_) OnRead(std::move(reply));
                      }));
}

void LeaderElector::TryLater() {
  const auto jittered = [this](Duration period) {
    const double share = 1 + options_.random.Fraction() * (kJitter - 1);
    return Duration(static_cast<std::int64_t>(static_cast<double>(period.count()) * share));
  };
  attempting_ = false;
  Duration pause = options_.config.retry_period;
  if (!contest_.is_leader()) {
    const Duration left = contest_.expiry() - options_.loop.clock().Monotonic();
    pause = jittered(pause);
    if (left > Duration::zero()) {
      pause = std::min(pause, left);
    } else if (left > -options_.config.lease_duration) {
      pause = std::min(pause, jittered(kEagerPeriod));
    }
  }
  retry_ = options_.loop.RunAfter(pause, [this] { Try(); });
}

void LeaderElector::Follow() {
  if (watch_ != nullptr || !may_watch_ || lease_ == nullptr) return;
  watch_ = options_.client.Watch(
      {api::FindKind("coordination.k8s.io", "v1", "Lease"), options_.config.lease_namespace, "",
       ""},
      {.field_selector = StrCat("metadata.name=", options_.config.lease_name),
       .resource_version = lease_->resource_version()},
      {.on_events = lifetime_.Guard([this](const std::vector<WatchEvent>& events) {
         for (const WatchEvent& event : events) OnLeaseEvent(event);
       }),
       // The next attempt reads the Lease and watches again.
       .on_closed = lifetime_.Guard([this](const Error& error) {
         if (error.code == ErrorCode::kForbidden) may_watch_ = false;
         watch_.reset();
       })});
}

void LeaderElector::OnLeaseEvent(const WatchEvent& event) {
  if (ended_ || announced_ || event.type == EventType::kBookmark) return;
  if (event.object->name() != options_.config.lease_name) return;
  lease_ = event.type == EventType::kDeleted ? nullptr : event.object;
  if (lease_ != nullptr) {
    contest_.Observe(ReadLease(*lease_), options_.loop.clock().Monotonic());
    if (!contest_.holder().empty()) {
      if (!attempting_) TryLater();
      return;
    }
  }
  if (!attempting_) Try();
}

void LeaderElector::OnRead(Reply reply) {
  if (!reply.ok() && reply.error->code != ErrorCode::kNotFound) {
    kLog.Warning("could not read the lease", {{"error", reply.error->message}});
    TryLater();
    return;
  }
  lease_ = reply.ok() ? reply.object : nullptr;
  std::optional<LeaseRecord> seen;
  if (lease_ != nullptr) seen = ReadLease(*lease_);
  const MonotonicTime now = options_.loop.clock().Monotonic();
  const std::optional<LeaseRecord> next = contest_.OnRead(seen, now, options_.loop.clock().Now());
  if (!next) {
    if (announced_) {
      Lose();  // another instance took it
    } else {
      Follow();
      TryLater();
    }
    return;
  }
  Write(*next, lifetime_.Guard([this, attempt = attempt_, record = *next, now](Reply written) {
    if (attempt == attempt_ && !ended_) OnWritten(record, now, std::move(written));
  }));
}

void LeaderElector::Write(const LeaseRecord& record, ReplyCallback done) {
  ResourceRef ref{api::FindKind("coordination.k8s.io", "v1", "Lease"),
                  options_.config.lease_namespace, options_.config.lease_name, ""};
  api::TreePtr body = WriteLease(record, options_.config, lease_.get());
  if (lease_ != nullptr) {
    options_.client.Update(std::move(ref), std::move(body), {}, std::move(done));
  } else {
    ref.name.clear();
    options_.client.Create(std::move(ref), std::move(body), {}, std::move(done));
  }
}

void LeaderElector::OnWritten(const LeaseRecord& record, MonotonicTime proposed, Reply reply) {
  if (!reply.ok()) {
    // After a conflict the next read shows who won.
    TryLater();
    return;
  }
  lease_ = reply.object;
  watch_.reset();
  contest_.OnWritten(record, proposed);
  ArmDeadline();
  TryLater();
  if (announced_) return;
  announced_ = true;
  kLog.Info("started leading",
            {{"lease", options_.config.lease_name}, {"identity", options_.identity}});
  options_.on_started();
}

void LeaderElector::ArmDeadline() {
  const Duration left = contest_.deadline() - options_.loop.clock().Monotonic();
  deadline_ = options_.loop.RunAfter(std::max(left, Duration::zero()), [this] { Lose(); });
}

void LeaderElector::Lose() {
  if (ended_) return;
  ended_ = true;
  retry_.reset();
  watch_.reset();
  kLog.Error("stopped leading",
             {{"lease", options_.config.lease_name}, {"holder", contest_.holder()}});
  // Posted, because it may destroy this and with it the timer that is running.
  options_.loop.Post(lifetime_.Guard([on_lost = options_.on_lost] {
    if (on_lost) on_lost();
  }));
}

void LeaderElector::Stop(std::function<void()> done) {
  options_.loop.AssertInLoop();
  const bool leads = is_leader();
  ended_ = true;
  ++attempt_;
  retry_.reset();
  watch_.reset();
  deadline_.reset();
  if (on_stopped_) return;
  on_stopped_ = std::move(done);
  if (!leads) {
    FinishStop();
    return;
  }
  deadline_ = options_.loop.RunAfter(kReleaseTimeout, [this] { FinishStop(); });
  Write(contest_.Release(options_.loop.clock().Now()),
        lifetime_.Guard([this](Reply) { FinishStop(); }));
}

void LeaderElector::FinishStop() {
  if (!on_stopped_) return;
  options_.loop.Post([done = std::exchange(on_stopped_, nullptr)] { done(); });
}

}  // namespace drakkar::client
