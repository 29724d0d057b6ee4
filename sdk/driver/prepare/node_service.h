#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/env/file_lock.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "rpc/dra/dra.h"
#include "sdk/driver/plugin.h"
#include "sdk/driver/prepare/announced_claims.h"
#include "sdk/driver/prepare/claim_fetcher.h"

namespace drakkar {
class Metrics;
}  // namespace drakkar

namespace drakkar::driver {

class MetadataStore;

// Further calls are rejected; a node makes a few per pod start.
constexpr std::size_t kMaxOpenCalls = 4'096;
// Further calls for a claim whose earlier calls the plugin has not answered are rejected. A node
// repeats a call that timed out, so without this limit one stuck claim would fill kMaxOpenCalls.
constexpr std::size_t kMaxWaitingPerClaim = 8;

// Passes the node's calls to the plugin: fetches and checks claims, then checks and completes the
// plugin's results. Calls for one claim are serialized in order of arrival. Calls for different
// claims run concurrently, so that a slow one delays no other, unless `serialize` allows only one
// call at a time.
//
// Loop-bound; the plugin may answer on any thread. With a lock file, which is held during calls,
// instances of the driver in other processes are serialized too.
class NodeService final : public rpc::DraPluginService {
 public:
  struct Options {
    EventLoop& loop;
    client::Client& client;
    Plugin& plugin;
    bool serialize = false;
    std::string lock_file;       // no lock if empty
    Metrics* metrics = nullptr;  // no metrics if null
    std::function<void(const Error& error)> on_error;
    MetadataStore& metadata;
    // If off, nothing is written, but existing files are still removed.
    bool write_metadata = false;
    // Called when a claim is about to be prepared. May be empty.
    std::function<void(const api::Object& claim)> on_prepare;
  };
  explicit NodeService(Options options);
  ~NodeService() override;

  void NodePrepareResources(std::vector<rpc::ClaimReference> claims,
                            rpc::PrepareDone done) override;
  void NodeUnprepareResources(std::vector<rpc::ClaimReference> claims,
                              rpc::UnprepareDone done) override;
  void AnnouncePrepare(std::vector<rpc::AnnouncedClaim> claims, rpc::AnnounceDone done) override;

  // Held by whoever works on a call; releasing it lets the next call start.
  using Turn = std::shared_ptr<void>;
  // Runs `task` like a call of the node, while no other call is in flight, including those of other
  // instances. Calls of the node do not wait for it to start.
  void TakeTurn(std::function<void(Result<Turn> turn)> task);

 private:
  using Call = absl::AnyInvocable<void(Result<Turn> turn)>;
  struct Waiting {
    std::vector<std::string> claim_uids;
    bool is_alone = false;    // must not run concurrently with any other call
    bool is_patient = false;  // calls that arrive later may start first
    Call call;
  };

  bool Admit();
  // An error if too many calls already wait for one of these claims.
  Result<void> CheckWaiting(const std::vector<std::string>& claim_uids) const;
  template <typename Results>
  absl::AnyInvocable<void(Result<Results>)> Counted(const char* method,
                                                    absl::AnyInvocable<void(Result<Results>)> done);
  void Count(const char* method, Duration took, bool ok, std::size_t failed_claims);
  Result<std::vector<PreparedDevice>> CheckPrepared(AnnouncedClaims::Claim& claim,
                                                    PrepareResults& results);
  rpc::PrepareResults Complete(std::vector<AnnouncedClaims::Claim> claims, PrepareResults results);
  rpc::UnprepareResults Complete(const std::vector<rpc::ClaimReference>& claims,
                                 rpc::UnprepareResults results);
  void Enqueue(Waiting waiting);
  // The first call that may run now, or end().
  std::deque<Waiting>::iterator FindNext();
  void RunNext();
  void RunNextSoon();
  Turn MakeTurn(const Waiting& waiting);
  void EndTurn(const std::vector<std::string>& claim_uids);

  const Options options_;
  ClaimFetcher fetcher_;
  AnnouncedClaims announced_;
  std::size_t open_calls_ = 0;
  std::deque<Waiting> waiting_;  // at most kMaxOpenCalls
  std::size_t running_ = 0;
  bool one_runs_alone_ = false;
  std::set<std::string> running_claims_;
  std::uint64_t next_request_id_ = 1;
  std::unique_ptr<FileLock> lock_;
  TimerHandle lock_retry_;
  Lifetime lifetime_;
};

}  // namespace drakkar::driver
