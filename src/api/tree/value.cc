#include "api/tree/value.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/exec/work_budget.h"

namespace drakkar::api {
namespace {

constexpr Node kAbsentNode{};

// Up to this size, comparing all pairs of members is cheaper than sorting both sides.
constexpr std::size_t kMaxUnsortedMembers = 32;
// A lookup in an object with at most this many members is not charged to the work budget.
constexpr std::size_t kMaxFreeMembers = 32;
// The same for comparing texts.
constexpr std::size_t kMaxFreeBytes = 256;
constexpr std::size_t kBytesPerStep = 16;

// Whether to look through `count` members, or to give up because the budget is exceeded.
bool MayScan(std::size_t count) {
  if (count <= kMaxFreeMembers) return true;
  if (WorkBudget::IsExceeded()) return false;
  WorkBudget::Charge(count);
  return true;
}

bool SameKey(const Key* a, const Key* b) {
  if (a == b) return true;
  // Two schema names are equal only if they are identical.
  if (a->id != 0 || b->id != 0) return false;
  return a->view() == b->view();
}

bool EqualNodes(const Node& a, const Node& b);

bool EqualSorted(const Node& a, const Node& b) {
  auto sorted = [](const Node& node) {
    std::vector<const Member*> members(node.size);
    for (std::uint32_t i = 0; i < node.size; ++i) members[i] = &node.members[i];
    std::sort(members.begin(), members.end(),
              [](const Member* x, const Member* y) { return x->key->view() < y->key->view(); });
    return members;
  };
  const auto left = sorted(a);
  const auto right = sorted(b);
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!SameKey(left[i]->key, right[i]->key)) return false;
    if (!EqualNodes(left[i]->value, right[i]->value)) return false;
  }
  return true;
}

bool EqualObjects(const Node& a, const Node& b) {
  if (a.size != b.size) return false;
  if (a.members == b.members) return true;  // drafts borrow what they do not change
  if (!MayScan(a.size)) return false;
  std::uint32_t i = 0;
  // Both sides usually have the same order.
  while (i < a.size && SameKey(a.members[i].key, b.members[i].key)) {
    if (!EqualNodes(a.members[i].value, b.members[i].value)) return false;
    ++i;
  }
  if (i == a.size) return true;
  if (a.size > kMaxUnsortedMembers) return EqualSorted(a, b);
  for (; i < a.size; ++i) {
    const Member* other = nullptr;
    for (std::uint32_t j = 0; j < b.size && other == nullptr; ++j) {
      if (SameKey(a.members[i].key, b.members[j].key)) other = &b.members[j];
    }
    if (other == nullptr || !EqualNodes(a.members[i].value, other->value)) return false;
  }
  return true;
}

// An integer and a double are equal only if they are exactly the same number.
bool EqualMixed(std::int64_t integer, double number) {
  if (!(number >= -0x1p63 && number < 0x1p63)) return false;
  return std::trunc(number) == number && static_cast<std::int64_t>(number) == integer;
}

bool EqualNodes(const Node& a, const Node& b) {
  if (a.kind != b.kind) {
    if (a.kind == ValueKind::kInt && b.kind == ValueKind::kDouble) {
      return EqualMixed(a.integer, b.number);
    }
    if (a.kind == ValueKind::kDouble && b.kind == ValueKind::kInt) {
      return EqualMixed(b.integer, a.number);
    }
    return false;
  }
  switch (a.kind) {
    case ValueKind::kAbsent:
    case ValueKind::kNull:
      return true;
    case ValueKind::kBool:
      return a.boolean == b.boolean;
    case ValueKind::kInt:
      return a.integer == b.integer;
    case ValueKind::kDouble:
      return a.number == b.number;
    case ValueKind::kString:
    case ValueKind::kRaw:
      if (a.size != b.size) return false;
      if (a.size > kMaxFreeBytes) WorkBudget::Charge(a.size / kBytesPerStep);
      return std::string_view(a.text, a.size) == std::string_view(b.text, b.size);
    case ValueKind::kArray:
      if (a.size != b.size) return false;
      if (a.elements == b.elements) return true;
      if (!MayScan(a.size)) return false;
      for (std::uint32_t i = 0; i < a.size; ++i) {
        if (!EqualNodes(a.elements[i], b.elements[i])) return false;
      }
      return true;
    case ValueKind::kObject:
      return EqualObjects(a, b);
  }
  return false;
}

// Where this thread found a member of a large object last. Lookups mostly follow the order of the
// members, so the next one is tried first. Only a hint: the member's name is compared.
struct LastFound {
  const Member* members = nullptr;
  std::uint32_t next = 0;
};
constinit thread_local LastFound last_found;

Value FindEmptyName(const Node& object) {
  for (std::uint32_t i = 0; i < object.size; ++i) {
    if (object.members[i].key->size == 0) return Value(&object.members[i].value);
  }
  return Value();
}

}  // namespace

Value::Value() : node_(&kAbsentNode) {}

std::string_view Value::str(std::string_view fallback) const {
  if (kind() != ValueKind::kString && kind() != ValueKind::kRaw) return fallback;
  return {node_->text, node_->size};
}

std::int64_t Value::integer(std::int64_t fallback) const {
  return kind() == ValueKind::kInt ? node_->integer : fallback;
}

double Value::number(double fallback) const {
  if (kind() == ValueKind::kDouble) return node_->number;
  return kind() == ValueKind::kInt ? static_cast<double>(node_->integer) : fallback;
}

bool Value::boolean(bool fallback) const {
  return kind() == ValueKind::kBool ? node_->boolean : fallback;
}

std::optional<std::int64_t> Value::optional_integer() const {
  if (kind() != ValueKind::kInt) return std::nullopt;
  return node_->integer;
}

std::optional<bool> Value::optional_boolean() const {
  if (kind() != ValueKind::kBool) return std::nullopt;
  return node_->boolean;
}

std::size_t Value::size() const {
  return is_object() || is_array() ? node_->size : 0;
}

Value Value::Entry(const Key& key) const {
  if (key.id == 0) return Entry(key.view());
  if (!is_object()) return Value();
  // Always right, because code relies on the fields it has set. A struct has few of them.
  if (node_->size > kMaxFreeMembers) WorkBudget::Charge(node_->size);
  const Member* member = node_->members;
  for (const Member* end = member + node_->size; member != end; ++member) {
    if (member->key == &key) return Value(&member->value);
  }
  return Value();
}

Value Value::Entry(std::string_view name) const {
  if (!is_object()) return Value();
  const bool is_large = node_->size > kMaxFreeMembers;
  if (is_large && last_found.members == node_->members && last_found.next < node_->size) {
    const Member& next = node_->members[last_found.next];
    if (next.key->view() == name) {
      ++last_found.next;
      return Value(&next.value);
    }
  }
  if (is_large && !MayScan(node_->size)) return Value();
  if (name.empty()) return FindEmptyName(*node_);
  const Member* member = node_->members;
  for (const Member* end = member + node_->size; member != end; ++member) {
    // Comparing the last byte first distinguishes most names of the same length without a call.
    const Key& key = *member->key;
    if (key.size == name.size() && key.text[key.size - 1] == name.back() &&
        std::memcmp(key.text, name.data(), key.size) == 0) {
      if (is_large) {
        last_found = {node_->members, static_cast<std::uint32_t>(member - node_->members) + 1};
      }
      return Value(&member->value);
    }
  }
  return Value();
}

Value Value::at(std::size_t index) const {
  if (!is_array() || index >= node_->size) return Value();
  return Value(&node_->elements[index]);
}

ArrayRange Value::elements() const {
  return is_array() ? ArrayRange(node_->elements, node_->size) : ArrayRange(nullptr, 0);
}

ObjectRange Value::members() const {
  return is_object() ? ObjectRange(node_->members, node_->size) : ObjectRange(nullptr, 0);
}

bool Equal(Value a, Value b) {
  return EqualNodes(*a.node(), *b.node());
}

}  // namespace drakkar::api
