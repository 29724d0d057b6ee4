#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/apply/field_set.h"
#include "api/schema/schema.h"

// Shared by the parts of typed_value.
namespace drakkar::api::typed {

inline bool IsMergedList(const TypeSchema& type) {
  return type.kind == FieldKind::kList && type.merge != MergeKind::kAtomic;
}
inline bool IsGranularMap(const TypeSchema& type) {
  return type.kind == FieldKind::kMap && type.merge == MergeKind::kGranular;
}
inline bool IsGranularStruct(const TypeSchema& type) {
  return type.kind == FieldKind::kStruct && type.merge == MergeKind::kGranular;
}

// The name of an element of a merged list: the JSON of its value or of its keys. Nothing if it
// lacks all keys or has the wrong kind; `problem` then says why.
struct Element {
  char kind = 'v';
  std::string text;
};
std::optional<Element> ElementOf(const TypeSchema& list, Value element, std::string* problem);

// The same name in `arena`, without its kind; null data if it has none.
std::string_view ElementName(const TypeSchema& list, Value element, Arena& arena);
inline char ElementKind(const TypeSchema& list) {
  return list.merge == MergeKind::kSet ? 'v' : 'k';
}

// The fields of a struct sorted by name, which is the order of their paths.
struct FieldOrder {
  static constexpr std::size_t kMaxFields = 64;
  const FieldSchema* sorted[kMaxFields];
  std::uint8_t rank[kMaxFields];  // by position in the schema
  std::uint64_t always = 0;       // by rank: fields that Go writes even when they are zero
};
// Null if the struct has more fields. Generated schemas, of which there is a fixed number, are
// cached per thread; a handmade one is stored in `own`.
const FieldOrder* OrderOf(const StructSchema& schema, FieldOrder& own);

// The members of an object by the rank of their fields; of duplicates, the first one counts.
class Ranked {
 public:
  Ranked(Value object, const StructSchema& schema, const FieldOrder& order) {
    for (const auto& [key, name, value] : object.members()) {
      const FieldSchema* field = value.exists() ? schema.Find(*key) : nullptr;
      if (field == nullptr) continue;
      const std::uint8_t rank = order.rank[field - schema.fields.data()];
      const std::uint64_t bit = std::uint64_t{1} << rank;
      if ((there_ & bit) != 0) continue;
      there_ |= bit;
      nodes_[rank] = value.node();
    }
  }
  std::uint64_t there() const { return there_; }
  Value At(std::size_t rank) const {
    return (there_ >> rank & 1) != 0 ? Value(nodes_[rank]) : Value();
  }

 private:
  std::uint64_t there_ = 0;
  const Node* nodes_[FieldOrder::kMaxFields];
};

// What Go writes for a field that is not set; an empty struct is an empty object.
Value ZeroOf(const FieldSchema& field);
// Go would write nothing for it, so it counts as a leaf.
bool IsEmptyStruct(Value value, const StructSchema& schema);

Value EmptyObject();

// A struct as a type, for the root.
TypeSchema RootType(const StructSchema& schema);

}  // namespace drakkar::api::typed
