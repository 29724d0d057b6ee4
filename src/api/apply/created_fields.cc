#include "api/apply/created_fields.h"

#include <algorithm>
#include <bit>
#include <new>

#include "api/apply/typed_internal.h"

namespace drakkar::api {
namespace {

// Paths to leave out below the current value. Both are null below the few paths they name.
struct Without {
  const FieldNode* reset = nullptr;   // including everything below
  const FieldNode* fields = nullptr;  // these paths only

  Without At(char kind, std::string_view text, std::uint32_t id) const {
    if (reset == nullptr && fields == nullptr) return {};
    FieldNode child;
    child.kind = kind;
    child.id = static_cast<std::uint16_t>(id);
    child.text = text;
    return {FindChild(reset, child), FindChild(fields, child)};
  }
};

class CreatedWriter {
 public:
  CreatedWriter(FieldsWriter& out, Arena& arena) : out_(out), arena_(arena) {}

  bool failed() const { return failed_; }

  // Nothing is written if nothing is owned.
  void WriteRoot(Value created, const StructSchema& schema, const Without& without) {
    out_.Open(/*itself=*/false);
    const std::size_t opened = out_.size();
    WriteStruct(typed::EmptyObject(), created, schema, without);
    if (out_.size() == opened) {
      out_.Shrink(0);
    } else {
      out_.Close();
    }
  }

 private:
  // Writes the object that stands for `after`, which exists. `before` is absent, or the zero value
  // that Go would have written. Returns false if there is nothing to write.
  bool Write(Value before, Value after, const TypeSchema& type, const Without& without) {
    const bool leaf = IsLeaf(before, after, type);
    const bool itself = (!before.exists() || (leaf && !Equal(before, after))) &&
                        (without.fields == nullptr || without.fields->marks == 0);
    if (!leaf) {
      const std::size_t start = out_.size();
      out_.Open(itself);
      const std::size_t opened = out_.size();
      if (type.kind == FieldKind::kStruct) {
        WriteStruct(before, after, *type.structure, without);
      } else if (type.kind == FieldKind::kMap) {
        WriteMap(after, *type.element, without);
      } else {
        WriteList(after, type, without);
      }
      if (out_.size() != opened) {
        out_.Close();
        return true;
      }
      out_.Shrink(start);
    }
    if (itself) out_.Empty();
    return itself;
  }

  static bool IsLeaf(Value before, Value after, const TypeSchema& type) {
    if (typed::IsGranularStruct(type)) {
      return typed::IsEmptyStruct(before, *type.structure) &&
             typed::IsEmptyStruct(after, *type.structure);
    }
    if (typed::IsGranularMap(type) || typed::IsMergedList(type)) return after.empty();
    return true;
  }

  void WriteChild(Value before, Value after, const TypeSchema& type, char kind,
                  std::string_view text, std::uint32_t id, const Without& without) {
    const Without child = without.At(kind, text, id);
    if (child.reset != nullptr && child.reset->marks != 0) return;
    const std::size_t start = out_.size();
    out_.Name(kind, text, id != 0);
    if (!Write(before, after, type, child)) out_.Shrink(start);
  }

  void WriteStruct(Value before, Value after, const StructSchema& schema, const Without& without) {
    typed::FieldOrder own;
    const typed::FieldOrder* order = typed::OrderOf(schema, own);
    const bool from = before.is_object();
    if (order == nullptr || (from && !after.is_object())) {
      failed_ = true;  // something would be removed
      return;
    }
    const typed::Ranked there(after, schema, *order);
    // A zero value that is not written has not changed.
    std::uint64_t rest = there.there() | (from ? 0 : order->always);
    for (; rest != 0; rest &= rest - 1) {
      const auto rank = static_cast<std::size_t>(std::countr_zero(rest));
      const FieldSchema& field = *order->sorted[rank];
      const Value zero = field.omit_empty ? Value() : typed::ZeroOf(field);
      const Value value = there.At(rank);
      WriteChild(from ? zero : Value(), value.exists() ? value : zero, field.type, 'f',
                 field.key->view(), field.key->id, without);
    }
  }

  struct Item {
    std::string_view name;
    const Node* value;
    std::uint32_t id;
  };

  void WriteMap(Value after, const TypeSchema& element, const Without& without) {
    Item* items = arena_.AllocateArray<Item>(after.size());
    std::size_t count = 0;
    for (const auto& [key, name, value] : after.members()) {
      new (items + count++) Item{name, value.node(), key->id};
    }
    WriteItems(items, count, 'f', element, without);
  }

  void WriteList(Value after, const TypeSchema& type, const Without& without) {
    Item* items = arena_.AllocateArray<Item>(after.size());
    std::size_t count = 0;
    for (Value value : after.elements()) {
      const std::string_view name = typed::ElementName(type, value, arena_);
      if (name.data() != nullptr) new (items + count++) Item{name, value.node(), 0};
    }
    WriteItems(items, count, typed::ElementKind(type), *type.element, without);
  }

  void WriteItems(Item* items, std::size_t count, char kind, const TypeSchema& type,
                  const Without& without) {
    auto order = [](const Item& a, const Item& b) { return a.name < b.name; };
    if (!std::is_sorted(items, items + count, order)) std::sort(items, items + count, order);
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0 && items[i].name == items[i - 1].name) {
        failed_ = true;  // duplicate elements have no paths of their own
        return;
      }
      WriteChild(Value(), Value(items[i].value), type, kind, items[i].name, items[i].id, without);
    }
  }

  FieldsWriter& out_;
  Arena& arena_;
  bool failed_ = false;
};

}  // namespace

bool WriteCreatedFields(FieldsWriter& out, Value created, const StructSchema& schema,
                        const FieldNode* reset, const FieldNode* server_fields, Arena& arena) {
  CreatedWriter writer(out, arena);
  if (!created.is_object()) return false;
  writer.WriteRoot(created, schema, {reset, server_fields});
  return !writer.failed();
}

}  // namespace drakkar::api
