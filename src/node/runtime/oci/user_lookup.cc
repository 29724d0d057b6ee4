#include "node/runtime/oci/user_lookup.h"

#include <algorithm>
#include <optional>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

std::optional<std::uint32_t> ParseId(std::string_view text) {
  const auto value = ParseInt64(text);
  if (!value || *value < 0 || *value >= UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

}  // namespace

Result<ContainerUser> LookUpUser(std::string_view wanted, std::string_view passwd,
                                 std::string_view group) {
  ContainerUser user;
  const std::size_t colon = wanted.find(':');
  const std::string_view name = wanted.substr(0, colon);
  const std::string_view group_name =
      colon == std::string_view::npos ? std::string_view() : wanted.substr(colon + 1);
  std::string login;
  const auto number = name.empty() ? std::optional<std::uint32_t>(0) : ParseId(name);
  bool found = false;
  for (std::string_view line : Split(passwd, '\n')) {
    const auto fields = Split(line, ':');
    if (fields.size() < 6) continue;
    const auto uid = ParseId(fields[2]), gid = ParseId(fields[3]);
    if (!uid || !gid) continue;
    if (number ? *uid != *number : fields[0] != name) continue;
    user.uid = *uid;
    user.gid = *gid;
    user.home = std::string(fields[5]);
    login = std::string(fields[0]);
    found = true;
    break;
  }
  if (!found) {
    if (!number) {
      return InvalidArgument("user " + Quote(name) + " is not in the image's /etc/passwd");
    }
    user.uid = *number;
  }
  bool group_found = group_name.empty();
  if (const auto gid = ParseId(group_name); !group_name.empty() && gid) {
    user.gid = *gid;
    group_found = true;
  }
  for (std::string_view line : Split(group, '\n')) {
    const auto fields = Split(line, ':');
    if (fields.size() < 4) continue;
    const auto gid = ParseId(fields[2]);
    if (!gid) continue;
    if (!group_found && fields[0] == group_name) {
      user.gid = *gid;
      group_found = true;
    }
    if (login.empty()) continue;
    const auto members = Split(Trim(fields[3]), ',');
    if (std::find(members.begin(), members.end(), login) != members.end()) {
      user.additional_gids.push_back(*gid);
    }
  }
  if (!group_found) {
    return InvalidArgument("group " + Quote(group_name) + " is not in the image's /etc/group");
  }
  return user;
}

}  // namespace drakkar::node
