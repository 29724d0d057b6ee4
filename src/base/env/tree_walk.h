#pragma once

#include <sys/stat.h>

#include <functional>
#include <string>

#include "base/result/result.h"

namespace drakkar {

// What a walk calls. An error ends it. Names are of one part; use them with the *at calls on the
// directory they come with: others may be changing the tree meanwhile.
struct TreeCallbacks {
  // Everything but directories: files, links, sockets, devices.
  std::function<Result<void>(int directory, const std::string& name, const struct stat& info)>
      on_entry;
  // A directory, after all that is in it. May remove it.
  std::function<Result<void>(int parent, const std::string& name, const struct stat& info)>
      on_directory;
  // A directory on which something is mounted is not entered: true passes over it, false is an
  // error.
  bool skip_mounts = false;
};

// Walks everything below a directory, never through a link and never into another mount. Whatever
// made the tree may be hostile: no length of a path and no number of open files bounds its depth,
// only the memory for the names on the way. kConflict: a directory was moved away under the walk.
Result<void> WalkTree(const std::string& path, const TreeCallbacks& callbacks);

// What the tree takes on disk, a file with several names once. What is mounted in it does not
// count.
Result<std::uint64_t> TreeUsage(const std::string& path);

}  // namespace drakkar
