#pragma once

#include "base/exec/event_loop.h"
#include "client/client.h"
#include "scheduler/framework/plugin.h"

namespace drakkar::scheduler {

// Tells the API which node the pod has. If no answer comes it looks until it knows what became of
// the binding: a pod that may be bound must not be placed again.
class DefaultBinder final : public Plugin {
 public:
  static constexpr Duration kPause = std::chrono::seconds(1);

  DefaultBinder(EventLoop& loop, client::Client& client) : loop_(loop), client_(client) {}
  ~DefaultBinder() override { *alive_ = false; }
  std::string_view name() const override { return "DefaultBinder"; }
  Points points() const override { return Point::kBind | Points{0}; }
  void Bind(CyclePtr cycle, StatusCallback done) override;

 private:
  void FindOut(CyclePtr cycle, std::string error, StatusCallback done);

  EventLoop& loop_;
  client::Client& client_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace drakkar::scheduler
