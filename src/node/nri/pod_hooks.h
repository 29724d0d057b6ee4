#pragma once

#include "rpc/nri/nri.h"

namespace drakkar::node {

// Receives sandbox and container events; the runtime waits for its answers. Loop-bound.
class PodHooks {
 public:
  virtual ~PodHooks() = default;
  // Whether anyone wants the event: otherwise it need not be described.
  virtual bool Wants(rpc::NriEvent event) const = 0;
  // `done` is called once, immediately or later; an error fails the operation.
  virtual void Deliver(rpc::NriEvent event, rpc::NriPodSandbox pod, rpc::NriDone done) = 0;
  // A container event. For kCreateContainer, `done` receives the adjustments.
  virtual void DeliverContainer(rpc::NriEvent event, rpc::NriPodSandbox pod,
                                rpc::NriContainer container, rpc::NriAdjusted done) = 0;
};

}  // namespace drakkar::node
