#pragma once

#include <functional>
#include <vector>

#include "rpc/nri/nri.h"

namespace drakkar::node {

// The sandboxes and containers that hooks can see and change. Loop-bound.
class HookedObjects {
 public:
  virtual ~HookedObjects() = default;
  virtual std::vector<rpc::NriPodSandbox> DescribePods() = 0;
  virtual std::vector<rpc::NriContainer> DescribeContainers() = 0;

  struct FailedUpdate {
    rpc::NriContainerUpdate update;
    Error error;
  };
  // Applies the updates, each at most once per container. Updates of containers that have ended are
  // no failure.
  virtual void Update(std::vector<rpc::NriContainerUpdate> updates,
                      absl::AnyInvocable<void(std::vector<FailedUpdate>)> done) = 0;
  // Stops the container. Its restart policy decides what follows.
  virtual void Evict(const rpc::NriEviction& eviction) = 0;
};

// Receives sandbox and container events; the runtime waits for its answers. Loop-bound.
class PodHooks {
 public:
  virtual ~PodHooks() = default;
  // What the hooks can see and change; null: no longer.
  virtual void Connect(HookedObjects* objects) = 0;
  // Whether anyone wants the event: otherwise it need not be described.
  virtual bool Wants(rpc::NriEvent event) const = 0;
  // `done` is called once, immediately or later; an error fails the operation. `resources` are the
  // new ones of kUpdatePodSandbox.
  virtual void Deliver(rpc::NriEvent event, rpc::NriPodSandbox pod, rpc::NriResources resources,
                       rpc::NriDone done) = 0;
  // A container event. For kCreateContainer, `done` receives the adjustments; for kUpdateContainer,
  // in `resources`, how the new resources are to be changed.
  struct Changes {
    rpc::NriContainerAdjustment adjustment;
    rpc::NriResources resources;
  };
  using Changed = absl::AnyInvocable<void(Result<Changes>)>;
  virtual void DeliverContainer(rpc::NriEvent event, rpc::NriPodSandbox pod,
                                rpc::NriContainer container, rpc::NriResources resources,
                                Changed done) = 0;
};

}  // namespace drakkar::node
