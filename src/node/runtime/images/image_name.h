#pragma once

#include <string>
#include <string_view>

#include "base/result/result.h"

namespace drakkar::node {

struct Image;

// The full form of an image name: "busybox" becomes "docker.io/library/busybox:latest",
// "localhost/hello:1" stays as it is. A digest ("name@sha256:...") is kept and replaces the tag.
// Refuses names that no registry would accept.
Result<std::string> NormalizeImageName(std::string_view name);

// A full name without its tag or digest: "docker.io/library/busybox".
std::string_view RepositoryOf(std::string_view full_name);

// How to name the image that a container was asked to run as `name`: its manifest's digest in that
// repository, or in another one, or its id if it was not pulled.
std::string ReferenceTo(const Image& image, std::string_view name);

// "sha256:<64 hexadecimal digits>", lower case: safe as part of a path.
bool IsSha256Digest(std::string_view text);

}  // namespace drakkar::node
