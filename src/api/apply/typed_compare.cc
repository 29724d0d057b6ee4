#include <algorithm>
#include <bit>
#include <unordered_map>
#include <vector>

#include "api/apply/typed_internal.h"
#include "api/apply/typed_value.h"
#include "api/json/writer.h"
#include "api/meta/skipped_operations.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace typed {

namespace {

// Larger name buffers are freed.
constexpr std::size_t kMaxSpareBytes = 4096;

void AppendValue(std::string& out, Value value) {
  const std::string_view text = value.str();
  if (value.is_string() && std::none_of(text.begin(), text.end(), [](char c) {
        return static_cast<signed char>(c) < 0x20 || c == '"' || c == '\\';
      })) {
    out += '"';
    out += text;
    out += '"';
  } else {
    AppendJson(out, value, {.escape_html = false});
  }
}

// Returns false if the element has no name.
bool AppendName(std::string& out, const TypeSchema& list, Value element, std::string* problem) {
  if (list.merge == MergeKind::kSet) {
    AppendValue(out, element);
    return true;
  }
  if (!element.is_object()) {
    if (problem != nullptr) {
      *problem = element.kind() == ValueKind::kNull
                     ? "associative list with keys may not have a null element"
                     : "associative list with keys may not have non-map elements";
    }
    return false;
  }
  std::string_view keys[8];
  const std::size_t count = std::min<std::size_t>(list.list_keys.size(), 8);
  std::copy_n(list.list_keys.begin(), count, keys);
  if (count > 1) std::sort(keys, keys + count);
  const std::size_t before = out.size();
  out += '{';
  for (std::size_t i = 0; i < count; ++i) {
    const FieldSchema* field =
        list.element->structure == nullptr ? nullptr : list.element->structure->Find(keys[i]);
    const Value value = field == nullptr ? element.Entry(keys[i]) : element.Entry(*field->key);
    const std::size_t start = out.size();
    if (start > before + 1) out += ',';
    out += '"';
    out += keys[i];
    out += "\":";
    if (value.has_value()) {
      AppendValue(out, value);
    } else if (keys[i] == "protocol") {
      out += "\"TCP\"";  // the only key in the API whose default is not its zero value
    } else if (field != nullptr && !field->omit_empty && !field->pointer) {
      out += field->type.kind == FieldKind::kString ? "\"\"" : "0";
    } else {
      out.resize(start);
    }
  }
  if (out.size() == before + 1) {
    if (problem != nullptr) {
      *problem =
          StrCat("associative list with keys has an element that omits all key fields ",
                 Quote(list.list_keys[0]), " (and doesn't have default values for any key fields)");
    }
    return false;
  }
  out += '}';
  return true;
}

FieldOrder MakeOrder(const StructSchema& schema) {
  FieldOrder order;
  const std::size_t count = schema.fields.size();
  for (std::size_t i = 0; i < count; ++i) order.sorted[i] = &schema.fields[i];
  std::sort(order.sorted, order.sorted + count, [](const FieldSchema* a, const FieldSchema* b) {
    return a->key->view() < b->key->view();
  });
  for (std::size_t i = 0; i < count; ++i) {
    order.rank[order.sorted[i] - schema.fields.data()] = static_cast<std::uint8_t>(i);
    if (!order.sorted[i]->omit_empty) order.always |= std::uint64_t{1} << i;
  }
  return order;
}

}  // namespace

std::optional<Element> ElementOf(const TypeSchema& list, Value element, std::string* problem) {
  Element out;
  out.kind = ElementKind(list);
  if (!AppendName(out.text, list, element, problem)) return std::nullopt;
  return out;
}

std::string_view ElementName(const TypeSchema& list, Value element, Arena& arena) {
  thread_local std::string name;  // grows at most once
  name.clear();
  const bool named = AppendName(name, list, element, nullptr);
  std::string_view kept;
  if (named) kept = name.empty() ? std::string_view("") : arena.CopyText(name);
  if (name.capacity() > kMaxSpareBytes) std::string().swap(name);
  return kept;
}

const FieldOrder* OrderOf(const StructSchema& schema, FieldOrder& own) {
  if (schema.fields.size() > FieldOrder::kMaxFields) return nullptr;
  if (schema.index == nullptr) {
    own = MakeOrder(schema);
    return &own;
  }
  thread_local std::unordered_map<const StructSchema*, FieldOrder> known;
  const auto found = known.find(&schema);
  if (found != known.end()) return &found->second;
  return &known.emplace(&schema, MakeOrder(schema)).first->second;
}

TypeSchema RootType(const StructSchema& schema) {
  TypeSchema type;
  type.kind = FieldKind::kStruct;
  type.structure = &schema;
  type.merge = MergeKind::kGranular;
  return type;
}

namespace {
const Node kEmptyText = TextNode("");
const Node kZero = IntNode(0);
const Node kFalse = BoolNode(false);
const Node kNull = NullNode();
const Node kZeroQuantity = TextNode("0");
const Node kZeroDuration = TextNode("0s");
const Node kEmptyObject = ObjectNode(nullptr, 0);

// A struct for which Go writes something even if all its fields are zero.
bool AlwaysHasFields(const StructSchema& schema) {
  return std::any_of(schema.fields.begin(), schema.fields.end(),
                     [](const FieldSchema& field) { return !field.omit_empty; });
}
}  // namespace

Value ZeroOf(const FieldSchema& field) {
  if (field.pointer) return Value(&kNull);
  switch (field.type.kind) {
    case FieldKind::kString:
    case FieldKind::kBytes:
      return Value(&kEmptyText);
    case FieldKind::kBool:
      return Value(&kFalse);
    case FieldKind::kInt32:
    case FieldKind::kInt64:
    case FieldKind::kDouble:
    case FieldKind::kIntOrString:
      return Value(&kZero);
    case FieldKind::kQuantity:
      return Value(&kZeroQuantity);
    case FieldKind::kDuration:
      return Value(&kZeroDuration);
    case FieldKind::kStruct:
      return Value(&kEmptyObject);
    default:
      return Value(&kNull);
  }
}

bool IsEmptyStruct(Value value, const StructSchema& schema) {
  if (!value.is_object()) return true;
  return value.empty() && !AlwaysHasFields(schema);
}

Value EmptyObject() {
  return Value(&kEmptyObject);
}

}  // namespace typed

namespace {

class Comparer {
 public:
  explicit Comparer(Arena& arena) : arena_(arena) {}

  // Fills in the marks and children of `node`; true if there are any.
  bool Compare(Value before, Value after, const TypeSchema& type, FieldNode& node) {
    if (IsSame(before, after)) return false;
    if (typed::IsGranularStruct(type)) {
      if (typed::IsEmptyStruct(before, *type.structure) &&
          typed::IsEmptyStruct(after, *type.structure)) {
        return Leaf(before, after, type, node);
      }
      CompareStruct(before, after, *type.structure, node);
    } else if (typed::IsGranularMap(type)) {
      if (before.empty() && after.empty()) return Leaf(before, after, type, node);
      CompareMap(before, after, *type.element, node);
    } else if (typed::IsMergedList(type)) {
      if (before.empty() && after.empty()) return Leaf(before, after, type, node);
      if (before.exists() && after.exists() && Equal(before, after)) return false;
      CompareList(before, after, type, node);
    } else {
      return Leaf(before, after, type, node);
    }
    if (!before.exists()) {
      node.marks |= kOwned;
    } else if (!after.exists()) {
      node.marks |= kRemoved;
    }
    return node.marks != 0 || node.count != 0;
  }

 private:
  // Both are borrowed from the same tree: nothing below can differ.
  static bool IsSame(Value a, Value b) {
    if (a.kind() != b.kind() || a.node()->size != b.node()->size) return false;
    switch (a.kind()) {
      case ValueKind::kObject:
        return a.node()->members == b.node()->members;
      case ValueKind::kArray:
        return a.node()->elements == b.node()->elements;
      case ValueKind::kString:
      case ValueKind::kRaw:
        return a.node()->text == b.node()->text;
      default:
        return false;
    }
  }

  static bool Leaf(Value before, Value after, const TypeSchema& type, FieldNode& node) {
    if (!before.exists()) {
      if (after.exists()) node.marks |= kOwned;
    } else if (!after.exists()) {
      node.marks |= kRemoved;
    } else if (type.kind == FieldKind::kSkipNodeOperations) {
      // true and ["*"] mean the same.
      if (!SameSkippedOperations(before, after)) node.marks |= kOwned;
    } else if (!Equal(before, after)) {
      node.marks |= kOwned;
    }
    return node.marks != 0;
  }

  void Add(Value before, Value after, const TypeSchema& type, char kind, std::string_view text,
           std::uint32_t id = 0) {
    FieldNode child;
    child.kind = kind;
    child.id = static_cast<std::uint16_t>(id);
    child.text = text;
    if (Compare(before, after, type, child)) scratch_.push_back(child);
  }

  void AddField(Value before, Value after, const FieldSchema& field, bool from, bool to) {
    if (!field.omit_empty) {
      if (!before.exists() && from) before = typed::ZeroOf(field);
      if (!after.exists() && to) after = typed::ZeroOf(field);
    }
    if (!before.exists() && !after.exists()) return;
    Add(before, after, field.type, 'f', field.key->view(), field.key->id);
  }

  void CompareStruct(Value before, Value after, const StructSchema& schema, FieldNode& node) {
    const std::size_t first = scratch_.size();
    const bool from = before.is_object(), to = after.is_object();
    typed::FieldOrder own;
    if (const typed::FieldOrder* order = typed::OrderOf(schema, own)) {
      const typed::Ranked left(before, schema, *order), right(after, schema, *order);
      std::uint64_t rest = left.there() | right.there() | order->always;
      for (; rest != 0; rest &= rest - 1) {
        const auto rank = static_cast<std::size_t>(std::countr_zero(rest));
        AddField(left.At(rank), right.At(rank), *order->sorted[rank], from, to);
      }
    } else {
      for (const FieldSchema& field : schema.fields) {
        AddField(before.Entry(*field.key), after.Entry(*field.key), field, from, to);
      }
    }
    SetChildren(node, scratch_, first, arena_);
  }

  void CompareMap(Value before, Value after, const TypeSchema& element, FieldNode& node) {
    const std::size_t first = scratch_.size();
    for (const auto& [key, name, value] : after.members()) {
      Add(before.Entry(name), value, element, 'f', name);
    }
    for (const auto& [key, name, value] : before.members()) {
      if (!after.Entry(name).exists()) Add(value, Value(), element, 'f', name);
    }
    SetChildren(node, scratch_, first, arena_);
  }

  struct Item {
    std::string_view name;
    Value value;
  };

  std::vector<Item> Index(Value list, const TypeSchema& type) {
    std::vector<Item> items;
    items.reserve(list.size());
    for (Value value : list.elements()) {
      const std::string_view name = typed::ElementName(type, value, arena_);
      if (name.data() != nullptr) items.push_back({name, value});
    }
    auto before = [](const Item& a, const Item& b) { return a.name < b.name; };
    if (!std::is_sorted(items.begin(), items.end(), before)) {
      std::stable_sort(items.begin(), items.end(), before);
    }
    return items;
  }

  void CompareList(Value before, Value after, const TypeSchema& type, FieldNode& node) {
    const std::size_t first = scratch_.size();
    const char kind = typed::ElementKind(type);
    const std::vector<Item> left = Index(before, type), right = Index(after, type);
    std::size_t i = 0, j = 0;
    auto run_end = [](const std::vector<Item>& items, std::size_t from) {
      std::size_t end = from;
      while (end < items.size() && items[end].name == items[from].name) ++end;
      return end;
    };
    while (i < left.size() || j < right.size()) {
      int order = 0;
      if (i == left.size()) {
        order = 1;
      } else if (j == right.size()) {
        order = -1;
      } else {
        order = left[i].name.compare(right[j].name);
      }
      const std::size_t left_end = order <= 0 ? run_end(left, i) : i;
      const std::size_t right_end = order >= 0 ? run_end(right, j) : j;
      const std::string_view name = order <= 0 ? left[i].name : right[j].name;
      if (left_end - i <= 1 && right_end - j <= 1) {
        Add(left_end > i ? left[i].value : Value(), right_end > j ? right[j].value : Value(),
            *type.element, kind, name);
      } else {
        // Duplicate elements have no paths of their own: they change together.
        bool same = left_end - i == right_end - j;
        for (std::size_t k = 0; same && k < left_end - i; ++k) {
          same = Equal(left[i + k].value, right[j + k].value);
        }
        if (!same) {
          FieldNode child;
          child.kind = kind;
          child.text = name;
          child.marks = right_end == j ? kRemoved : kOwned;
          scratch_.push_back(child);
        }
      }
      i = left_end;
      j = right_end;
    }
    SetChildren(node, scratch_, first, arena_);
  }

  Arena& arena_;
  FieldStack scratch_;
};

class SetMaker {
 public:
  explicit SetMaker(Arena& arena) : arena_(arena) {}

  void Make(Value value, const TypeSchema& type, FieldNode& node) {
    const std::size_t first = scratch_.size();
    if (typed::IsGranularStruct(type)) {
      for (const auto& [key, name, member] : value.members()) {
        const FieldSchema* field = type.structure->Find(name);
        if (field != nullptr) Add(member, field->type, 'f', name, false);
      }
    } else if (typed::IsGranularMap(type)) {
      for (const auto& [key, name, member] : value.members()) {
        Add(member, *type.element, 'f', name, true);
      }
    } else if (typed::IsMergedList(type)) {
      // By name, the place in scratch_ of a repeated element.
      std::unordered_map<std::string_view, std::size_t> seen;
      for (Value each : value.elements()) {
        const std::string_view text = typed::ElementName(type, each, arena_);
        if (text.data() == nullptr) continue;
        const auto [found, is_new] = seen.try_emplace(text, scratch_.size());
        if (!is_new) {
          FieldNode& known = scratch_.begin()[found->second];
          known.count = 0;
          known.children = nullptr;
          continue;
        }
        // Added even if it is empty, since it is owned itself.
        Add(each, *type.element, typed::ElementKind(type), text, true);
      }
    } else {
      node.marks |= kOwned;
    }
    SetChildren(node, scratch_, first, arena_);
  }

 private:
  void Add(Value value, const TypeSchema& type, char kind, std::string_view text, bool itself) {
    FieldNode child;
    child.kind = kind;
    child.text = text;
    if (itself || value.kind() == ValueKind::kNull || (value.is_object() && value.empty())) {
      child.marks |= kOwned;
    }
    Make(value, type, child);
    if (child.marks != 0 || child.count != 0) scratch_.push_back(child);
  }

  Arena& arena_;
  FieldStack scratch_;
};

const FieldNode* KeepRoot(FieldNode& root, Arena& arena) {
  root.marks = 0;
  if (root.count == 0) return nullptr;
  return new (arena.AllocateArray<FieldNode>(1)) FieldNode(root);
}

}  // namespace

const FieldNode* CompareTyped(Value before, Value after, const StructSchema& schema, Arena& arena) {
  FieldNode root;
  if (!before.exists()) before = typed::EmptyObject();
  Comparer(arena).Compare(before, after, typed::RootType(schema), root);
  return KeepRoot(root, arena);
}

const FieldNode* FieldSetOf(Value value, const StructSchema& schema, Arena& arena) {
  FieldNode root;
  SetMaker(arena).Make(value, typed::RootType(schema), root);
  return KeepRoot(root, arena);
}

}  // namespace drakkar::api
