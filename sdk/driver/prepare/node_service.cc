#include "sdk/driver/prepare/node_service.h"

#include <chrono>
#include <utility>

#include "base/text/text.h"
#include "cdi/names.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::driver {
namespace {

constexpr Logger kLog("driver");
// How often the lock of another instance is tried again. Its calls take milliseconds.
constexpr Duration kLockRetry = std::chrono::milliseconds(5);

Error TooManyCalls() {
  return {ErrorCode::kResourceExhausted,
          StrCat("more than ", kMaxOpenCalls, " calls are under way, try again later")};
}

// What is wrong with a device, or "".
std::string CheckDevice(const rpc::PreparedDevice& device) {
  if (device.pool_name.empty()) return "the driver returned a device without a pool name";
  if (device.device_name.empty()) return "the driver returned a device without a name";
  for (const std::string& id : device.cdi_device_ids) {
    if (auto parsed = cdi::ParseQualifiedName(id); !parsed.ok()) {
      return StrCat("the driver returned a bad CDI device id for device ", device.device_name, ": ",
                    parsed.error().message);
    }
  }
  return "";
}

// One answer for each claim that was asked for, and no other; requests by their base name.
rpc::PrepareResults CompleteResults(const std::vector<std::string>& uids,
                                    rpc::PrepareResults results) {
  rpc::PrepareResults complete;
  for (const std::string& uid : uids) {
    rpc::PrepareResult& answer = complete[uid];
    const auto found = results.find(uid);
    if (found == results.end()) {
      answer.error = "the driver returned no result for the claim";
      continue;
    }
    answer = std::move(found->second);
    for (rpc::PreparedDevice& device : answer.devices) {
      for (std::string& request : device.request_names) {
        if (const std::size_t slash = request.find('/'); slash != std::string::npos) {
          request.resize(slash);
        }
      }
      if (answer.error.empty()) answer.error = CheckDevice(device);
    }
    if (!answer.error.empty()) answer.devices.clear();
  }
  return complete;
}

rpc::UnprepareResults CompleteResults(const std::vector<std::string>& uids,
                                      rpc::UnprepareResults results) {
  rpc::UnprepareResults complete;
  for (const std::string& uid : uids) {
    const auto found = results.find(uid);
    complete[uid] = found != results.end()
                        ? std::move(found->second)
                        : rpc::UnprepareResult{"the driver returned no result for the claim"};
  }
  return complete;
}

std::vector<std::string> UidsOf(const std::vector<rpc::ClaimReference>& claims) {
  std::vector<std::string> uids;
  for (const rpc::ClaimReference& claim : claims) uids.push_back(claim.uid);
  return uids;
}

}  // namespace

NodeService::NodeService(Options options)
    : options_(std::move(options)), fetcher_(options_.client) {
  if (!options_.lock_file.empty()) lock_ = std::make_unique<FileLock>(options_.lock_file);
}

NodeService::~NodeService() {
  *alive_ = false;
}

bool NodeService::Admit() {
  options_.loop.AssertInLoop();
  if (open_calls_ >= kMaxOpenCalls) return false;
  ++open_calls_;
  return true;
}

void NodeService::Count(const char* method, MonotonicTime since, bool ok,
                        std::size_t failed_claims) {
  if (options_.metrics == nullptr) return;
  static const std::vector<double> bounds = ExponentialBounds(0.001, 2, 16);
  const Duration took = options_.loop.clock().Monotonic() - since;
  options_.metrics
      ->GetHistogram("dra_driver_operation_duration_seconds",
                     "Time a call of the node took in this driver.",
                     {{"method", method}, {"is_error", ok ? "false" : "true"}}, bounds)
      .Observe(std::chrono::duration<double>(took).count());
  if (failed_claims > 0) {
    options_.metrics
        ->GetCounter("dra_driver_claim_errors_total", "Claims that were answered with an error.",
                     {{"method", method}})
        .Add(static_cast<double>(failed_claims));
  }
}

// `done`, which counts the answer on its way.
template <typename Results>
absl::AnyInvocable<void(Result<Results>)> NodeService::Counted(
    const char* method, absl::AnyInvocable<void(Result<Results>)> done) {
  if (options_.metrics == nullptr) return done;
  return [this, alive = alive_, method, since = options_.loop.clock().Monotonic(),
          done = std::move(done)](Result<Results> results) mutable {
    if (*alive) {
      std::size_t failed = 0;
      if (results.ok()) {
        for (const auto& [uid, result] : *results) failed += result.error.empty() ? 0 : 1;
      }
      Count(method, since, results.ok(), failed);
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
  // Reading needs no turn of its own. The callback must be copyable, so the answer is shared.
  auto answer = std::make_shared<rpc::PrepareDone>(std::move(done));
  std::vector<std::string> uids = UidsOf(claims);
  fetcher_.Fetch(std::move(claims), [this, answer, uids = std::move(uids), request_id](
                                        Result<std::vector<api::ObjectPtr>> objects) {
    if (!objects.ok()) {
      --open_calls_;
      return (*answer)(objects.error().Prefixed("get resource claims"));
    }
    Enqueue([this, answer, uids, request_id,
             claims = *std::move(objects)](Result<Turn> turn) mutable {
      if (!turn.ok()) return (*answer)(std::move(turn).error());
      options_.plugin.PrepareResourceClaims(
          std::move(claims), [answer = std::move(answer), uids = std::move(uids), request_id,
                              turn = *std::move(turn)](Result<rpc::PrepareResults> results) mutable {
            if (results.ok()) {
              kLog.Debug("prepared", {{"requestID", request_id}});
              (*answer)(CompleteResults(uids, *std::move(results)));
            } else {
              (*answer)(results.error().Prefixed("prepare resource claims"));
            }
            turn.reset();
          });
    });
  });
}

void NodeService::NodeUnprepareResources(std::vector<rpc::ClaimReference> claims,
                                         rpc::UnprepareDone done) {
  if (!Admit()) return done(TooManyCalls());
  done = Counted<rpc::UnprepareResults>("NodeUnprepareResources", std::move(done));
  const std::uint64_t request_id = next_request_id_++;
  kLog.Debug("NodeUnprepareResources", {{"requestID", request_id}, {"claims", claims.size()}});
  Enqueue([this, claims = std::move(claims), request_id,
           done = std::move(done)](Result<Turn> turn) mutable {
    if (!turn.ok()) return done(std::move(turn).error());
    std::vector<std::string> uids = UidsOf(claims);
    options_.plugin.UnprepareResourceClaims(
        std::move(claims),
        [done = std::move(done), uids = std::move(uids), request_id,
         turn = *std::move(turn)](Result<rpc::UnprepareResults> results) mutable {
          if (results.ok()) {
            kLog.Debug("unprepared", {{"requestID", request_id}});
            done(CompleteResults(uids, *std::move(results)));
          } else {
            done(results.error().Prefixed("unprepare resource claims"));
          }
          turn.reset();
        });
  });
}

void NodeService::Enqueue(Call call) {
  if (!options_.serialize) return call(MakeTurn());
  waiting_.push_back(std::move(call));
  RunNext();
}

void NodeService::RunNext() {
  if (busy_ || waiting_.empty()) return;
  busy_ = true;
  if (lock_ != nullptr) {
    Result<bool> taken = lock_->TryLock();
    if (!taken.ok()) {
      // Without the lock two instances might touch one device at once: the call has to fail.
      const Error error = std::move(taken).error().Prefixed("lock out other instances");
      options_.on_error(error);
      Call failed = std::move(waiting_.front());
      waiting_.pop_front();
      failed(error);
      EndTurn();
      return;
    }
    if (!*taken) {
      busy_ = false;
      lock_retry_ = options_.loop.RunAfter(kLockRetry, [this] { RunNext(); });
      return;
    }
  }
  Call call = std::move(waiting_.front());
  waiting_.pop_front();
  call(MakeTurn());
}

NodeService::Turn NodeService::MakeTurn() {
  return Turn(nullptr, [this, alive = alive_](void*) {
    if (*alive) EndTurn();
  });
}

void NodeService::EndTurn() {
  --open_calls_;
  if (!options_.serialize) return;
  if (lock_ != nullptr) lock_->Unlock();
  busy_ = false;
  // From the loop, so that a plugin that answers at once does not nest ever deeper.
  if (!waiting_.empty()) {
    options_.loop.Post([this, alive = alive_] {
      if (*alive) RunNext();
    });
  }
}

}  // namespace drakkar::driver
