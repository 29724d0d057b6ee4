#include "sdk/driver/plugin.h"

#include <atomic>
#include <utility>

#include "base/exec/worker_pool.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::driver {
namespace {

constexpr Logger kLog("driver");

std::string UidOf(const api::ObjectPtr& claim) {
  return std::string(claim->uid());
}
std::string UidOf(const rpc::ClaimReference& claim) {
  return claim.uid;
}

}  // namespace

void Plugin::HandleError(const Error& error, bool recoverable) {
  kLog.Error("background error", {{"error", error.message}, {"recoverable", recoverable}});
}

void SynchronousPlugin::PrepareResourceClaims(std::vector<api::ObjectPtr> claims,
                                              PrepareDone done) {
  PrepareResults results;
  for (const api::ObjectPtr& claim : claims) {
    results.insert_or_assign(UidOf(claim), PrepareResourceClaim(*claim));
  }
  done(std::move(results));
}

void SynchronousPlugin::UnprepareResourceClaims(std::vector<rpc::ClaimReference> claims,
                                                rpc::UnprepareDone done) {
  rpc::UnprepareResults results;
  for (const rpc::ClaimReference& claim : claims) {
    rpc::UnprepareResult& result = results[claim.uid];
    if (auto undone = UnprepareResourceClaim(claim); !undone.ok()) {
      result.error = undone.error().message;
    }
  }
  done(std::move(results));
}

BlockingPlugin::BlockingPlugin(std::size_t threads)
    : workers_(std::make_unique<WorkerPool>(threads, kMaxWaitingClaims)) {}

BlockingPlugin::~BlockingPlugin() = default;

void BlockingPlugin::Stop() {
  workers_->Stop();
}

// Runs `work` for each claim; the thread that finishes last answers. `refuse` makes the answer for
// a claim that cannot be queued.
template <typename Answer, typename Claim, typename Work, typename Done>
void BlockingPlugin::RunEach(std::vector<Claim> claims, Work work,
                             const std::function<Answer(Error)>& refuse, Done done) {
  struct Call {
    std::vector<Claim> claims;
    std::vector<std::optional<Answer>> answers;  // one per claim; each is set by one thread
    std::atomic<std::size_t> left;
    Done done;
  };
  if (claims.empty()) return done(std::map<std::string, Answer>());
  auto call = std::make_shared<Call>();
  call->answers.resize(claims.size());
  call->left = claims.size();
  call->claims = std::move(claims);
  call->done = std::move(done);
  const auto finish = [call] {
    if (call->left.fetch_sub(1) > 1) return;
    std::map<std::string, Answer> results;
    for (std::size_t i = 0; i < call->claims.size(); ++i) {
      results.insert_or_assign(UidOf(call->claims[i]), *std::move(call->answers[i]));
    }
    call->done(std::move(results));
  };
  for (std::size_t i = 0; i < call->claims.size(); ++i) {
    const bool taken = workers_->Run([call, i, work, finish] {
      call->answers[i] = work(call->claims[i]);
      finish();
    });
    if (taken) continue;
    call->answers[i] = refuse(Unavailable(
        StrCat("the driver is stopping, or more than ", kMaxWaitingClaims, " claims are queued")));
    finish();
  }
}

void BlockingPlugin::PrepareResourceClaims(std::vector<api::ObjectPtr> claims, PrepareDone done) {
  RunEach<PrepareResult>(
      std::move(claims),
      [this](const api::ObjectPtr& claim) { return PrepareResourceClaim(*claim); },
      [](Error error) { return PrepareResult(std::move(error)); }, std::move(done));
}

void BlockingPlugin::UnprepareResourceClaims(std::vector<rpc::ClaimReference> claims,
                                             rpc::UnprepareDone done) {
  RunEach<rpc::UnprepareResult>(
      std::move(claims),
      [this](const rpc::ClaimReference& claim) {
        rpc::UnprepareResult result;
        if (auto undone = UnprepareResourceClaim(claim); !undone.ok()) {
          result.error = undone.error().message;
        }
        return result;
      },
      [](Error error) { return rpc::UnprepareResult{std::move(error.message)}; }, std::move(done));
}

}  // namespace drakkar::driver
