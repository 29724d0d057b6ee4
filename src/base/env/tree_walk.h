#pragma once

#include <sys/stat.h>

#include <functional>
#include <string>

#include "base/result/result.h"

namespace drakkar {

// What a walk calls; an error ends it. Names have one component. Use them with the *at system calls
// on the given directory, because others may change the tree at the same time.
struct TreeCallbacks {
  // Everything but directories: files, links, sockets, devices.
  std::function<Result<void>(int directory, const std::string& name, const struct stat& info)>
      on_entry;
  // A directory, after its contents. May remove it.
  std::function<Result<void>(int parent, const std::string& name, const struct stat& info)>
      on_directory;
  // Mount points are not entered: if true they are skipped, otherwise they are an error.
  bool skip_mounts = false;
};

// Walks everything below a directory, never through a link and never into another mount. The tree
// may be hostile: neither path length nor the number of open files limits its depth, only memory
// for the names on the way. Fails with kConflict if a directory was moved during the walk.
Result<void> WalkTree(const std::string& path, const TreeCallbacks& callbacks);

// Disk usage of the tree, counting a file with several names once, without mounts in it.
Result<std::uint64_t> TreeUsage(const std::string& path);

}  // namespace drakkar
