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

// "user", "uid", "user:group", "uid:gid" against the image's own passwd and group files (their
// text; empty when the image has none). A number need not be listed; a name must.
Result<ContainerUser> LookUpUser(std::string_view wanted, std::string_view passwd,
                                 std::string_view group);

}  // namespace drakkar::node
