#include <algorithm>
#include <optional>

#include "api/json/reader.h"
#include "api/patch/strategic.h"
#include "api/patch/strategic_rules.h"
#include "api/tree/add_member.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace strategic {

const TypeSchema* MemberType(const TypeSchema* type, std::string_view name) {
  if (type == nullptr) return nullptr;
  if (type->kind == FieldKind::kMap) return type->element;
  if (type->kind != FieldKind::kStruct) return nullptr;
  const FieldSchema* field = type->structure->Find(name);
  return field == nullptr ? nullptr : &field->type;
}

std::string GoText(Value value) {
  switch (value.kind()) {
    case ValueKind::kAbsent:
    case ValueKind::kNull:
      return "<nil>";
    case ValueKind::kBool:
      return value.boolean() ? "true" : "false";
    case ValueKind::kInt:
      return std::to_string(value.integer());
    case ValueKind::kDouble:
      return std::to_string(value.number());
    case ValueKind::kString:
    case ValueKind::kRaw:
      return std::string(value.str());
    case ValueKind::kArray: {
      std::vector<std::string> parts;
      for (const Value element : value.elements()) parts.push_back(GoText(element));
      return "[" + Join(parts, " ") + "]";
    }
    case ValueKind::kObject: {
      std::vector<std::string> parts;
      for (const MemberView member : value.members()) {
        parts.push_back(StrCat(member.name, ":", GoText(member.value)));
      }
      std::ranges::sort(parts);
      return "map[" + Join(parts, " ") + "]";
    }
  }
  return "";
}

}  // namespace strategic

namespace {

using namespace strategic;  // NOLINT: the words of this file

// What comparing two elements costs, in steps of the work budget.
constexpr std::size_t kStepsPerComparison = 8;
// The texts of errors show at most this much of a value.
constexpr std::size_t kMaxShownBytes = 16 * 1024;

// Whether to compare an element with `count` others, or to give up because the budget is exceeded:
// then the caller returns any result.
bool MayCompare(std::size_t count) {
  if (WorkBudget::IsExceeded()) return false;
  WorkBudget::Charge(kStepsPerComparison * count);
  return true;
}

std::string Shown(Value value) {
  std::string text = GoText(value);
  if (text.size() > kMaxShownBytes) {
    text.resize(kMaxShownBytes);
    text += "...";
  }
  return text;
}

Error NoMergeKey(Value element, std::string_view merge_key) {
  return InvalidArgument(
      StrCat("map: ", Shown(element), " does not contain declared merge key: ", merge_key));
}

Error BadDirective(Value element) {
  return InvalidArgument(
      StrCat("unknown patch type: ", Shown(element.Entry(kPatch)), " in map: ", Shown(element)));
}

Error TooMuchWork() {
  return Error{ErrorCode::kResourceExhausted, "applying the patch takes too long"};
}

Error BadRetainKeys() {
  return InvalidArgument("invalid patch format of retainKeys");
}

bool IsDirective(std::string_view name) {
  return name == kPatch || name == kRetainKeys || name.starts_with(kSetElementOrder) ||
         name.starts_with(kDeleteFromPrimitiveList);
}

// A patch value where there is nothing to merge it with: without nulls and directives. Absent for
// an element that only requests a deletion.
Draft Plain(Value value) {
  if (value.is_object()) {
    if (value.Entry(kPatch).str() == "delete") return Draft();
    Draft draft = Draft::Object();
    for (const MemberView member : value.members()) {
      if (!member.value.has_value() || IsDirective(member.name)) continue;
      Draft child = Plain(member.value);
      if (child.exists()) AddMember(draft, member.name, std::move(child));
    }
    return draft;
  }
  if (value.is_array()) {
    Draft draft = Draft::Array();
    for (const Value element : value.elements()) {
      Draft child = Plain(element);
      if (child.exists()) draft.Append(std::move(child));
    }
    return draft;
  }
  return Draft(value);
}

// The identity of an element: the merge key of an object, or a scalar itself.
Value Identity(Value element, std::string_view merge_key) {
  return element.is_object() ? element.Entry(merge_key) : element;
}

// An element of the current list, with its identity read once.
struct Item {
  Draft draft;
  TreePtr identity;
};

Item MakeItem(Draft draft, std::string_view merge_key) {
  Value identity;
  TreePtr own;
  if (draft.is_object()) {
    Draft* key = draft.FindEntry(merge_key);
    own = key == nullptr ? Draft().Freeze() : key->Freeze();
  } else {
    own = draft.Freeze();
  }
  return {std::move(draft), std::move(own)};
}

using Items = std::vector<Item>;
using Identities = std::vector<Value>;

std::optional<std::size_t> IndexOf(const Identities& order, Value identity) {
  if (!MayCompare(order.size())) return std::nullopt;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (Equal(order[i], identity)) return i;
  }
  return std::nullopt;
}

// Sorts by `order`; elements not in it keep their position relative to their neighbours.
void SortByOrder(Items& items, const Identities& order) {
  std::vector<std::pair<std::optional<std::size_t>, Item>> ranked;
  for (Item& item : items) {
    const auto rank = IndexOf(order, item.identity->root());
    ranked.emplace_back(rank, std::move(item));
  }
  // Insertion sort, because the relation is only defined between elements that are both in the
  // order: it is not a strict weak ordering, which std::sort requires.
  for (std::size_t i = 1; i < ranked.size(); ++i) {
    for (std::size_t j = i; j > 0; --j) {
      if (!MayCompare(4)) break;
      const auto& left = ranked[j - 1].first;
      const auto& right = ranked[j].first;
      if (!left || !right || *left <= *right) break;
      std::swap(ranked[j - 1], ranked[j]);
    }
  }
  items.clear();
  for (auto& [rank, item] : ranked) items.push_back(std::move(item));
}

// Orders a merged list: elements of the patch as in `patch_order`, the others as on the server,
// interleaved as the server had them where it knew both.
Draft InOrder(Items merged, const Identities& patch_order, const Identities& server_order) {
  Items from_patch;
  Items server_only;
  for (Item& item : merged) {
    const bool in_patch = IndexOf(patch_order, item.identity->root()).has_value();
    (in_patch ? from_patch : server_only).push_back(std::move(item));
  }
  SortByOrder(from_patch, patch_order);
  SortByOrder(server_only, server_order);
  Draft list = Draft::Array();
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < server_only.size() || j < from_patch.size()) {
    bool server_first = j == from_patch.size();
    if (!server_first && i < server_only.size()) {
      const auto left = IndexOf(server_order, server_only[i].identity->root());
      const auto right = IndexOf(server_order, from_patch[j].identity->root());
      server_first = left && right && *left < *right;
    }
    list.Append(std::move(server_first ? server_only[i++].draft : from_patch[j++].draft));
  }
  return list;
}

Result<void> MergeObject(Draft& original, Value patch, const TypeSchema* type);

// Merges the elements of a patch list into `original` and orders the result.
Result<Draft> MergeList(Draft& original, Value patch, const TypeSchema* type) {
  const std::string_view merge_key = MergeKey(type);
  const bool objects = (patch.size() > 0 && patch.at(0).is_object()) ||
                       (original.size() > 0 && original.at(0).is_object());
  if (objects && merge_key.empty()) {
    return InvalidArgument("cannot merge lists without merge key");
  }
  Items items;
  for (Draft& element : original.MutableElements()) {
    items.push_back(MakeItem(std::move(element), merge_key));
  }
  std::vector<Value> merging;  // elements of the patch without directives for the list
  bool replace = false;
  for (const Value element : patch.elements()) {
    if (!objects) {
      merging.push_back(element);
      continue;
    }
    const Value directive = element.Entry(kPatch);
    if (!directive.exists()) {
      merging.push_back(element);
    } else if (directive.str() == "delete") {
      const Value key = element.Entry(merge_key);
      if (!key.exists()) return NoMergeKey(element, merge_key);
      if (!MayCompare(items.size())) return TooMuchWork();
      std::erase_if(items, [&](const Item& item) { return Equal(item.identity->root(), key); });
    } else if (directive.str() == "replace") {
      replace = true;
    } else if (directive.str() == "merge") {
      return InvalidArgument("merging lists cannot yet be specified in the patch");
    } else {
      return BadDirective(element);
    }
  }
  if (replace) {
    Draft list = Draft::Array();
    for (const Value element : merging) list.Append(Plain(element));
    return list;
  }
  // The identities on the server; `server_items` keeps the trees alive.
  std::vector<TreePtr> server_items;
  Identities server_order;
  for (const Item& item : items) {
    server_items.push_back(item.identity);
    server_order.push_back(item.identity->root());
  }
  Identities patch_order;
  for (const Value element : merging) {
    const Value identity = Identity(element, merge_key);
    if (objects && !identity.exists()) return NoMergeKey(element, merge_key);
    patch_order.push_back(identity);
    Item* found = nullptr;
    if (!MayCompare(items.size())) return TooMuchWork();
    for (Item& item : items) {
      if (found == nullptr && Equal(item.identity->root(), identity)) found = &item;
    }
    if (found == nullptr) {
      items.push_back(MakeItem(Plain(element), merge_key));
    } else if (objects) {
      RETURN_IF_ERROR(MergeObject(found->draft, element, ElementType(type)));
    }
  }
  return InOrder(std::move(items), patch_order, server_order);
}

// $retainKeys: removes everything the list does not name.
Result<void> RetainKeys(Draft& original, Value patch) {
  const Value keys = patch.Entry(kRetainKeys);
  if (!keys.exists()) return Ok();
  if (!keys.is_array()) return BadRetainKeys();
  const auto is_kept = [&](std::string_view name) {
    if (!MayCompare(keys.size())) return false;
    for (const Value key : keys.elements()) {
      if (key.str() == name) return true;
    }
    return false;
  };
  for (const MemberView member : patch.members()) {
    if (!member.value.has_value() || IsDirective(member.name)) continue;
    if (!is_kept(member.name)) return BadRetainKeys();
  }
  std::erase_if(original.MutableMembers(),
                [&](const auto& member) { return !is_kept(member.first->view()); });
  return Ok();
}

// The patch's own list must be in the order that its directive states.
Result<void> CheckOrder(Value list, Value order, std::string_view merge_key) {
  if (!list.is_array()) return Ok();
  std::size_t at = 0;
  for (const Value element : list.elements()) {
    if (element.is_object() && element.Entry(kPatch).exists()) continue;
    const Value identity = Identity(element, merge_key);
    while (at < order.size() && !Equal(Identity(order.at(at), merge_key), identity)) ++at;
    if (at == order.size()) {
      return InvalidArgument(StrCat("The order in patch list:\n", Shown(list), "\n doesn't match ",
                                    kSetElementOrder.substr(0, kSetElementOrder.size() - 1),
                                    " list:\n", Shown(order), "\n"));
    }
    ++at;
  }
  return Ok();
}

// $setElementOrder/name, together with the list it refers to.
Result<void> SetElementOrder(Draft& original, Value patch, std::string_view name, Value order,
                             const TypeSchema* type) {
  if (!order.is_array())
    return InvalidArgument(StrCat("expected a list in ", kSetElementOrder, name));
  const std::string_view merge_key = MergeKey(type);
  const Value list = patch.Entry(name);
  Draft* existing = original.FindEntry(name);
  if (list.exists() && !list.is_array()) return Ok();  // null or another type: merged like others
  if (existing != nullptr && !existing->is_array()) return Ok();
  RETURN_IF_ERROR(CheckOrder(list, order, merge_key));
  if (existing == nullptr && !list.exists()) return Ok();
  std::vector<TreePtr> kept;
  Identities server_order;
  Draft merged;
  if (existing == nullptr) {
    merged = Plain(list);
  } else {
    for (Draft& element : existing->MutableElements()) {
      kept.push_back(MakeItem(element, merge_key).identity);
      server_order.push_back(kept.back()->root());
    }
    if (!list.exists()) {
      merged = std::move(*existing);
    } else if (MergesList(type)) {
      ASSIGN_OR_RETURN(merged, MergeList(*existing, list, type));
    } else {
      merged = Draft(list);
    }
  }
  Items items;
  for (Draft& element : merged.MutableElements()) {
    items.push_back(MakeItem(std::move(element), merge_key));
  }
  Identities wanted;
  for (const Value element : order.elements()) wanted.push_back(Identity(element, merge_key));
  original.Entry(name) = InOrder(std::move(items), wanted, server_order);
  return Ok();
}

void DeleteFromList(Draft& original, std::string_view name, Value deleted) {
  Draft* list = original.FindEntry(name);
  if (list == nullptr || !list->is_array()) return;
  std::erase_if(list->MutableElements(), [&](const Draft& element) {
    if (!MayCompare(deleted.size())) return false;
    const TreePtr value = element.Freeze();
    for (const Value scalar : deleted.elements()) {
      if (Equal(scalar, value->root())) return true;
    }
    return false;
  });
}

Result<void> MergeMember(Draft& original, std::string_view name, Value value,
                         const TypeSchema* type) {
  if (!value.has_value()) {
    original.RemoveEntry(name);
    return Ok();
  }
  Draft* existing = original.FindEntry(name);
  if (existing != nullptr && existing->kind() == ValueKind::kRaw && value.is_object()) {
    if (auto tree = ParseJson(existing->str(), {.refuse_duplicates = false}); tree.ok()) {
      *existing = Draft(*tree);
    }
  }
  const bool replaced = type != nullptr && type->patch_replace;
  if (existing != nullptr && existing->is_object() && value.is_object() && !replaced) {
    return MergeObject(*existing, value, type);
  }
  if (existing != nullptr && existing->is_array() && value.is_array()) {
    if (!MergesList(type)) {
      *existing = Draft(value);
      return Ok();
    }
    if (existing->size() == 0 && value.empty()) return Ok();
    ASSIGN_OR_RETURN(Draft merged, MergeList(*existing, value, type));
    original.Entry(name) = std::move(merged);
    return Ok();
  }
  if (existing != nullptr) {
    *existing = Plain(value);
  } else {
    AddMember(original, name, Plain(value));
  }
  return Ok();
}

Result<void> MergeObject(Draft& original, Value patch, const TypeSchema* type) {
  if (const Value directive = patch.Entry(kPatch); directive.exists()) {
    if (directive.str() == "replace") {
      Draft replaced = Draft::Object();
      for (const MemberView member : patch.members()) {
        if (member.name != kPatch) AddMember(replaced, member.name, Draft(member.value));
      }
      original = std::move(replaced);
      return Ok();
    }
    if (directive.str() == "delete") {
      original = Draft::Object();
      return Ok();
    }
    return BadDirective(patch);
  }
  RETURN_IF_ERROR(RetainKeys(original, patch));
  std::vector<std::string_view> ordered;  // finished lists
  for (const MemberView member : patch.members()) {
    if (!member.name.starts_with(kSetElementOrder)) continue;
    const std::string_view name = member.name.substr(kSetElementOrder.size());
    RETURN_IF_ERROR(SetElementOrder(original, patch, name, member.value, MemberType(type, name)));
    if (patch.Entry(name).is_array()) ordered.push_back(name);
  }
  for (const MemberView member : patch.members()) {
    if (member.name == kRetainKeys || member.name.starts_with(kSetElementOrder)) continue;
    if (member.name.starts_with(kDeleteFromPrimitiveList)) {
      DeleteFromList(original, member.name.substr(kDeleteFromPrimitiveList.size()), member.value);
      continue;
    }
    if (!MayCompare(ordered.size())) return TooMuchWork();
    const bool done = std::ranges::find(ordered, member.name) != ordered.end();
    const Draft* existing = done ? original.FindEntry(member.name) : nullptr;
    if (done && existing != nullptr && existing->is_array()) continue;
    RETURN_IF_ERROR(
        MergeMember(original, member.name, member.value, MemberType(type, member.name)));
  }
  return Ok();
}

std::string_view JsonTypeName(Value value) {
  if (value.is_array()) return "array";
  if (value.is_string()) return "string";
  if (value.kind() == ValueKind::kBool) return "bool";
  return "number";
}

}  // namespace

Result<TreePtr> ApplyStrategicPatch(Value original, Value patch, const StructSchema& schema) {
  if (!patch.is_object()) {
    // Kubernetes' text, which clients match on.
    return InvalidArgument(StrCat("json: cannot unmarshal ", JsonTypeName(patch),
                                  " into Go value of type map[string]interface {}"));
  }
  TypeSchema type;
  type.kind = FieldKind::kStruct;
  type.structure = &schema;
  Draft target = original.is_object() ? Draft(original) : Draft::Object();
  RETURN_IF_ERROR(MergeObject(target, patch, &type));
  return target.Freeze();
}

}  // namespace drakkar::api
