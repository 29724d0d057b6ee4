#pragma once

#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "node/runtime/runtime.h"

namespace drakkar::cmd {

// The CRI runtime that the node in a data directory uses, so that commands find it: its socket, or
// nothing for the built-in runtime. The node writes this file in its directory.
Result<void> NoteRuntimeSocket(FileSystem& files, const std::string& data_dir,
                               const std::string& socket);
std::string RuntimeSocketOf(FileSystem& files, const std::string& data_dir);

struct RemovedPods {
  std::size_t count = 0;
  std::vector<std::string> errors;
};
// Removes only the pods that a node agent of this data directory created in the runtime; they are
// recognized by their logs below the directory. Blocking.
Result<RemovedPods> RemoveCriPods(const std::string& socket, const std::string& data_dir);
// Blocking.
Result<std::vector<node::Image>> ListCriImages(const std::string& socket);

}  // namespace drakkar::cmd
