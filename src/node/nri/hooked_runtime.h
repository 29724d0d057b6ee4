#pragma once

#include <memory>

#include "base/env/random.h"
#include "node/nri/apply_adjustment.h"
#include "node/nri/pod_hooks.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// A runtime that notifies hooks of sandboxes and containers.
//
// RunPodSandbox answers only after every hook has finished, so no container (including init
// containers) starts earlier; if a hook fails, the sandbox is removed and the call fails. Hooks may
// adjust a container before it is created and change its resources before they are updated; their
// errors fail its creation, start or update. Hooks are also notified of stops and removals, where
// their errors are only logged. All other calls go directly to the wrapped runtime.
//
// Runtime, hooks and random must outlive it. `injector` adds the CDI devices that hooks ask for.
std::unique_ptr<Runtime> MakeHookedRuntime(std::unique_ptr<Runtime> beneath, PodHooks& hooks,
                                           Random& random, CdiInjector injector = nullptr);

}  // namespace drakkar::node
