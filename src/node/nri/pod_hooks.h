#pragma once

#include "rpc/nri/nri.h"

namespace drakkar::node {

// Whoever is told of a node's sandboxes and waited for. Loop-bound.
class PodHooks {
 public:
  virtual ~PodHooks() = default;
  // `done` is called once, at once or later; an error fails what was going on.
  virtual void Deliver(rpc::NriEvent event, rpc::NriPodSandbox pod, rpc::NriDone done) = 0;
};

}  // namespace drakkar::node
