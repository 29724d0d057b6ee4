#pragma once

#include <memory>
#include <vector>

#include "answers/cluster/device_table.h"
#include "answers/cluster/snapshot.h"
#include "answers/pending/pending.h"
#include "dashboard/model/device_map.h"

namespace drakkar::dashboard {

// The cluster as it was at one refresh, with everything computed from it. Immutable.
struct View {
  answers::Snapshot snapshot;
  std::unique_ptr<const answers::DeviceTable> table;
  DeviceMap map;
  std::vector<answers::PendingPod> pending;
};

}  // namespace drakkar::dashboard
