#include <algorithm>

#include "api/apply/typed_internal.h"
#include "api/apply/typed_value.h"
#include "api/json/writer.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace typed {

std::optional<Element> ElementOf(const TypeSchema& list, Value element, std::string* problem) {
  Element out;
  if (list.merge == MergeKind::kSet) {
    AppendJson(out.text, element, {.escape_html = false});
    return out;
  }
  out.kind = 'k';
  if (!element.is_object()) {
    if (problem != nullptr) {
      *problem = element.kind() == ValueKind::kNull
                     ? "associative list with keys may not have a null element"
                     : "associative list with keys may not have non-map elements";
    }
    return std::nullopt;
  }
  std::string_view keys[8];
  const std::size_t count = std::min<std::size_t>(list.list_keys.size(), 8);
  std::copy_n(list.list_keys.begin(), count, keys);
  std::sort(keys, keys + count);
  out.text = "{";
  for (std::size_t i = 0; i < count; ++i) {
    const Value value = element[keys[i]];
    const FieldSchema* field =
        list.element->structure == nullptr ? nullptr : list.element->structure->Find(keys[i]);
    std::string text;
    if (value.has_value()) {
      AppendJson(text, value, {.escape_html = false});
    } else if (keys[i] == "protocol") {
      text = "\"TCP\"";  // the one key in the API whose default is not its zero value
    } else if (field != nullptr && !field->omit_empty && !field->pointer) {
      text = field->type.kind == FieldKind::kString ? "\"\"" : "0";
    } else {
      continue;
    }
    if (out.text.size() > 1) out.text += ',';
    out.text += '"';
    out.text += keys[i];
    out.text += "\":";
    out.text += text;
  }
  if (out.text.size() == 1) {
    if (problem != nullptr) {
      *problem = StrCat("associative list with keys has an element that omits all key fields ",
                        Quote(list.list_keys[0]),
                        " (and doesn't have default values for any key fields)");
    }
    return std::nullopt;
  }
  out.text += '}';
  return out;
}

TypeSchema RootType(const StructSchema& schema) {
  TypeSchema type;
  type.kind = FieldKind::kStruct;
  type.structure = &schema;
  type.merge = MergeKind::kGranular;
  return type;
}

}  // namespace typed

namespace {

using typed::Element;

const Node kEmptyText = TextNode("");
const Node kZero = IntNode(0);
const Node kFalse = BoolNode(false);
const Node kNull = NullNode();
const Node kZeroQuantity = TextNode("0");
const Node kZeroDuration = TextNode("0s");
const Node kEmptyObject = ObjectNode(nullptr, 0);

Value ZeroOf(const FieldSchema& field) {
  if (field.pointer) return Value(&kNull);
  switch (field.type.kind) {
    case FieldKind::kString:
    case FieldKind::kBytes: return Value(&kEmptyText);
    case FieldKind::kBool: return Value(&kFalse);
    case FieldKind::kInt32:
    case FieldKind::kInt64:
    case FieldKind::kDouble:
    case FieldKind::kIntOrString: return Value(&kZero);
    case FieldKind::kQuantity: return Value(&kZeroQuantity);
    case FieldKind::kDuration: return Value(&kZeroDuration);
    case FieldKind::kStruct: return Value(&kEmptyObject);
    default: return Value(&kNull);
  }
}

// A struct that Go writes something for even when it is all zero.
bool AlwaysHasFields(const StructSchema& schema) {
  return std::any_of(schema.fields.begin(), schema.fields.end(),
                     [](const FieldSchema& field) { return !field.omit_empty; });
}

class Comparer {
 public:
  explicit Comparer(Arena& arena) : arena_(arena) {}

  // Fills the marks and children of `node`; true if there is anything.
  bool Compare(Value before, Value after, const TypeSchema& type, FieldNode& node) {
    if (IsSameContainer(before, after)) return false;
    if (typed::IsGranularStruct(type)) {
      if (IsEmpty(before, *type.structure) && IsEmpty(after, *type.structure)) {
        return Leaf(before, after, node);
      }
      CompareStruct(before, after, *type.structure, node);
    } else if (typed::IsGranularMap(type)) {
      if (before.empty() && after.empty()) return Leaf(before, after, node);
      CompareMap(before, after, *type.element, node);
    } else if (typed::IsMergedList(type)) {
      if (before.empty() && after.empty()) return Leaf(before, after, node);
      if (before.exists() && after.exists() && Equal(before, after)) return false;
      CompareList(before, after, type, node);
    } else {
      return Leaf(before, after, node);
    }
    if (!before.exists()) {
      node.marks |= kOwned;
    } else if (!after.exists()) {
      node.marks |= kRemoved;
    }
    return node.marks != 0 || node.count != 0;
  }

 private:
  // Borrowed from where the other comes from: nothing below can differ.
  static bool IsSameContainer(Value a, Value b) {
    if (a.kind() != b.kind() || a.node()->size != b.node()->size) return false;
    if (a.kind() == ValueKind::kObject) return a.node()->members == b.node()->members;
    return a.kind() == ValueKind::kArray && a.node()->elements == b.node()->elements;
  }

  static bool IsEmpty(Value value, const StructSchema& schema) {
    if (!value.is_object()) return true;
    return value.empty() && !AlwaysHasFields(schema);
  }

  static bool Leaf(Value before, Value after, FieldNode& node) {
    if (!before.exists()) {
      if (after.exists()) node.marks |= kOwned;
    } else if (!after.exists()) {
      node.marks |= kRemoved;
    } else if (!Equal(before, after)) {
      node.marks |= kOwned;
    }
    return node.marks != 0;
  }

  void Add(Value before, Value after, const TypeSchema& type, char kind, std::string_view text) {
    FieldNode child;
    child.kind = kind;
    child.text = text;
    if (Compare(before, after, type, child)) scratch_.push_back(child);
  }

  void CompareStruct(Value before, Value after, const StructSchema& schema, FieldNode& node) {
    const std::size_t first = scratch_.size();
    // Both sides usually have their members in the order of the schema: one pass finds them all.
    Cursor left(before), right(after);
    for (const FieldSchema& field : schema.fields) {
      Value l = left.Take(field.key), r = right.Take(field.key);
      if (!field.omit_empty) {
        if (!l.exists() && before.is_object()) l = ZeroOf(field);
        if (!r.exists() && after.is_object()) r = ZeroOf(field);
      }
      if (!l.exists() && !r.exists()) continue;
      Add(l, r, field.type, 'f', field.key->view());
    }
    SetChildren(node, scratch_, first, arena_);
  }

  // Members of an object by the order in which they are asked for, falling back to a search.
  class Cursor {
   public:
    explicit Cursor(Value object) : object_(object) {
      if (object.is_object()) {
        next_ = object.node()->members;
        end_ = next_ + object.size();
      }
    }
    Value Take(const Key* key) {
      if (next_ == end_) return skipped_ ? object_[*key] : Value();
      if (next_->key == key) return Value(&(next_++)->value);
      // Either the field is absent, or the members are in another order.
      for (const Member* at = next_ + 1; at != end_; ++at) {
        if (at->key == key) {
          skipped_ = true;
          return Value(&at->value);
        }
      }
      return skipped_ ? object_[*key] : Value();
    }

   private:
    Value object_;
    const Member* next_ = nullptr;
    const Member* end_ = nullptr;
    bool skipped_ = false;
  };

  void CompareMap(Value before, Value after, const TypeSchema& element, FieldNode& node) {
    const std::size_t first = scratch_.size();
    for (const auto& [key, name, value] : after.members()) {
      Add(before[name], value, element, 'f', name);
    }
    for (const auto& [key, name, value] : before.members()) {
      if (!after[name].exists()) Add(value, Value(), element, 'f', name);
    }
    SetChildren(node, scratch_, first, arena_);
  }

  struct Item {
    Element element;
    Value value;
    bool duplicate = false;
    bool matched = false;
  };

  static std::vector<Item> Index(Value list, const TypeSchema& type) {
    std::vector<Item> items;
    items.reserve(list.size());
    for (Value value : list.elements()) {
      if (auto element = typed::ElementOf(type, value, nullptr)) {
        items.push_back({std::move(*element), value});
      }
    }
    std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
      return a.element.text < b.element.text;
    });
    for (std::size_t i = 1; i < items.size(); ++i) {
      if (items[i].element.text == items[i - 1].element.text) {
        items[i].duplicate = items[i - 1].duplicate = true;
      }
    }
    return items;
  }

  void CompareList(Value before, Value after, const TypeSchema& type, FieldNode& node) {
    const std::size_t first = scratch_.size();
    const std::vector<Item> left = Index(before, type), right = Index(after, type);
    std::size_t i = 0, j = 0;
    auto run_end = [](const std::vector<Item>& items, std::size_t from) {
      std::size_t end = from;
      while (end < items.size() && items[end].element.text == items[from].element.text) ++end;
      return end;
    };
    while (i < left.size() || j < right.size()) {
      int order = 0;
      if (i == left.size()) {
        order = 1;
      } else if (j == right.size()) {
        order = -1;
      } else {
        order = left[i].element.text.compare(right[j].element.text);
      }
      const std::size_t left_end = order <= 0 ? run_end(left, i) : i;
      const std::size_t right_end = order >= 0 ? run_end(right, j) : j;
      const Element& element = order <= 0 ? left[i].element : right[j].element;
      const std::string_view text = arena_.CopyText(element.text);
      if (left_end - i <= 1 && right_end - j <= 1) {
        Add(left_end > i ? left[i].value : Value(), right_end > j ? right[j].value : Value(),
            *type.element, element.kind, text);
      } else {
        // Elements that come twice have no paths of their own: they change together.
        bool same = left_end - i == right_end - j;
        for (std::size_t k = 0; same && k < left_end - i; ++k) {
          same = Equal(left[i + k].value, right[j + k].value);
        }
        if (!same) {
          FieldNode child;
          child.kind = element.kind;
          child.text = text;
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
  std::vector<FieldNode> scratch_;
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
      std::vector<std::string_view> seen;
      for (Value each : value.elements()) {
        auto element = typed::ElementOf(type, each, nullptr);
        if (!element) continue;
        const std::string_view text = arena_.CopyText(element->text);
        if (std::find(seen.begin(), seen.end(), text) != seen.end()) {
          for (std::size_t i = first; i < scratch_.size(); ++i) {
            if (scratch_[i].text == text) {
              scratch_[i].count = 0;
              scratch_[i].children = nullptr;
            }
          }
          continue;
        }
        seen.push_back(text);
        Add(each, *type.element, element->kind, text, true);
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
  std::vector<FieldNode> scratch_;
};

const FieldNode* KeepRoot(FieldNode& root, Arena& arena) {
  root.marks = 0;
  if (root.count == 0) return nullptr;
  return new (arena.AllocateArray<FieldNode>(1)) FieldNode(root);
}

}  // namespace

const FieldNode* CompareTyped(Value before, Value after, const StructSchema& schema,
                              Arena& arena) {
  FieldNode root;
  if (!before.exists()) before = Value(&kEmptyObject);
  Comparer(arena).Compare(before, after, typed::RootType(schema), root);
  return KeepRoot(root, arena);
}

const FieldNode* FieldSetOf(Value value, const StructSchema& schema, Arena& arena) {
  FieldNode root;
  SetMaker(arena).Make(value, typed::RootType(schema), root);
  return KeepRoot(root, arena);
}

}  // namespace drakkar::api
