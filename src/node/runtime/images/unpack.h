#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result/result.h"
#include "node/runtime/images/tar_reader.h"

namespace drakkar::node {

struct UnpackOptions {
  bool whiteouts = false;  // ".wh." names remove what earlier layers brought (OCI image layers)
  std::uint64_t max_bytes = std::uint64_t{256} << 30;
  // With whiteouts, the paths of a layer are kept in memory while it is unpacked. Beyond this,
  // which is about two million files, it is refused.
  std::uint64_t max_path_bytes = std::uint64_t{256} << 20;
  std::function<void(std::uint64_t bytes)> progress;  // content written so far, may be empty
};

struct UnpackSummary {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t skipped_devices = 0;  // containers get their /dev from the runtime
};

// Unpacks an archive into the directory `root`, over existing files. Nothing outside is ever
// touched: paths are resolved inside `root` as in a chroot, so a link that points out leads back
// in. Owners are kept when running as root. Blocking: belongs on a worker.
Result<UnpackSummary> UnpackTar(TarReader& reader, const std::string& root,
                                const UnpackOptions& options);

// Reads a file inside `root`, resolving links within it; at most `max_bytes`.
Result<std::string> ReadFileInRoot(const std::string& root, const std::string& path,
                                   std::size_t max_bytes);

// The path of a regular file inside `root`, with links resolved within it.
Result<std::string> ResolveInRoot(const std::string& root, const std::string& path);

// Copies a directory tree with owners, modes, links and times, where overlayfs is not possible.
Result<void> CopyTree(const std::string& from, const std::string& to);

}  // namespace drakkar::node
