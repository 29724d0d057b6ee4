#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/env/file_lock.h"
#include "base/exec/event_loop.h"
#include "rpc/dra/dra.h"
#include "sdk/driver/plugin.h"
#include "sdk/driver/prepare/announced_claims.h"
#include "sdk/driver/prepare/claim_fetcher.h"

namespace drakkar {
class Metrics;
class Wakefulness;
}  // namespace drakkar

namespace drakkar::driver {

class MetadataStore;

// Beyond this many calls under way at once, calls are refused; a node makes a few per pod start.
constexpr std::size_t kMaxOpenCalls = 4'096;

// The node's calls, on their way to the plugin: claims are read and checked, calls come one at a
// time unless that was turned off, and what the plugin answers is checked and completed.
//
// Loop-bound. With a lock file, instances of the driver in other processes take turns too.
class NodeService final : public rpc::DraPluginService {
 public:
  struct Options {
    EventLoop& loop;
    client::Client& client;
    Plugin& plugin;
    bool serialize = true;
    std::string lock_file;       // empty: none; only with serialize
    Metrics* metrics = nullptr;  // null: none are kept
    Wakefulness* wakefulness =
        nullptr;  // held from the announcement or the call of a prepare to its answer
    std::function<void(const Error& error)> on_error;
    MetadataStore& metadata;
    // Off: nothing is written, but what was written before is still removed.
    bool write_metadata = false;
    // A claim is about to be prepared. May be empty.
    std::function<void(const api::Object& claim)> on_prepare;
  };
  explicit NodeService(Options options);
  ~NodeService() override;

  void NodePrepareResources(std::vector<rpc::ClaimReference> claims,
                            rpc::PrepareDone done) override;
  void NodeUnprepareResources(std::vector<rpc::ClaimReference> claims,
                              rpc::UnprepareDone done) override;
  void AnnouncePrepare(std::vector<rpc::AnnouncedClaim> claims, rpc::AnnounceDone done) override;

  // Kept by whoever still works on a call; its end lets the next call start.
  using Turn = std::shared_ptr<void>;
  // Runs `task` like a call of the node: alone, if calls are serialised, also among instances.
  void TakeTurn(std::function<void(Result<Turn> turn)> task);

 private:
  using Call = absl::AnyInvocable<void(Result<Turn> turn)>;

  bool Admit();
  // `done`, after which the wakefulness ends that begins now.
  template <typename Done>
  Done StayAwakeUntil(Done done);
  template <typename Results>
  absl::AnyInvocable<void(Result<Results>)> Counted(const char* method,
                                                    absl::AnyInvocable<void(Result<Results>)> done);
  void Count(const char* method, Duration took, bool ok, std::size_t failed_claims);
  rpc::PrepareResults Complete(const std::vector<api::ObjectPtr>& claims, PrepareResults results);
  rpc::UnprepareResults Complete(const std::vector<rpc::ClaimReference>& claims,
                                 rpc::UnprepareResults results);
  void Enqueue(Call call);
  void RunNext();
  Turn MakeTurn();
  void EndTurn();

  const Options options_;
  ClaimFetcher fetcher_;
  AnnouncedClaims announced_;
  std::size_t open_calls_ = 0;
  std::deque<Call> waiting_;  // bounded by kMaxOpenCalls
  bool busy_ = false;
  std::uint64_t next_request_id_ = 1;
  std::unique_ptr<FileLock> lock_;
  TimerHandle lock_retry_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace drakkar::driver
