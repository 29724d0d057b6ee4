#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::node {

struct ContainerUser {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> additional_gids;  // those of /etc/group that list the user
  std::string home;
};

// Resolves "user", "uid", "user:group" or "uid:gid" with the text of the image's passwd and group
// files (empty if the image has none). A name must be listed; a number need not be.
Result<ContainerUser> LookUpUser(std::string_view wanted, std::string_view passwd,
                                 std::string_view group);

}  // namespace drakkar::node
