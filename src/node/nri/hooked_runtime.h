#pragma once

#include <memory>

#include "base/env/random.h"
#include "node/nri/pod_hooks.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// A runtime whose sandboxes and containers are made known to hooks.
//
// RunPodSandbox answers only after every hook has finished, so no container (init containers among
// them) starts before; if a hook fails, the sandbox is removed again and the call fails. Hooks may
// change environment, mounts and annotations of a container before it is created, and their errors
// fail its creation or start. Of what ends and is removed they are told too; their errors are then
// logged and change nothing. Everything else goes straight to the runtime beneath.
//
// Runtime, hooks and random must outlive it.
std::unique_ptr<Runtime> MakeHookedRuntime(std::unique_ptr<Runtime> beneath, PodHooks& hooks,
                                           Random& random);

rpc::NriPodSandbox DescribeSandbox(const PodSandbox& sandbox);

}  // namespace drakkar::node
