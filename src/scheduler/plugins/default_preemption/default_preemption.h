#pragma once

#include <functional>
#include <string>

#include "scheduler/framework/plugin.h"
#include "scheduler/framework/plugin_context.h"

namespace drakkar::scheduler {

// Makes room for a pod that fits nowhere by evicting pods of lower priority. Frees CPU, memory,
// ports and affinity, but no devices: the claims of victims are not part of the trial, as in
// Kubernetes.
class DefaultPreemption final : public Plugin {
 public:
  explicit DefaultPreemption(const PluginContext& context) : preempt_(context.preempt) {}
  Status PostFilter(Cycle& cycle) override {
    const std::string done = preempt_ ? preempt_(cycle) : std::string();
    return done.empty() ? Status::Success() : Status::Unschedulable(done);
  }

 private:
  const std::function<std::string(Cycle&)> preempt_;
};

}  // namespace drakkar::scheduler
