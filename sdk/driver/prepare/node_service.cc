#include "sdk/driver/prepare/node_service.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/meta/request_name.h"
#include "base/result/check.h"
#include "base/text/text.h"
#include "cdi/names.h"
#include "sdk/driver/metadata/metadata_store.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::driver {
namespace {

constexpr Logger kLog("driver");
// Retry interval for the other instance's lock, whose calls take milliseconds.
constexpr Duration kLockRetry = std::chrono::milliseconds(5);

Error TooManyCalls() {
  return {ErrorCode::kResourceExhausted,
          StrCat("more than ", kMaxOpenCalls, " calls are in flight; try again later")};
}

std::int64_t Microseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

Result<void> CheckDevice(const PreparedDevice& device) {
  if (device.pool_name.empty()) {
    return FailedPrecondition("the driver returned a device without a pool name");
  }
  if (device.device_name.empty()) {
    return FailedPrecondition("the driver returned a device without a name");
  }
  for (const std::string& id : device.cdi_device_ids) {
    if (auto parsed = cdi::ParseQualifiedName(id); !parsed.ok()) {
      return parsed.error().Prefixed(
          StrCat("the driver returned a bad CDI device id for device ", device.device_name));
    }
  }
  return Ok();
}

// Converts a device for the node, with the base names of requests.
rpc::PreparedDevice ForNode(PreparedDevice device) {
  for (std::string& request : device.request_names) {
    request.resize(api::BaseRequest(request).size());
  }
  return {.request_names = std::move(device.request_names),
          .pool_name = std::move(device.pool_name),
          .device_name = std::move(device.device_name),
          .cdi_device_ids = std::move(device.cdi_device_ids),
          .share_id = std::move(device.share_id)};
}

// An answer that the plugin may give or drop on any thread; the loop then continues with it.
template <typename Results>
class AnswerFromAnyThread {
 public:
  using Done = absl::AnyInvocable<void(Result<Results>)>;

  AnswerFromAnyThread(EventLoop& loop, Done done)
      : loop_(&loop), done_(std::make_unique<Done>(std::move(done))) {}
  AnswerFromAnyThread(AnswerFromAnyThread&&) noexcept = default;
  ~AnswerFromAnyThread() {
    if (done_ == nullptr || loop_->IsInLoop()) return;
    loop_->Post([done = std::move(done_)] {});
  }

  void operator()(Result<Results> results) {
    CHECK(done_ != nullptr);  // the plugin must answer once
    if (loop_->IsInLoop()) return (*std::exchange(done_, nullptr))(std::move(results));
    loop_->Post([done = std::exchange(done_, nullptr), results = std::move(results)]() mutable {
      (*done)(std::move(results));
    });
  }

 private:
  EventLoop* loop_;
  std::unique_ptr<Done> done_;
};

std::vector<std::string> UidsOf(const std::vector<AnnouncedClaims::Claim>& claims) {
  std::vector<std::string> uids;
  for (const AnnouncedClaims::Claim& claim : claims) uids.emplace_back(claim.object->uid());
  return uids;
}

std::vector<std::string> UidsOf(const std::vector<rpc::ClaimReference>& claims) {
  std::vector<std::string> uids;
  for (const rpc::ClaimReference& claim : claims) uids.push_back(claim.uid);
  return uids;
}

}  // namespace

NodeService::NodeService(Options options)
    : options_(std::move(options)),
      fetcher_(options_.client),
      announced_(options_.loop, fetcher_,
                 [this](const api::Object& claim) -> std::optional<ClaimPlan> {
                   if (!options_.write_metadata) return std::nullopt;
                   Result<ClaimPlan> plan = options_.metadata.Plan(claim);
                   if (!plan.ok()) return std::nullopt;  // Prepare reports the error
                   return *std::move(plan);
                 }) {
  if (!options_.lock_file.empty()) lock_ = std::make_unique<FileLock>(options_.lock_file);
}

NodeService::~NodeService() = default;

// Checks what the plugin returned for a claim and writes the metadata of its devices.
Result<std::vector<PreparedDevice>> NodeService::CheckPrepared(AnnouncedClaims::Claim& claim,
                                                               PrepareResults& results) {
  const auto found = results.find(std::string(claim.object->uid()));
  if (found == results.end()) {
    return FailedPrecondition("the driver returned no result for the claim");
  }
  ASSIGN_OR_RETURN(std::vector<PreparedDevice> devices, std::move(found->second));
  for (const PreparedDevice& device : devices) RETURN_IF_ERROR(CheckDevice(device));
  if (options_.write_metadata) {
    auto written = options_.metadata.Prepare(*claim.object, devices, std::move(claim.plan));
    if (!written.ok()) return written.error().Prefixed("write device metadata");
  }
  return devices;
}

// Returns exactly one result per requested claim.
rpc::PrepareResults NodeService::Complete(std::vector<AnnouncedClaims::Claim> claims,
                                          PrepareResults results) {
  rpc::PrepareResults complete;
  for (AnnouncedClaims::Claim& claim : claims) {
    rpc::PrepareResult& answer = complete[std::string(claim.object->uid())];
    Result<std::vector<PreparedDevice>> devices = CheckPrepared(claim, results);
    if (!devices.ok()) {
      answer.error = std::move(devices).error().message;
      continue;
    }
    for (PreparedDevice& device : *devices) answer.devices.push_back(ForNode(std::move(device)));
  }
  return complete;
}

rpc::UnprepareResults NodeService::Complete(const std::vector<rpc::ClaimReference>& claims,
                                            rpc::UnprepareResults results) {
  rpc::UnprepareResults complete;
  for (const rpc::ClaimReference& claim : claims) {
    const auto found = results.find(claim.uid);
    rpc::UnprepareResult& answer = complete[claim.uid];
    answer = found != results.end()
                 ? std::move(found->second)
                 : rpc::UnprepareResult{"the driver returned no result for the claim"};
    if (!answer.error.empty()) continue;
    if (auto removed = options_.metadata.Remove(claim); !removed.ok()) {
      answer.error = removed.error().Prefixed("clean up device metadata").message;
    }
  }
  return complete;
}

bool NodeService::Admit() {
  options_.loop.AssertInLoop();
  if (open_calls_ >= kMaxOpenCalls) return false;
  ++open_calls_;
  return true;
}

Result<void> NodeService::CheckWaiting(const std::vector<std::string>& claim_uids) const {
  for (const std::string& uid : claim_uids) {
    const auto waits = std::ranges::count_if(waiting_, [&](const Waiting& each) {
      return std::ranges::find(each.claim_uids, uid) != each.claim_uids.end();
    });
    if (static_cast<std::size_t>(waits) < kMaxWaitingPerClaim) continue;
    return Error{
        ErrorCode::kResourceExhausted,
        StrCat("claim with UID ", uid, ": the driver has not answered ", waits, " earlier calls")};
  }
  return Ok();
}

void NodeService::Count(const char* method, Duration took, bool ok, std::size_t failed_claims) {
  static const std::vector<double> bounds = ExponentialBounds(0.001, 2, 16);
  options_.metrics
      ->GetHistogram("dra_driver_operation_duration_seconds",
                     "Duration of the node's calls in this driver.",
                     {{"method", method}, {"is_error", ok ? "false" : "true"}}, bounds)
      .Observe(std::chrono::duration<double>(took).count());
  if (failed_claims > 0) {
    options_.metrics
        ->GetCounter("dra_driver_claim_errors_total",
                     "Claims for which the driver returned an error.", {{"method", method}})
        .Add(static_cast<double>(failed_claims));
  }
}

// Wraps `done` so that the answer is counted.
template <typename Results>
absl::AnyInvocable<void(Result<Results>)> NodeService::Counted(
    const char* method, absl::AnyInvocable<void(Result<Results>)> done) {
  if (options_.metrics == nullptr) return done;
  return [this, service = lifetime_.Observe(), method, since = options_.loop.clock().Monotonic(),
          done = std::move(done)](Result<Results> results) mutable {
    if (service.alive()) {
      std::size_t failed = 0;
      if (results.ok()) {
        for (const auto& [uid, result] : *results) failed += result.error.empty() ? 0 : 1;
      }
      // The answer is sent at the end of this loop iteration, so count it in the next one.
      options_.loop.Post(lifetime_.Guard(
          [this, method, failed, ok = results.ok(),
           took = options_.loop.clock().Monotonic() - since] { Count(method, took, ok, failed); }));
    }
    done(std::move(results));
  };
}

void NodeService::NodePrepareResources(std::vector<rpc::ClaimReference> claims,
                                       rpc::PrepareDone done) {
  if (!Admit()) return done(TooManyCalls());
  done = Counted<rpc::PrepareResults>("NodePrepareResources", std::move(done));
  const std::uint64_t request_id = next_request_id_++;
  kLog.Debug("NodePrepareResources", {{"requestID", request_id}, {"claims", claims.size()}});
  const MonotonicTime begun = options_.loop.clock().Monotonic();
  // Fetching needs no turn. The callback must be copyable, so the answer is shared.
  auto answer = std::make_shared<rpc::PrepareDone>(std::move(done));
  announced_.FetchEach(claims, [this, answer, request_id, begun,
                                claims](AnnouncedClaims::Answers answers) {
    const MonotonicTime fetched = options_.loop.clock().Monotonic();
    // A claim that cannot be fetched fails alone; the plugin gets the others.
    std::vector<AnnouncedClaims::Claim> found;
    rpc::PrepareResults failed;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (answers[i].ok()) {
        found.push_back(*std::move(answers[i]));
      } else {
        failed[claims[i].uid].error = answers[i].error().Prefixed("get resource claims").message;
      }
    }
    if (found.empty() && !failed.empty()) {
      --open_calls_;
      return (*answer)(std::move(failed));
    }
    std::vector<std::string> uids = UidsOf(found);
    if (Result<void> checked = CheckWaiting(uids); !checked.ok()) {
      --open_calls_;
      return (*answer)(std::move(checked).error());
    }
    Call call = [this, answer, request_id, begun, fetched, failed = std::move(failed),
                 claims = std::move(found)](Result<Turn> turn) mutable {
      if (!turn.ok()) return (*answer)(std::move(turn).error());
      if (options_.on_prepare) {
        for (const AnnouncedClaims::Claim& claim : claims) options_.on_prepare(*claim.object);
      }
      std::vector<api::ObjectPtr> objects;
      for (const AnnouncedClaims::Claim& claim : claims) objects.push_back(claim.object);
      PrepareDone prepared = [this, service = lifetime_.Observe(), answer = std::move(answer),
                              failed = std::move(failed), claims = std::move(claims), request_id,
                              begun, fetched,
                              turn = *std::move(turn)](Result<PrepareResults> results) mutable {
        if (!service.alive()) {
          (*answer)(Unavailable("the driver was stopped"));
        } else if (results.ok()) {
          const MonotonicTime answered = options_.loop.clock().Monotonic();
          rpc::PrepareResults complete = Complete(std::move(claims), *std::move(results));
          complete.merge(failed);
          kLog.Debug("prepared", {{"requestID", request_id},
                                  {"fetchMicroseconds", Microseconds(fetched - begun)},
                                  {"pluginMicroseconds", Microseconds(answered - fetched)},
                                  {"metadataMicroseconds",
                                   Microseconds(options_.loop.clock().Monotonic() - answered)}});
          (*answer)(std::move(complete));
        } else {
          (*answer)(results.error().Prefixed("prepare resource claims"));
        }
        turn.reset();
      };
      options_.plugin.PrepareResourceClaims(
          std::move(objects),
          AnswerFromAnyThread<PrepareResults>(options_.loop, std::move(prepared)));
    };
    Enqueue({.claim_uids = std::move(uids),
             .is_alone = options_.serialize,
             .is_patient = false,
             .call = std::move(call)});
  });
}

void NodeService::AnnouncePrepare(std::vector<rpc::AnnouncedClaim> claims, rpc::AnnounceDone done) {
  announced_.Announce(std::move(claims), std::move(done));
}

void NodeService::NodeUnprepareResources(std::vector<rpc::ClaimReference> claims,
                                         rpc::UnprepareDone done) {
  if (!Admit()) return done(TooManyCalls());
  done = Counted<rpc::UnprepareResults>("NodeUnprepareResources", std::move(done));
  const std::uint64_t request_id = next_request_id_++;
  kLog.Debug("NodeUnprepareResources", {{"requestID", request_id}, {"claims", claims.size()}});
  std::vector<std::string> uids = UidsOf(claims);
  if (Result<void> checked = CheckWaiting(uids); !checked.ok()) {
    --open_calls_;
    return done(std::move(checked).error());
  }
  Call call = [this, claims = std::move(claims), request_id,
               done = std::move(done)](Result<Turn> turn) mutable {
    if (!turn.ok()) return done(std::move(turn).error());
    rpc::UnprepareDone unprepared =
        [this, service = lifetime_.Observe(), done = std::move(done), claims, request_id,
         turn = *std::move(turn)](Result<rpc::UnprepareResults> results) mutable {
          if (!service.alive()) {
            done(Unavailable("the driver was stopped"));
          } else if (results.ok()) {
            kLog.Debug("unprepared", {{"requestID", request_id}});
            done(Complete(claims, *std::move(results)));
          } else {
            done(results.error().Prefixed("unprepare resource claims"));
          }
          turn.reset();
        };
    options_.plugin.UnprepareResourceClaims(
        claims, AnswerFromAnyThread<rpc::UnprepareResults>(options_.loop, std::move(unprepared)));
  };
  Enqueue({.claim_uids = std::move(uids),
           .is_alone = options_.serialize,
           .is_patient = false,
           .call = std::move(call)});
}

void NodeService::TakeTurn(std::function<void(Result<Turn> turn)> task) {
  options_.loop.AssertInLoop();
  ++open_calls_;
  Enqueue({.claim_uids = {}, .is_alone = true, .is_patient = true, .call = std::move(task)});
}

void NodeService::Enqueue(Waiting waiting) {
  waiting_.push_back(std::move(waiting));
  RunNext();
}

std::deque<NodeService::Waiting>::iterator NodeService::FindNext() {
  if (one_runs_alone_) return waiting_.end();
  // No call may overtake one for the same claim, or one that must run alone unless it is patient.
  std::set<std::string_view> taken(running_claims_.begin(), running_claims_.end());
  for (auto next = waiting_.begin(); next != waiting_.end(); ++next) {
    if (next->is_alone) {
      if (running_ == 0 && taken.empty()) return next;
      if (next->is_patient) continue;
      return waiting_.end();
    }
    const bool is_free = std::ranges::none_of(
        next->claim_uids, [&](const std::string& uid) { return taken.contains(uid); });
    if (is_free) return next;
    taken.insert(next->claim_uids.begin(), next->claim_uids.end());
  }
  return waiting_.end();
}

void NodeService::RunNext() {
  const auto next = FindNext();
  if (next == waiting_.end()) return;
  const Lifetime::Observer self = lifetime_.Observe();  // an answer may destroy the driver
  if (lock_ != nullptr && running_ == 0) {
    Result<bool> taken = lock_->TryLock();
    if (!taken.ok()) {
      // Without the lock two instances might use one device at the same time, so the call fails.
      const Error error =
          std::move(taken).error().Prefixed("acquire the lock between driver instances");
      options_.on_error(error);
      Call failed = std::move(next->call);
      waiting_.erase(next);
      --open_calls_;
      failed(error);
      if (self.alive()) RunNextSoon();
      return;
    }
    if (!*taken) {
      lock_retry_ = options_.loop.RunAfter(kLockRetry, [this] { RunNext(); });
      return;
    }
  }
  Waiting started = std::move(*next);
  waiting_.erase(next);
  ++running_;
  one_runs_alone_ = started.is_alone;
  running_claims_.insert(started.claim_uids.begin(), started.claim_uids.end());
  started.call(MakeTurn(started));
  if (self.alive()) RunNextSoon();
}

// Posted, so that a plugin that answers immediately does not recurse.
void NodeService::RunNextSoon() {
  if (waiting_.empty()) return;
  options_.loop.Post(lifetime_.Guard([this] { RunNext(); }));
}

NodeService::Turn NodeService::MakeTurn(const Waiting& waiting) {
  return Turn(nullptr,
              lifetime_.Guard([this, uids = waiting.claim_uids](void*) { EndTurn(uids); }));
}

void NodeService::EndTurn(const std::vector<std::string>& claim_uids) {
  --open_calls_;
  --running_;
  one_runs_alone_ = false;
  for (const std::string& uid : claim_uids) running_claims_.erase(uid);
  if (running_ == 0 && lock_ != nullptr) lock_->Unlock();
  RunNextSoon();
}

}  // namespace drakkar::driver
