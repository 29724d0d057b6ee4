#pragma once

#include "scheduler/framework/plugin.h"

namespace drakkar::scheduler {

// Refuses pods that ask for something we do not honour yet, so that none is placed as if it had not
// asked. Preferences that we do not know are not refused: a preference may be missed.
class UnsupportedFields final : public Plugin {
 public:
  std::string_view name() const override { return "UnsupportedFields"; }
  Points points() const override { return Point::kPreFilter | Points{0}; }
  EventMask events() const override { return MaskOf(EventKind::kTargetPodChange); }
  Status PreFilter(Cycle& cycle) override;
};

// The path of the first such field, or empty.
std::string FindUnsupportedField(const PodInfo& pod);

}  // namespace drakkar::scheduler
