#include "answers/serve/cluster_gauges.h"

#include "answers/serve/state_snapshot.h"
#include "device/cel_expressions.h"

namespace drakkar::answers {
namespace {

constexpr char kDevices[] = "drakkar_devices";
constexpr char kDevicesHelp[] =
    "Devices by DeviceClass and state. A device of several classes counts in each; class is empty "
    "for devices of none.";
constexpr char kClaims[] = "drakkar_resource_claims";
constexpr char kClaimsHelp[] =
    "ResourceClaims by state and by the upper limit of their age (1m, 10m, 1h, 1d, older).";
constexpr char kOldest[] = "drakkar_resource_claim_oldest_seconds";
constexpr char kOldestHelp[] = "Age of the oldest ResourceClaim in each state; 0 if there is none.";
constexpr char kWaiting[] = "drakkar_scheduler_waiting_pods";
constexpr char kWaitingHelp[] = "Pods that wait for binding conditions of their devices.";

}  // namespace

ClusterGauges::ClusterGauges(Options options)
    : options_(std::move(options)),
      workers_(options_.run ? nullptr : std::make_unique<WorkerPool>(1, 1)) {}
ClusterGauges::~ClusterGauges() = default;

void ClusterGauges::Refresh(std::function<void()> done) {
  options_.loop.AssertInLoop();
  if (!options_.scheduler.IsReady()) return done();
  options_.metrics.GetGauge(kWaiting, kWaitingHelp)
      .Set(static_cast<double>(options_.scheduler.counts().waiting_for_conditions));
  const MonotonicTime now = options_.loop.clock().Monotonic();
  if (has_counted_ && now - last_ < kFresh) return done();
  const bool is_running = !readers_.empty();
  if (readers_.size() >= kMaxReaders) return done();
  readers_.push_back(std::move(done));
  if (is_running) return;
  auto snapshot = std::make_shared<Snapshot>(
      SnapshotOf(options_.scheduler.State(""), options_.loop.clock().Now()));
  auto counts = std::make_shared<ClusterCounts>();
  auto back = lifetime_.Guard([this, counts] {
    Take(*counts);
    End();
  });
  Task task = [snapshot, counts, back = std::move(back), &loop = options_.loop]() mutable {
    device::CelExpressions compiler;
    *counts = CountCluster(*snapshot, compiler);
    loop.Post(std::move(back));
  };
  if (!(options_.run ? options_.run(std::move(task)) : workers_->Run(std::move(task)))) End();
}

void ClusterGauges::Take(const ClusterCounts& counts) {
  has_counted_ = true;
  last_ = options_.loop.clock().Monotonic();
  std::set<std::pair<std::string, std::string>> gone = std::move(shown_);
  shown_.clear();
  for (const auto& [key, count] : counts.devices) {
    options_.metrics.GetGauge(kDevices, kDevicesHelp, {{"class", key.first}, {"state", key.second}})
        .Set(static_cast<double>(count));
    gone.erase(key);
    shown_.insert(key);
  }
  for (const auto& [name, state] : gone) {
    options_.metrics.RemoveGauge(kDevices, {{"class", name}, {"state", state}});
  }
  for (const auto& [state, claims] : counts.claims) {
    for (const auto& [age, count] : claims.by_age) {
      options_.metrics
          .GetGauge(kClaims, kClaimsHelp,
                    {{"age", std::string(age)}, {"state", std::string(state)}})
          .Set(static_cast<double>(count));
    }
    options_.metrics.GetGauge(kOldest, kOldestHelp, {{"state", std::string(state)}})
        .Set(std::chrono::duration<double>(claims.oldest).count());
  }
}

void ClusterGauges::End() {
  for (const std::function<void()>& done : std::exchange(readers_, {})) done();
}

}  // namespace drakkar::answers
