#include "cel/value/value.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/text/text.h"

namespace drakkar::cel {
namespace {

// Entries of one or more map values; as in ListStorage, only the largest grows in place. Beyond
// kLinearLimit entries a hash table is used.
class ArenaMap final : public MapValue {
 public:
  static constexpr std::uint32_t kLinearLimit = 8;

  struct Entry {
    Value key;
    Value value;
  };

  ArenaMap(Arena& arena, std::uint32_t capacity)
      : entries_(arena.AllocateArray<Entry>(capacity)), capacity_(capacity) {}

  bool Find(const Value& key, std::uint32_t size, Value* out) const override {
    const std::int64_t index = IndexOf(key, size);
    if (index < 0) return false;
    *out = entries_[index].value;
    return true;
  }
  Value KeyAt(std::uint32_t index) const override { return entries_[index].key; }
  Value ValueAt(std::uint32_t index) const override { return entries_[index].value; }

  std::int64_t IndexOf(const Value& key, std::uint32_t size) const {
    if (table_ == nullptr) {
      for (std::uint32_t i = 0; i < size; ++i) {
        if (Equal(entries_[i].key, key)) return i;
      }
      return -1;
    }
    for (std::uint32_t slot = Hash(key) & mask_;; slot = (slot + 1) & mask_) {
      const std::uint32_t entry = table_[slot];
      if (entry == 0) return -1;
      if (Equal(entries_[entry - 1].key, key))
        return entry <= size ? static_cast<std::int64_t>(entry) - 1 : -1;
    }
  }

  bool CanGrowFrom(std::uint32_t size) const { return size == used_ && used_ < capacity_; }
  void Add(Arena& arena, const Value& key, const Value& value) {
    entries_[used_++] = {key, value};
    if (used_ > kLinearLimit) Index(arena);
  }
  void Freeze() { capacity_ = used_; }

 private:
  static std::uint32_t Hash(const Value& key) {
    std::uint64_t hash = 0;
    switch (key.kind) {
      case Kind::kString:
        hash = std::hash<std::string_view>()(key.text());
        break;
      case Kind::kBool:
        hash = key.boolean ? 3 : 5;
        break;
      // Equal numbers of different types must have the same hash.
      case Kind::kInt:
        hash = std::hash<double>()(static_cast<double>(key.integer));
        break;
      case Kind::kUint:
        hash = std::hash<double>()(static_cast<double>(key.unsigned_integer));
        break;
      case Kind::kDouble:
        hash = std::hash<double>()(key.number);
        break;
      default:
        break;
    }
    return static_cast<std::uint32_t>((hash * 0x9E3779B97F4A7C15u) >> 32);
  }

  void Index(Arena& arena) {
    if (table_ == nullptr) {
      std::uint32_t slots = 32;
      while (slots < capacity_ * 2) slots *= 2;
      table_ = arena.AllocateArray<std::uint32_t>(slots);
      std::memset(table_, 0, slots * sizeof(std::uint32_t));
      mask_ = slots - 1;
      for (std::uint32_t i = 0; i < used_; ++i) Put(i);
      return;
    }
    Put(used_ - 1);
  }
  void Put(std::uint32_t index) {
    std::uint32_t slot = Hash(entries_[index].key) & mask_;
    while (table_[slot] != 0) slot = (slot + 1) & mask_;
    table_[slot] = index + 1;
  }

  Entry* entries_;
  std::uint32_t used_ = 0;
  std::uint32_t capacity_;
  std::uint32_t* table_ = nullptr;
  std::uint32_t mask_ = 0;
};

bool DoubleEqualsInt(double number, std::int64_t integer) {
  return number >= -9223372036854775808.0 && number < 9223372036854775808.0 &&
         std::trunc(number) == number && static_cast<std::int64_t>(number) == integer;
}
bool DoubleEqualsUint(double number, std::uint64_t integer) {
  return number >= 0 && number < 18446744073709551616.0 && std::trunc(number) == number &&
         static_cast<std::uint64_t>(number) == integer;
}

Order CompareDoubles(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return Order::kNone;
  return a < b ? Order::kLess : a > b ? Order::kGreater : Order::kEqual;
}

template <typename T>
Order CompareOrdered(const T& a, const T& b) {
  return a < b ? Order::kLess : b < a ? Order::kGreater : Order::kEqual;
}

Order Flip(Order order) {
  return order == Order::kLess ? Order::kGreater : order == Order::kGreater ? Order::kLess : order;
}

Order CompareNumbers(const Value& a, const Value& b) {
  if (a.kind == Kind::kDouble || b.kind == Kind::kDouble) {
    if (a.kind == b.kind) return CompareDoubles(a.number, b.number);
    if (a.kind != Kind::kDouble) return Flip(CompareNumbers(b, a));
    if (std::isnan(a.number)) return Order::kNone;
    if (b.kind == Kind::kInt) {
      if (a.number < -9223372036854775808.0) return Order::kLess;
      if (a.number > 9223372036854775808.0) return Order::kGreater;
      return CompareDoubles(a.number, static_cast<double>(b.integer));
    }
    if (a.number < 0) return Order::kLess;
    if (a.number > 18446744073709551616.0) return Order::kGreater;
    return CompareDoubles(a.number, static_cast<double>(b.unsigned_integer));
  }
  if (a.kind == b.kind) {
    return a.kind == Kind::kInt ? CompareOrdered(a.integer, b.integer)
                                : CompareOrdered(a.unsigned_integer, b.unsigned_integer);
  }
  if (a.kind == Kind::kUint) return Flip(CompareNumbers(b, a));
  if (a.integer < 0) return Order::kLess;
  return CompareOrdered(static_cast<std::uint64_t>(a.integer), b.unsigned_integer);
}

bool EqualLists(const Value& a, const Value& b) {
  if (a.size != b.size) return false;
  for (std::uint32_t i = 0; i < a.size; ++i) {
    if (!Equal(ListItems(a)[i], ListItems(b)[i])) return false;
  }
  return true;
}

bool EqualMaps(const Value& a, const Value& b) {
  if (a.size != b.size) return false;
  for (std::uint32_t i = 0; i < a.size; ++i) {
    Value other;
    if (!b.map->Contains(a.map->KeyAt(i), b.size) ||
        !b.map->Find(a.map->KeyAt(i), b.size, &other) || !Equal(a.map->ValueAt(i), other)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string JoinKeys(std::span<const std::string_view> keys) {
  std::string text;
  for (const std::string_view key : keys) {
    text += key;
    text += '\xff';  // not a UTF-8 byte
  }
  return text;
}

std::uint64_t HashJoined(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string_view CopyText(Arena& arena, std::string_view text) {
  if (text.empty()) return {};
  char* memory = static_cast<char*>(arena.Allocate(text.size()));
  std::memcpy(memory, text.data(), text.size());
  return {memory, text.size()};
}

Value NewError(Arena& arena, std::string message) {
  Value value;
  value.kind = Kind::kError;
  value.error = arena.New<ErrorValue>(ErrorValue{std::move(message)});
  return value;
}

Value NewOptional(Arena& arena, const Value& content) {
  return MakeOptional(arena.New<Value>(content));
}

Value NewListView(Arena& arena, Value* items, std::size_t count) {
  Value value;
  value.kind = Kind::kList;
  value.size = static_cast<std::uint32_t>(count);
  value.list = arena.New<ListStorage>(ListStorage{items, value.size, value.size});
  return value;
}

Value NewList(Arena& arena, const Value* items, std::size_t count) {
  Value* copy = arena.AllocateArray<Value>(count);
  if (count > 0) std::memcpy(static_cast<void*>(copy), items, count * sizeof(Value));
  return NewListView(arena, copy, count);
}

Value Append(Arena& arena, const Value& list, const Value* items, std::uint32_t count) {
  if (count == 0) return list;
  Value result = list;
  // The arena owns the storage; only lists handed out as values are const.
  auto* storage = const_cast<ListStorage*>(list.list);
  if (storage->used != list.size || storage->capacity - storage->used < count ||
      storage->capacity == storage->used) {
    const std::uint32_t capacity = std::max<std::uint32_t>(8, (list.size + count) * 2);
    Value* copy = arena.AllocateArray<Value>(capacity);
    if (list.size > 0)
      std::memcpy(static_cast<void*>(copy), storage->items, list.size * sizeof(Value));
    storage = arena.New<ListStorage>(ListStorage{copy, list.size, capacity});
  }
  std::memcpy(static_cast<void*>(storage->items + list.size), items, count * sizeof(Value));
  storage->used = list.size + count;
  result.list = storage;
  result.size = storage->used;
  return result;
}

Value NewMap(Arena& arena, std::size_t expected) {
  return MakeMap(
      arena.New<ArenaMap>(arena, static_cast<std::uint32_t>(std::max<std::size_t>(expected, 4))),
      0);
}

Value MapInsert(Arena& arena, const Value& map, const Value& key, const Value& value) {
  auto* storage = const_cast<ArenaMap*>(dynamic_cast<const ArenaMap*>(map.map));
  const bool present = map.map->Contains(key, map.size);
  if (storage == nullptr || present || !storage->CanGrowFrom(map.size)) {
    auto* copy = arena.New<ArenaMap>(arena, std::max<std::uint32_t>(8, map.size * 2));
    for (std::uint32_t i = 0; i < map.size; ++i) {
      const Value old_key = map.map->KeyAt(i);
      copy->Add(arena, old_key, present && Equal(old_key, key) ? value : map.map->ValueAt(i));
    }
    storage = copy;
  }
  if (!present) storage->Add(arena, key, value);
  return MakeMap(storage, map.size + (present ? 0 : 1));
}

void Freeze(const Value& map) {
  if (auto* storage = const_cast<ArenaMap*>(dynamic_cast<const ArenaMap*>(map.map)))
    storage->Freeze();
}

Value MapRemove(Arena& arena, const Value& map, const Value& key) {
  if (!map.map->Contains(key, map.size)) return map;
  auto* copy = arena.New<ArenaMap>(arena, std::max<std::uint32_t>(4, map.size));
  std::uint32_t size = 0;
  for (std::uint32_t i = 0; i < map.size; ++i) {
    if (Equal(map.map->KeyAt(i), key)) continue;
    copy->Add(arena, map.map->KeyAt(i), map.map->ValueAt(i));
    ++size;
  }
  return MakeMap(copy, size);
}

bool Equal(const Value& a, const Value& b) {
  if (a.kind != b.kind) {
    if (!a.IsNumber() || !b.IsNumber()) return false;
    if (a.kind == Kind::kDouble) {
      return b.kind == Kind::kInt ? DoubleEqualsInt(a.number, b.integer)
                                  : DoubleEqualsUint(a.number, b.unsigned_integer);
    }
    if (b.kind == Kind::kDouble) return Equal(b, a);
    const std::int64_t integer = a.kind == Kind::kInt ? a.integer : b.integer;
    const std::uint64_t other = a.kind == Kind::kInt ? b.unsigned_integer : a.unsigned_integer;
    return integer >= 0 && static_cast<std::uint64_t>(integer) == other;
  }
  switch (a.kind) {
    case Kind::kNull:
      return true;
    case Kind::kBool:
      return a.boolean == b.boolean;
    case Kind::kInt:
    case Kind::kDuration:
      return a.integer == b.integer;
    case Kind::kUint:
      return a.unsigned_integer == b.unsigned_integer;
    case Kind::kDouble:
      return a.number == b.number;
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kType:
      return a.text() == b.text();
    case Kind::kTimestamp:
      return a.integer == b.integer && a.size == b.size;
    case Kind::kList:
      return EqualLists(a, b);
    case Kind::kMap:
      return EqualMaps(a, b);
    case Kind::kOptional:
      if (!a.optional || !b.optional) return a.optional == b.optional;
      return Equal(*a.optional, *b.optional);
    case Kind::kObject:
      return a.object->type_name() == b.object->type_name() && a.object->Equals(*b.object);
    case Kind::kError:
      return false;
  }
  return false;
}

Order CompareValues(const Value& a, const Value& b) {
  if (a.IsNumber() && b.IsNumber()) return CompareNumbers(a, b);
  if (a.kind != b.kind) return Order::kNone;
  switch (a.kind) {
    case Kind::kBool:
      return CompareOrdered(a.boolean, b.boolean);
    case Kind::kDuration:
      return CompareOrdered(a.integer, b.integer);
    case Kind::kString:
    case Kind::kBytes:
      return CompareOrdered(a.text(), b.text());
    case Kind::kTimestamp:
      return a.integer != b.integer ? CompareOrdered(a.integer, b.integer)
                                    : CompareOrdered(a.size, b.size);
    default:
      return Order::kNone;
  }
}

std::string_view TypeName(const Value& value) {
  switch (value.kind) {
    case Kind::kNull:
      return "null_type";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kUint:
      return "uint";
    case Kind::kDouble:
      return "double";
    case Kind::kString:
      return "string";
    case Kind::kBytes:
      return "bytes";
    case Kind::kDuration:
      return "google.protobuf.Duration";
    case Kind::kTimestamp:
      return "google.protobuf.Timestamp";
    case Kind::kType:
      return "type";
    case Kind::kList:
      return "list";
    case Kind::kMap:
      return "map";
    case Kind::kOptional:
      return "optional_type";
    case Kind::kObject:
      return value.object->type_name();
    case Kind::kError:
      return "error";
  }
  return "";
}

std::uint64_t CountCharacters(std::string_view text) {
  std::uint64_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

std::uint64_t SizeOf(const Value& value) {
  switch (value.kind) {
    case Kind::kString:
      return CountCharacters(value.text());
    case Kind::kBytes:
    case Kind::kList:
    case Kind::kMap:
      return value.size;
    case Kind::kOptional:
      return value.optional ? SizeOf(*value.optional) : 1;
    case Kind::kObject:
      return value.object->CostSize();
    default:
      return 1;
  }
}

std::string DebugText(const Value& value) {
  switch (value.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return value.boolean ? "true" : "false";
    case Kind::kInt:
      return std::to_string(value.integer);
    case Kind::kUint:
      return std::to_string(value.unsigned_integer);
    case Kind::kDouble: {
      char buffer[40];
      const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value.number);
      return std::string(buffer, end);
    }
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kType:
      return std::string(value.text());
    case Kind::kObject:
      return value.object->DebugText();
    case Kind::kError:
      return value.error->message;
    default:
      return std::string(TypeName(value));
  }
}

bool IsZeroValue(const Value& value) {
  switch (value.kind) {
    case Kind::kNull:
      return true;
    case Kind::kBool:
      return !value.boolean;
    case Kind::kInt:
    case Kind::kDuration:
      return value.integer == 0;
    case Kind::kUint:
      return value.unsigned_integer == 0;
    case Kind::kDouble:
      return value.number == 0;
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kList:
    case Kind::kMap:
      return value.size == 0;
    case Kind::kOptional:
      return value.optional == nullptr || IsZeroValue(*value.optional);
    case Kind::kTimestamp:
      return value.integer == 0 && value.size == 0;
    case Kind::kObject:
      return value.object->IsZero();
    default:
      return false;
  }
}

}  // namespace drakkar::cel
