#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "base/result/result.h"
#include "client/informer.h"
#include "client/work_queue.h"
#include "sdk/driver/slices/desired_pool.h"
#include "sdk/driver/slices/pool_plan.h"
#include "sdk/driver/slices/resources.h"

namespace drakkar::driver {

// Keeps the ResourceSlices of a driver on the server in the state that the driver asked for.
//
// A published state is written at once. Changes by others are reverted after `sync_delay`, so that
// two writers that disagree do not overload the server. Failed writes are retried with back-off.
// Fields that the server drops are reported, and then ignored until the next Publish.
//
// Manages the slices of its driver on its node or, without a node, those of its driver on no
// particular node (of one pool, if `pool_name` is set). Slices of pools that were not published are
// deleted. Nothing is written before the first Publish.
//
// Loop-bound. Holds the driver's slices of its node twice, and the last error per pool.
class SliceController {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    std::string driver_name;
    std::string node_name;  // empty for a driver without a node
    std::string node_uid;   // if empty, looked up whenever a slice is created
    // Only without a node: the one pool to manage, so that several controllers can share a driver
    // name; and the owner of the slices (an OwnerReference), or null.
    std::string pool_name;
    api::TreePtr owner;
    Duration sync_delay = std::chrono::seconds(30);
    // Called for background failures. A failure that repeats for a pool is reported once, until the
    // pool is in sync or the error changes.
    std::function<void(const Error& error)> on_error;
  };

  explicit SliceController(Options options);
  ~SliceController();
  SliceController(const SliceController&) = delete;
  SliceController& operator=(const SliceController&) = delete;

  // Makes `resources` the complete desired state. Returns once it is accepted, not once it is on
  // the server. A rejected one changes nothing.
  Result<void> Publish(const DriverResources& resources);

  // Call it when the node has registered the driver. A node registers drivers after its own start,
  // when it may have deleted the slices of its drivers, or may still be doing so. Writes missing
  // slices at once, and repairs deletions of the next seconds without the usual delay.
  void OnRegistered();

  // True if the last Publish is on the server and no work is pending.
  bool IsSettled() const;

  struct Counts {
    std::uint64_t creations = 0;
    std::uint64_t updates = 0;
    std::uint64_t deletions = 0;
    bool operator==(const Counts&) const = default;
  };
  const Counts& counts() const { return counts_; }

 private:
  // One pass over one pool: the plan and its progress.
  struct Run {
    std::string pool;
    std::uint64_t publication = 0;
    PoolPlan plan;
    std::size_t next = 0;
    api::TreePtr owner;
    client::WorkQueue::Done done;
  };
  using RunPtr = std::shared_ptr<Run>;

  void Start();
  bool IsOurs(const api::Object& slice) const;
  void OnForeignChange(const api::ObjectPtr& slice, bool deleted);
  void Sync(const std::string& pool, client::WorkQueue::Done done);
  std::vector<api::ObjectPtr> SlicesOf(const std::string& pool);
  void LookUpOwner(const RunPtr& run);
  void Step(const RunPtr& run);
  void Delete(const RunPtr& run, const api::ObjectPtr& slice);
  void Update(const RunPtr& run, const SliceUpdate& update);
  void Create(const RunPtr& run, const SliceCreation& creation);
  void OnWritten(const RunPtr& run, std::size_t index, const api::TreePtr& sent,
                 const api::ObjectPtr& stored);
  void Fail(const RunPtr& run, Error error);
  void Report(const std::string& pool, const Error& error);

  const Options options_;
  const SliceIdentity identity_;

  std::map<std::string, DesiredPool> desired_;
  std::uint64_t publication_ = 0;
  MonotonicTime eager_until_{};  // see OnRegistered
  Counts counts_;
  std::map<std::string, std::string> last_error_;  // by pool
  // Our writes that the informer has not delivered yet: newer versions by name, deleted UIDs.
  std::map<std::string, api::ObjectPtr> written_;
  std::set<std::string> deleted_;
  std::map<std::string, TimerHandle> resyncs_;  // by pool

  std::unique_ptr<client::Informer> informer_;
  std::unique_ptr<client::WorkQueue> queue_;
  Lifetime lifetime_;
};

}  // namespace drakkar::driver
