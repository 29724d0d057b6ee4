#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/tree/field_name.h"
#include "api/tree/key.h"

namespace drakkar::api {

enum class ValueKind : std::uint8_t {
  kAbsent,  // not present; the result of looking up a missing field
  kNull,
  kBool,
  kInt,
  kDouble,
  kString,
  kRaw,  // opaque JSON kept byte for byte (RawExtension, fieldsV1)
  kArray,
  kObject,
};

struct Member;

// One value of a tree, 16 bytes. Only the api module looks inside.
struct Node {
  ValueKind kind = ValueKind::kAbsent;
  std::uint32_t size = 0;  // bytes, elements or members
  union {
    bool boolean;
    std::int64_t integer;
    double number;
    const char* text;
    const Node* elements;
    const Member* members;
  };
};
static_assert(sizeof(Node) == 16);

struct Member {
  const Key* key;
  Node value;
};

class ArrayRange;
class ObjectRange;

// A borrowed, read-only view of a value in a tree; as cheap as a pointer, valid as long as the
// tree. Looking up a missing field gives an absent value, so chains need no checks:
//   pod["spec"]["nodeName"].str()   is "" if there is no spec.
class Value {
 public:
  Value();  // absent
  explicit Value(const Node* node) : node_(node) {}

  ValueKind kind() const { return node_->kind; }
  bool exists() const { return node_->kind != ValueKind::kAbsent; }
  // Neither absent nor null.
  bool has_value() const { return node_->kind > ValueKind::kNull; }
  bool is_object() const { return node_->kind == ValueKind::kObject; }
  bool is_array() const { return node_->kind == ValueKind::kArray; }
  bool is_string() const { return node_->kind == ValueKind::kString; }

  // The typed accessors return the fallback if the value has another kind.
  std::string_view str(std::string_view fallback = {}) const;  // also the bytes of kRaw
  std::int64_t integer(std::int64_t fallback = 0) const;
  double number(double fallback = 0) const;  // integers too
  bool boolean(bool fallback = false) const;
  std::optional<std::int64_t> optional_integer() const;
  std::optional<bool> optional_boolean() const;

  // Elements of an array or members of an object; 0 for everything else.
  std::size_t size() const;
  bool empty() const { return size() == 0; }

  // The field; the compiler checks its name, and the lookup compares pointers.
  Value operator[](FieldName name) const { return Entry(name.key()); }
  // The member whose name is known only at run time: a key of a map, or a name from the schema.
  Value Entry(std::string_view name) const;
  Value Entry(const Key& key) const;
  Value at(std::size_t index) const;  // absent beyond the end

  ArrayRange elements() const;  // empty unless an array
  ObjectRange members() const;  // empty unless an object

  const Node* node() const { return node_; }

 private:
  const Node* node_;
};

// Equal as JSON: the order of members is irrelevant, 1 equals 1.0, raw values are compared as
// bytes.
bool Equal(Value a, Value b);

class ArrayRange {
 public:
  class Iterator {
   public:
    explicit Iterator(const Node* at) : at_(at) {}
    Value operator*() const { return Value(at_); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const Node* at_;
  };
  ArrayRange(const Node* first, std::size_t count) : first_(first), count_(count) {}
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(first_ + count_); }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }

 private:
  const Node* first_;
  std::size_t count_;
};

struct MemberView {
  const Key* key;
  std::string_view name;
  Value value;
};

class ObjectRange {
 public:
  class Iterator {
   public:
    explicit Iterator(const Member* at) : at_(at) {}
    MemberView operator*() const { return {at_->key, at_->key->view(), Value(&at_->value)}; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const Member* at_;
  };
  ObjectRange(const Member* first, std::size_t count) : first_(first), count_(count) {}
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(first_ + count_); }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }

 private:
  const Member* first_;
  std::size_t count_;
};

// An immutable tree in one block of memory: nodes, members, names and texts. Made by a Draft or by
// the readers in api/json and api/codec. Safe to read from any thread.
class Tree {
 public:
  Tree(std::unique_ptr<char[]> block, std::size_t size_bytes, Node root)
      : block_(std::move(block)), size_bytes_(size_bytes), root_(root) {}
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  Value root() const { return Value(&root_); }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  std::unique_ptr<char[]> block_;
  std::size_t size_bytes_;
  Node root_;
};
using TreePtr = std::shared_ptr<const Tree>;

// A copy of `value` (possibly a part of a larger tree) in a block of its own.
TreePtr CopyTree(Value value);

}  // namespace drakkar::api
