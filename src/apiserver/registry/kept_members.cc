#include "apiserver/registry/kept_members.h"

#include <vector>

namespace drakkar::apiserver {

using api::Draft;
using api::Value;

void KeepMember(api::FieldName member, Value before, Draft& object) {
  const Value kept = before[member];
  if (kept.exists()) {
    object[member] = Draft(kept);
  } else {
    object.Remove(member);
  }
}

void KeepAllBut(api::FieldName member, Value before, Draft& object) {
  std::erase_if(object.MutableMembers(), [&](const auto& given) {
    const std::string_view name = given.first->view();
    return name != member.view() && name != "metadata" && name != "apiVersion" && name != "kind" &&
           !before.Entry(*given.first).exists();
  });
  for (const auto& [key, name, value] : before.members()) {
    if (name != member.view() && name != "metadata") object.Entry(*key) = Draft(value);
  }
}

}  // namespace drakkar::apiserver
