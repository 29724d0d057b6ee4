#include "apiserver/registry/kept_members.h"

#include <vector>

namespace drakkar::apiserver {

using api::Draft;
using api::Value;

void KeepMember(std::string_view member, Value before, Draft& object) {
  const Value kept = before[member];
  if (kept.exists()) {
    object[member] = Draft(kept);
  } else {
    object.Remove(member);
  }
}

void KeepAllBut(std::string_view member, Value before, Draft& object) {
  std::erase_if(object.MutableMembers(), [&](const auto& given) {
    const std::string_view name = given.first->view();
    return name != member && name != "metadata" && name != "apiVersion" && name != "kind" &&
           !before[*given.first].exists();
  });
  for (const auto& [key, name, value] : before.members()) {
    if (name != member && name != "metadata") object[*key] = Draft(value);
  }
}

}  // namespace drakkar::apiserver
