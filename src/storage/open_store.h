#pragma once

#include <memory>
#include <string>

#include "base/exec/event_loop.h"
#include "base/result/result.h"
#include "storage/store.h"

namespace drakkar::storage {

// Where a cluster's state is stored. Each engine reads only its own fields.
struct StoreLocation {
  std::string engine = "sqlite";
  std::string directory;  // embedded engines only
};

// Opens the named engine. To add an engine, implement Store and add a line to the table in
// open_store.cc. May block; call it before the loop has other work. The kInvalidArgument error for
// an unknown name lists the known engines.
Result<std::unique_ptr<Store>> OpenStore(EventLoop& loop, const StoreLocation& location);

}  // namespace drakkar::storage
