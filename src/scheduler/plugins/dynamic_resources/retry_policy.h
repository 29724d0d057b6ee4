#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "device/device_id.h"
#include "scheduler/cache/node_table.h"
#include "scheduler/framework/plugin.h"

namespace drakkar::scheduler {

// Remembers which devices and nodes failed for a pod, and decides when the pod is retried and what
// it should avoid then (KEP-5007). Does no I/O and no search: the caller reports what fits.
//
// Failed devices are avoided for one round. The round ends when nothing else is left; then all of
// them are retried. A pod is forgotten when it is bound or deleted. Limits per pod:
// kMaxFailedDevices and kMaxFailedNodes; only the latest failures are kept.
class RetryPolicy {
 public:
  // Enough for a node that sees 32 full slices.
  static constexpr std::size_t kMaxFailedDevices = 4'096;
  static constexpr std::size_t kMaxFailedNodes = 1'024;
  // A pod that its other claims tie to a node leaves the node after this many failures, if another
  // node is left to try. Before that it tries other devices of the node.
  static constexpr int kFailuresToLeaveNode = 2;

  // True if this is the device's first failure for the pod.
  bool NoteDevice(const std::string& pod_uid, const device::DeviceId& device);
  void NoteNode(const std::string& pod_uid, const std::string& node_name);
  void Forget(const std::string& pod_uid) { pods_.erase(pod_uid); }
  std::size_t size() const { return pods_.size(); }

  // The devices that failed for the pod in this round. Valid until the next failure is noted.
  std::vector<const device::DeviceId*> FailedDevices(const std::string& pod_uid) const;
  void BeginRound(const std::string& pod_uid);

  // `nodes` without those on which binding has failed for the pod.
  NodeSet Untried(const std::string& pod_uid, const NodeTable& table, NodeSet nodes) const;
  // Narrows `nodes` to the untried ones or, if all were tried, to the one that failed longest ago.
  void PreferUntried(const std::string& pod_uid, const NodeTable& table, NodeSet& nodes) const;

  // What the pod could get after a failure.
  struct Prospects {
    bool fits = false;        // it fits some node with the claims it keeps
    bool fits_ready = false;  // the same, with devices that need no wait
    // Whether the pod would fit if it gave up the claims that only it uses: on some node, and on a
    // node it has not tried.
    bool fits_alone = false;
    bool fits_alone_untried = false;
  };
  struct Failure {
    std::string pod_uid;
    std::string node_name;
    bool is_node_lost = false;  // the node is gone or rejects the pod; its devices did not fail
    bool is_news = false;       // a device failed for the first time, or the node was lost
  };
  struct Decision {
    Retry::When when = Retry::When::kLater;
    bool gives_up_claims = false;  // gives up claims that only this pod uses
  };
  // `now` excludes the devices that failed in this round. `with_failed` includes them, and is
  // called only if needed.
  //
  // Retries at once if devices that need no wait fit or the node was lost, soon if something else
  // fits, and later otherwise. To avoid a hot loop, a repeated failure of the same device is
  // retried later, and a pod is not retried at once for ready devices twice in a row.
  Decision Decide(const Failure& failure, const Prospects& now,
                  const std::function<Prospects()>& with_failed);

 private:
  struct NodeFailures {
    std::uint64_t last = 0;
    int count = 0;
  };
  // Failures are numbered per pod.
  struct Pod {
    std::map<device::DeviceId, std::uint64_t> devices;  // last failure of each
    std::map<std::string, NodeFailures> nodes;
    std::uint64_t next = 0;
    std::uint64_t round_began = 0;   // device failures from this number on are avoided
    bool was_tried_at_once = false;  // it was retried at once after the last failure
  };
  bool HasFailedOften(const std::string& pod_uid, const std::string& node_name) const;

  std::map<std::string, Pod> pods_;  // by uid
};

}  // namespace drakkar::scheduler
