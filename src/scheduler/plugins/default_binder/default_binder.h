#pragma once

#include "base/exec/lifetime.h"
#include "client/client.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/framework/plugin_context.h"

namespace drakkar::scheduler {

// Writes the pod's node to the API. If the outcome of the write is unknown, it reads the pod until
// it knows: a pod that may be bound must not be placed again.
class DefaultBinder final : public Plugin {
 public:
  static constexpr Duration kPause = std::chrono::seconds(1);

  explicit DefaultBinder(const PluginContext& context)
      : loop_(context.loop), client_(context.client) {}
  void Bind(CyclePtr cycle, StatusCallback done) override;

 private:
  void FindOut(CyclePtr cycle, std::string error, StatusCallback done);

  EventLoop& loop_;
  client::Client& client_;
  Lifetime lifetime_;
};

}  // namespace drakkar::scheduler
