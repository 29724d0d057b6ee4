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

// Remembers which devices and nodes failed for a pod, and decides when the pod is tried again and
// what it should avoid then (KEP-5007). Does no I/O and no search: the caller reports what fits.
//
// Devices that failed are avoided for a round, which ends when nothing else is left; then all of
// them are tried again. A pod is forgotten when it is bound or deleted. Bounds per pod:
// kMaxFailedDevices and kMaxFailedNodes; only the latest failures are kept.
class RetryPolicy {
 public:
  // Room for a node that sees 32 full slices.
  static constexpr std::size_t kMaxFailedDevices = 4'096;
  static constexpr std::size_t kMaxFailedNodes = 1'024;
  // A pod whose other claims tie it to a node leaves it after this many failures there, if another
  // is left to try; before that it tries other devices of the node.
  static constexpr int kFailuresToLeaveNode = 2;

  // True if the device had not failed for the pod before.
  bool NoteDevice(const std::string& pod_uid, const device::DeviceId& device);
  void NoteNode(const std::string& pod_uid, const std::string& node_name);
  void Forget(const std::string& pod_uid) { pods_.erase(pod_uid); }
  std::size_t size() const { return pods_.size(); }

  // The devices that failed for the pod in this round. Valid until something is noted.
  std::vector<const device::DeviceId*> FailedDevices(const std::string& pod_uid) const;
  void BeginRound(const std::string& pod_uid);

  // `nodes` without those on which binding has failed for the pod.
  NodeSet Untried(const std::string& pod_uid, const NodeTable& table, NodeSet nodes) const;
  // Narrows `nodes` to the untried ones or, if all were tried, to the one that failed longest ago.
  void PreferUntried(const std::string& pod_uid, const NodeTable& table, NodeSet& nodes) const;

  // What there is for the pod after a failure.
  struct Prospects {
    bool fits = false;        // with the claims it keeps, on some node
    bool fits_ready = false;  // the same, with devices that need not be waited for
    // If it gave up the claims that nobody else uses: on some node, and on one it has not tried.
    bool fits_alone = false;
    bool fits_alone_untried = false;
  };
  struct Failure {
    std::string pod_uid;
    std::string node_name;
    bool is_node_lost =
        false;             // the node is gone or refuses the pod; nothing is wrong with devices
    bool is_news = false;  // a device failed that had not before, or the node was lost
  };
  struct Decision {
    Retry::When when = Retry::When::kLater;
    bool gives_up_claims = false;  // those that nobody else uses
  };
  // `now` is without the devices that failed in this round; `with_failed` gives what there is with
  // them, and is called only if that matters.
  //
  // At once if something fits that need not be waited for, or if the node was lost; soon if
  // something else fits; later if not. Neither a device that failed before nor two retries at once
  // in a row make a hot loop.
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
    std::uint64_t round_began = 0;   // failures of devices from this one on are avoided
    bool was_tried_at_once = false;  // after the last failure
  };
  bool HasFailedOften(const std::string& pod_uid, const std::string& node_name) const;

  std::map<std::string, Pod> pods_;  // by uid
};

}  // namespace drakkar::scheduler
