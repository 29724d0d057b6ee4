#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cel/value/arena.h"

namespace drakkar::cel {

enum class Kind : std::uint8_t {
  kNull,
  kBool,
  kInt,
  kUint,
  kDouble,
  kString,
  kBytes,
  kDuration,   // nanoseconds
  kTimestamp,  // seconds, and nanoseconds in `size`
  kType,
  kList,
  kMap,
  kOptional,
  kObject,
  kError,
};

class MapValue;
class ObjectValue;
struct ListStorage;
struct ErrorValue;

// A run-time value: sixteen bytes, trivially copyable. What it points to lives in an arena, in the
// plan, or with whoever bound the variables, as long as the evaluation.
struct Value {
  Kind kind = Kind::kNull;
  std::uint32_t size = 0;  // bytes of text, elements of a list or map
  union {
    bool boolean;
    std::int64_t integer = 0;
    std::uint64_t unsigned_integer;
    double number;
    const char* data;
    const ListStorage* list;
    const MapValue* map;
    const Value* optional;  // null is optional.none()
    const ObjectValue* object;
    const ErrorValue* error;
  };

  std::string_view text() const { return {data, size}; }
  bool IsError() const { return kind == Kind::kError; }
  bool IsTrue() const { return kind == Kind::kBool && boolean; }
  bool IsFalse() const { return kind == Kind::kBool && !boolean; }
  bool IsNumber() const {
    return kind == Kind::kInt || kind == Kind::kUint || kind == Kind::kDouble;
  }
};
static_assert(sizeof(Value) == 16);

// Elements of one or more lists: appending to the longest list that shares a storage works in
// place, so that a fold that builds a list takes linear time.
struct ListStorage {
  Value* items = nullptr;
  std::uint32_t used = 0;
  std::uint32_t capacity = 0;
};

// Constant keys selected one after the other, known at planning time.
struct KeyPath {
  std::span<const std::string_view> keys;
  std::string_view text;   // JoinKeys(keys)
  std::uint64_t hash = 0;  // HashKeys(keys)
};
// Equal for equal keys only, provided those of one side are UTF-8.
std::string JoinKeys(std::span<const std::string_view> keys);
std::uint64_t HashJoined(std::string_view text);
inline std::uint64_t HashKeys(std::span<const std::string_view> keys) {
  return HashJoined(JoinKeys(keys));
}

// A map owned by someone else. `size` is the size of the value that refers to it.
class MapValue {
 public:
  virtual ~MapValue() = default;
  // The result of m[key]; may answer for keys that `Contains` denies.
  virtual bool Find(const Value& key, std::uint32_t size, Value* out) const = 0;
  virtual bool Contains(const Value& key, std::uint32_t size) const {
    Value ignored;
    return Find(key, size, &ignored);
  }
  // The value at the end of a whole path, for maps that index their paths. False means unknown: the
  // keys are then looked up one by one.
  virtual bool FindPath(const KeyPath&, Value*) const { return false; }
  virtual Value KeyAt(std::uint32_t index) const = 0;
  virtual Value ValueAt(std::uint32_t index) const = 0;
};

// The name of a type added by a library. Types are compared by the address of the library's
// constant, not by text.
using ObjectTypeName = std::string_view;

// A value of a type added by a library.
class ObjectValue {
 public:
  virtual ~ObjectValue() = default;
  std::string_view type_name() const { return *type_; }
  const ObjectTypeName* type_id() const { return type_; }
  // `other` has the same type name.
  virtual bool Equals(const ObjectValue& other) const = 0;
  // The size that size-dependent costs use.
  virtual std::uint64_t CostSize() const { return 1; }
  // The length of the regular expression that the value stands for.
  virtual std::uint64_t PatternSize() const { return 1; }
  virtual bool IsZero() const { return false; }
  virtual std::string DebugText() const { return std::string(type_name()); }

 protected:
  explicit ObjectValue(const ObjectTypeName* type) : type_(type) {}

 private:
  const ObjectTypeName* type_;
};

struct ErrorValue {
  std::string message;
  bool cost_limit_exceeded = false;
};

inline Value MakeNull() {
  return {};
}
inline Value MakeBool(bool boolean) {
  Value value;
  value.kind = Kind::kBool;
  value.boolean = boolean;
  return value;
}
inline Value MakeInt(std::int64_t integer) {
  Value value;
  value.kind = Kind::kInt;
  value.integer = integer;
  return value;
}
inline Value MakeUint(std::uint64_t integer) {
  Value value;
  value.kind = Kind::kUint;
  value.unsigned_integer = integer;
  return value;
}
inline Value MakeDouble(double number) {
  Value value;
  value.kind = Kind::kDouble;
  value.number = number;
  return value;
}
inline Value MakeText(Kind kind, std::string_view text) {
  Value value;
  value.kind = kind;
  value.size = static_cast<std::uint32_t>(text.size());
  value.data = text.data();
  return value;
}
inline Value MakeString(std::string_view text) {
  return MakeText(Kind::kString, text);
}
inline Value MakeBytes(std::string_view text) {
  return MakeText(Kind::kBytes, text);
}
inline Value MakeType(std::string_view name) {
  return MakeText(Kind::kType, name);
}
inline Value MakeDuration(std::int64_t nanoseconds) {
  Value value;
  value.kind = Kind::kDuration;
  value.integer = nanoseconds;
  return value;
}
inline Value MakeTimestamp(std::int64_t seconds, std::uint32_t nanoseconds) {
  Value value;
  value.kind = Kind::kTimestamp;
  value.integer = seconds;
  value.size = nanoseconds;
  return value;
}
inline Value MakeMap(const MapValue* map, std::uint32_t size) {
  Value value;
  value.kind = Kind::kMap;
  value.size = size;
  value.map = map;
  return value;
}
inline Value MakeObject(const ObjectValue* object) {
  Value value;
  value.kind = Kind::kObject;
  value.object = object;
  return value;
}
inline Value MakeOptional(const Value* content) {
  Value value;
  value.kind = Kind::kOptional;
  value.optional = content;
  return value;
}

// Text copied into the arena.
std::string_view CopyText(Arena& arena, std::string_view text);
inline Value NewString(Arena& arena, std::string_view text) {
  return MakeString(CopyText(arena, text));
}
Value NewError(Arena& arena, std::string message);
Value NewOptional(Arena& arena, const Value& content);
Value NewList(Arena& arena, const Value* items, std::size_t count);
Value NewListView(Arena& arena, Value* items, std::size_t count);  // takes ownership of the array
inline const Value* ListItems(const Value& list) {
  return list.list->items;
}
Value Append(Arena& arena, const Value& list, const Value* items, std::uint32_t count);

// A map of (key, value) pairs in insertion order; a later pair replaces an equal earlier key.
Value NewMap(Arena& arena, std::size_t expected);
Value MapInsert(Arena& arena, const Value& map, const Value& key, const Value& value);
// No later insertion into this map, or into one that shares its entries, may change it.
void Freeze(const Value& map);
Value MapRemove(Arena& arena, const Value& map, const Value& key);

// CEL equality: compares numbers across types and never fails. NaN equals nothing.
bool Equal(const Value& a, const Value& b);
// -1, 0, 1; nothing for values of different kinds and for NaN.
enum class Order { kLess = -1, kEqual = 0, kGreater = 1, kNone };
Order CompareValues(const Value& a, const Value& b);

// The name type(x) prints.
std::string_view TypeName(const Value& value);
// Characters of a string, bytes, elements; one for scalars.
std::uint64_t SizeOf(const Value& value);
std::uint64_t CountCharacters(std::string_view text);
// As it appears in error messages.
std::string DebugText(const Value& value);
bool IsZeroValue(const Value& value);

}  // namespace drakkar::cel
