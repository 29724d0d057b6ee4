#pragma once

#include <memory>

#include "node/nri/pod_hooks.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// A runtime whose sandboxes are made known to hooks: RunPodSandbox answers only after every hook has
// finished, so no container (init containers among them) starts before; if a hook fails, the sandbox
// is removed again and the call fails. Stopping and removing tell the hooks too, whose errors are then
// logged and change nothing. Everything else goes straight to the runtime beneath.
//
// Runtime and hooks must outlive it.
std::unique_ptr<Runtime> MakeHookedRuntime(std::unique_ptr<Runtime> beneath, PodHooks& hooks);

rpc::NriPodSandbox DescribeSandbox(const PodSandbox& sandbox);

}  // namespace drakkar::node
