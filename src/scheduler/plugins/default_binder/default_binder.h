#pragma once

#include "client/client.h"
#include "scheduler/framework/plugin.h"

namespace drakkar::scheduler {

// Tells the API which node the pod has.
class DefaultBinder final : public Plugin {
 public:
  explicit DefaultBinder(client::Client& client) : client_(client) {}
  std::string_view name() const override { return "DefaultBinder"; }
  Points points() const override { return Point::kBind | Points{0}; }
  void Bind(CyclePtr cycle, StatusCallback done) override;

 private:
  client::Client& client_;
};

}  // namespace drakkar::scheduler
