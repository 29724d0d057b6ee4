#pragma once

#include <string>

namespace drakkar {

// `path` from the root on, without "." and "..", symbolic links followed as far as it exists. So it
// is what other programs may be told and what the kernel shows in its list of mounts. Empty stays
// empty.
std::string AbsolutePath(const std::string& path);

}  // namespace drakkar
