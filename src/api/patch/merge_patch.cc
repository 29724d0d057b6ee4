#include "api/patch/merge_patch.h"

#include "api/json/reader.h"
#include "api/tree/add_member.h"
#include "api/tree/draft.h"

namespace drakkar::api {
namespace {

// `value` without null members of objects at any depth; array elements are kept.
Draft WithoutNulls(Value value) {
  if (value.is_object()) {
    Draft draft = Draft::Object();
    for (const MemberView member : value.members()) {
      if (!member.value.has_value()) continue;
      AddMember(draft, member.name, WithoutNulls(member.value));
    }
    return draft;
  }
  if (value.is_array()) {
    Draft draft = Draft::Array();
    for (const Value element : value.elements()) draft.Append(WithoutNulls(element));
    return draft;
  }
  return Draft(value);
}

void Merge(Draft& target, Value patch) {
  for (const MemberView member : patch.members()) {
    if (!member.value.has_value()) {
      target.RemoveEntry(member.name);
      continue;
    }
    Draft* child = target.FindEntry(member.name);
    if (child != nullptr && child->kind() == ValueKind::kRaw && member.value.is_object()) {
      // Opaque JSON is patched like any other value; untouched parts keep their bytes.
      if (auto tree = ParseJson(child->str(), {.refuse_duplicates = false}); tree.ok()) {
        *child = Draft(*tree);
      }
    }
    if (child != nullptr && child->is_object() && member.value.is_object()) {
      Merge(*child, member.value);
    } else if (child != nullptr) {
      *child = WithoutNulls(member.value);
    } else {
      AddMember(target, member.name, WithoutNulls(member.value));
    }
  }
}

// Absent if the two are equal.
Draft Difference(Value original, Value modified) {
  if (!original.is_object() || !modified.is_object()) {
    return Equal(original, modified) ? Draft() : Draft(modified);
  }
  Draft patch;
  for (const MemberView member : modified.members()) {
    const Value before = original.Entry(member.name);
    Draft child = before.exists() ? Difference(before, member.value) : Draft(member.value);
    if (child.exists()) AddMember(patch, member.name, std::move(child));
  }
  for (const MemberView member : original.members()) {
    if (!modified.Entry(member.name).exists()) AddMember(patch, member.name, nullptr);
  }
  return patch;
}

}  // namespace

Result<TreePtr> ApplyMergePatch(Value original, Value patch) {
  if (patch.is_array()) return WithoutNulls(patch).Freeze();
  if (!patch.is_object()) return InvalidArgument("Invalid JSON Patch");
  Draft target = original.is_object() ? Draft(original) : Draft::Object();
  Merge(target, patch);
  return target.Freeze();
}

TreePtr CreateMergePatch(Value original, Value modified) {
  const Draft patch = Difference(original, modified);
  return patch.exists() ? patch.Freeze() : Draft::Object().Freeze();
}

}  // namespace drakkar::api
