#pragma once

#include <vector>

#include "apiserver/watch/store_layout.h"
#include "cli/command.h"
#include "storage/open_store.h"

namespace drakkar::cmd {

// --etcd-servers and the flags that need it, named as in kube-apiserver.
std::vector<cli::Flag> EtcdFlags();

struct EtcdFlagValues {
  storage::StoreLocation location;
  apiserver::StoreLayout layout;
};
// The embedded store without --etcd-servers; the other flags are then refused. Commands without
// --etcd-compaction-interval leave compaction to the servers.
Result<EtcdFlagValues> ReadEtcdFlags(const cli::Arguments& arguments, bool compacts = true);

}  // namespace drakkar::cmd
