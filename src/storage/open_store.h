#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/exec/uv_loop.h"
#include "base/result/result.h"
#include "storage/store.h"

namespace drakkar::storage {

// Where a cluster's state is stored. Each engine reads only its own fields.
struct StoreLocation {
  std::string engine = "sqlite";
  std::string directory = {};  // embedded engines only
  // etcd only: its members, as in --etcd-servers, and the files for TLS, which may be empty.
  std::vector<std::string> etcd_servers = {};
  std::string etcd_ca_file = {};
  std::string etcd_certificate_file = {};
  std::string etcd_key_file = {};
  Duration etcd_compaction_interval = std::chrono::minutes(5);  // 0: somebody else compacts
};

// Opens the named engine. To add an engine, implement Store and add a line to the table in
// open_store.cc. May block; call it before the loop has other work. The kInvalidArgument error for
// an unknown name lists the known engines.
Result<std::unique_ptr<Store>> OpenStore(UvLoop& loop, const StoreLocation& location);

}  // namespace drakkar::storage
