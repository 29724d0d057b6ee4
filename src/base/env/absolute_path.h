#pragma once

#include <string>

namespace drakkar {

// `path` as an absolute path without "." and "..", with symbolic links resolved as far as it
// exists. Suitable to pass to other programs and to compare with the kernel's list of mounts. An
// empty path stays empty.
std::string AbsolutePath(const std::string& path);

}  // namespace drakkar
