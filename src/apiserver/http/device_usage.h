#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>

#include "api/meta/object.h"

namespace drakkar::apiserver {

struct TableOptions;

// The devices held by allocated claims, for the table of slices. Admin access does not count: it
// takes no device away from others.
class DeviceUsage {
 public:
  using Objects = std::map<std::string, api::ObjectPtr, std::less<>>;  // as in a WatchCache

  // Reads the claims again unless `revision` (their newest change) is the one seen last.
  void Update(const Objects& claims, std::int64_t revision);

  // How many devices of a slice are held by claims; a device shared by several counts once.
  std::int64_t AllocatedIn(const api::Object& slice) const;

 private:
  std::int64_t revision_ = -1;
  std::unordered_set<std::string> devices_;  // "driver/pool/device"; pools may have slashes
};

// Makes a table show `usage`; null shows it as unknown.
void ShowUsage(std::shared_ptr<const DeviceUsage> usage, TableOptions& options);

}  // namespace drakkar::apiserver
