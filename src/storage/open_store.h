#pragma once

#include <memory>
#include <string>

#include "base/exec/event_loop.h"
#include "base/result/result.h"
#include "storage/store.h"

namespace drakkar::storage {

// Where a cluster's state is. Each engine reads the fields that concern it.
struct StoreLocation {
  std::string engine = "sqlite";
  std::string directory;  // of an embedded engine
};

// Opens the engine of that name: a new one is a class that implements Store and a line in the table
// of open_store.cc. May block; call it before the loop has other work. kInvalidArgument names the
// engines there are.
Result<std::unique_ptr<Store>> OpenStore(EventLoop& loop, const StoreLocation& location);

}  // namespace drakkar::storage
