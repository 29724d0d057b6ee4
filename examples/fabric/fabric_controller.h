#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"
#include "client/informer.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"

namespace drakkar::fabric {

// What happens when a device is attached.
enum class Behaviour { kAttaches, kFails, kHangs };

struct FabricDevice {
  std::string name;
  Behaviour behaviour = Behaviour::kAttaches;
};

// A controller for devices behind a (simulated) fabric, as in KEP-5007. It publishes them for all
// nodes with binding conditions, watches claims, attaches allocated devices to the claim's node,
// and reports that in status.devices. The scheduler binds the pod only then.
//
//   attached       success: the condition `<driver>/attached` becomes True
//   attach-failed  failure: the condition becomes True and the device gets a taint, so that it is
//                  not allocated again before someone has checked it
//
// All its state is in the API: after a restart it continues from the claims. Loop-bound. Bounded by
// the number of claims and devices.
class FabricController {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    std::string driver = "fabric.example.com";
    std::string pool = "fabric";
    std::vector<FabricDevice> devices;
    Duration attach_delay = std::chrono::seconds(2);
  };
  explicit FabricController(Options options);
  FabricController(const FabricController&) = delete;
  FabricController& operator=(const FabricController&) = delete;

  void Start();

  std::string attached_condition() const { return options_.driver + "/attached"; }
  std::string failed_condition() const { return options_.driver + "/attach-failed"; }

 private:
  // An allocated device of a claim whose outcome has not been reported yet.
  struct Pending {
    std::string device;
    std::string share;
    std::string node;
  };

  void OnClaim(const api::ObjectPtr& claim);
  std::vector<Pending> FindPending(const api::Object& claim) const;
  Behaviour BehaviourOf(const std::string& device) const;
  // Updates one claim's conditions.
  void AttachFor(const std::string& key, client::WorkQueue::Done done);
  void WriteConditions(const api::ObjectPtr& claim, const std::vector<Pending>& ready,
                       client::WorkQueue::Done done);
  // Updates the slice: devices, conditions, taints.
  void Publish(client::WorkQueue::Done done);
  api::TreePtr MakeSlice(const api::Object* old) const;
  std::string slice_name() const { return options_.driver + "-" + options_.pool; }

  const Options options_;
  client::ScopedClient client_;
  client::Informer claims_;
  client::WorkQueue work_;  // claim keys, and the empty key for the slice
  // When attaching a claim's devices started, and for which allocation; by claim UID.
  struct Attaching {
    std::string allocation;
    MonotonicTime since;
  };
  std::map<std::string, Attaching> attaching_;
  std::set<std::string> broken_;  // devices to taint
  Lifetime lifetime_;
};

}  // namespace drakkar::fabric
