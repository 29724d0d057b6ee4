#include <algorithm>

#include "api/patch/strategic.h"
#include "api/patch/strategic_rules.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

using namespace strategic;  // NOLINT: the words of this file

bool SameType(Value a, Value b) {
  return a.kind() == b.kind();
}

Result<Draft> DiffObjects(Value original, Value modified, const TypeSchema* type, bool retain_keys);

// The element with that merge key; absent if there is none.
Value FindElement(Value list, std::string_view merge_key, Value key) {
  for (const Value element : list.elements()) {
    if (Equal(element.Entry(merge_key), key)) return element;
  }
  return Value();
}

bool Contains(Value list, Value scalar) {
  for (const Value element : list.elements()) {
    if (Equal(element, scalar)) return true;
  }
  return false;
}

bool HasSameOrder(Value original, Value modified, std::string_view merge_key) {
  if (original.size() != modified.size()) return false;
  for (std::size_t i = 0; i < original.size(); ++i) {
    if (!Equal(original.at(i).Entry(merge_key), modified.at(i).Entry(merge_key))) return false;
  }
  return true;
}

Result<void> DiffListOfObjects(Value original, Value modified, std::string_view name,
                               const TypeSchema* type, Draft& patch) {
  const std::string_view merge_key = MergeKey(type);
  if (merge_key.empty()) return InvalidArgument("cannot merge lists without merge key");
  for (const Value list : {original, modified}) {
    for (const Value element : list.elements()) {
      if (element.Entry(merge_key).exists()) continue;
      return InvalidArgument(
          StrCat("map: ", GoText(element), " does not contain declared merge key: ", merge_key));
    }
  }
  Draft changes = Draft::Array();
  for (const Value element : modified.elements()) {
    const Value before = FindElement(original, merge_key, element.Entry(merge_key));
    if (!before.exists()) {
      changes.Append(Draft(element));
      continue;
    }
    ASSIGN_OR_RETURN(Draft change,
                     DiffObjects(before, element, ElementType(type), RetainsKeys(type)));
    if (change.size() == 0) continue;
    change.Entry(merge_key) = Draft(element.Entry(merge_key));
    changes.Append(std::move(change));
  }
  std::vector<Value> deleted;
  for (const Value element : original.elements()) {
    const Value key = element.Entry(merge_key);
    if (!FindElement(modified, merge_key, key).exists()) deleted.push_back(key);
  }
  std::ranges::sort(deleted, {}, [](Value key) { return GoText(key); });
  for (const Value key : deleted) {
    Draft directive = Draft::Map({{kPatch, "delete"}});
    directive.Entry(merge_key) = Draft(key);
    changes.Append(std::move(directive));
  }
  if (changes.size() != 0) patch.Entry(name) = std::move(changes);
  if (!modified.empty() && (patch.HasEntry(name) || !HasSameOrder(original, modified, merge_key))) {
    Draft order = Draft::Array();
    for (const Value element : modified.elements()) {
      order.Append(Draft::Object()).Entry(merge_key) = Draft(element.Entry(merge_key));
    }
    patch.Entry(StrCat(kSetElementOrder, name)) = std::move(order);
  }
  return Ok();
}

void DiffListOfScalars(Value original, Value modified, std::string_view name, Draft& patch) {
  Draft added = Draft::Array();
  for (const Value element : modified.elements()) {
    if (!Contains(original, element)) added.Append(Draft(element));
  }
  Draft deleted = Draft::Array();
  for (const Value element : original.elements()) {
    if (!Contains(modified, element)) deleted.Append(Draft(element));
  }
  if (added.size() != 0) patch.Entry(name) = std::move(added);
  if (deleted.size() != 0) {
    patch.Entry(StrCat(kDeleteFromPrimitiveList, name)) = std::move(deleted);
  }
  if (!modified.empty() && !Equal(original, modified)) {
    patch.Entry(StrCat(kSetElementOrder, name)) = Draft(modified);
  }
}

Result<void> DiffLists(Value original, Value modified, std::string_view name,
                       const TypeSchema* type, Draft& patch) {
  if (!MergesList(type)) {
    if (!Equal(original, modified)) patch.Entry(name) = Draft(modified);
    return Ok();
  }
  if (original.empty()) {
    if (!modified.empty()) patch.Entry(name) = Draft(modified);
    return Ok();
  }
  if (original.at(0).is_object()) {
    return DiffListOfObjects(original, modified, name, type, patch);
  }
  DiffListOfScalars(original, modified, name, patch);
  return Ok();
}

Result<Draft> DiffObjects(Value original, Value modified, const TypeSchema* type,
                          bool retain_keys) {
  Draft patch = Draft::Object();
  std::vector<std::string_view> retained;
  for (const MemberView member : modified.members()) {
    if (member.value.has_value()) retained.push_back(member.name);
    const Value before = original.Entry(member.name);
    if (!before.exists() || !SameType(before, member.value)) {
      if (!before.exists() || !Equal(before, member.value))
        patch.Entry(member.name) = Draft(member.value);
      continue;
    }
    const TypeSchema* member_type = MemberType(type, member.name);
    if (member.value.is_object()) {
      if (member_type != nullptr && member_type->patch_replace) {
        if (!Equal(before, member.value)) patch.Entry(member.name) = Draft(member.value);
        continue;
      }
      ASSIGN_OR_RETURN(Draft change,
                       DiffObjects(before, member.value, member_type, RetainsKeys(member_type)));
      if (change.size() != 0) patch.Entry(member.name) = std::move(change);
    } else if (member.value.is_array()) {
      RETURN_IF_ERROR(DiffLists(before, member.value, member.name, member_type, patch));
    } else if (!Equal(before, member.value)) {
      patch.Entry(member.name) = Draft(member.value);
    }
  }
  for (const MemberView member : original.members()) {
    if (!modified.Entry(member.name).exists()) patch.Entry(member.name) = nullptr;
  }
  if (retain_keys && !retained.empty() && patch.size() != 0) {
    std::ranges::sort(retained);
    Draft keys = Draft::Array();
    for (const std::string_view name : retained) keys.Append(name);
    patch.Entry(kRetainKeys) = std::move(keys);
  }
  return patch;
}

}  // namespace

Result<TreePtr> CreateStrategicPatch(Value original, Value modified, const StructSchema& schema) {
  TypeSchema type;
  type.kind = FieldKind::kStruct;
  type.structure = &schema;
  ASSIGN_OR_RETURN(const Draft patch, DiffObjects(original, modified, &type, false));
  return patch.Freeze();
}

}  // namespace drakkar::api
