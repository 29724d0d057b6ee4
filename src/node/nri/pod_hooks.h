#pragma once

#include "rpc/nri/nri.h"

namespace drakkar::node {

// Whoever is told of a node's sandboxes and containers and waited for. Loop-bound.
class PodHooks {
 public:
  virtual ~PodHooks() = default;
  // Whether anybody wants to know: what nobody wants need not be described.
  virtual bool Wants(rpc::NriEvent event) const = 0;
  // `done` is called once, at once or later; an error fails what was going on.
  virtual void Deliver(rpc::NriEvent event, rpc::NriPodSandbox pod, rpc::NriDone done) = 0;
  // An event of a container. With kCreateContainer `done` gets what is to be changed about it.
  virtual void DeliverContainer(rpc::NriEvent event, rpc::NriPodSandbox pod,
                                rpc::NriContainer container, rpc::NriAdjusted done) = 0;
};

}  // namespace drakkar::node
