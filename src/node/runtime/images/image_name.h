#pragma once

#include <string>
#include <string_view>

#include "base/result/result.h"

namespace drakkar::node {

// The full form of an image name: "busybox" becomes "docker.io/library/busybox:latest",
// "localhost/hello:1" stays as it is. A digest ("name@sha256:...") is kept and replaces the tag.
// Refuses names that no registry would accept.
Result<std::string> NormalizeImageName(std::string_view name);

// "sha256:<64 hexadecimal digits>", lower case: safe as part of a path.
bool IsSha256Digest(std::string_view text);

}  // namespace drakkar::node
