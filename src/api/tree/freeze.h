#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::api {

// Memory for nodes, members, names and texts while a value is assembled; all of it is freed with
// the arena. Only for code that builds trees (draft, readers).
class Arena {
 public:
  Arena() = default;
  ~Arena();  // the first chunk is kept for the thread's next arena
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Eight-byte aligned.
  void* Allocate(std::size_t size_bytes) {
    size_bytes = (size_bytes + 7) & ~std::size_t{7};
    if (size_bytes > left_) return AllocateSlow(size_bytes);
    char* at = next_;
    next_ += size_bytes;
    left_ -= size_bytes;
    return at;
  }
  template <typename T>
  T* AllocateArray(std::size_t count) {
    return static_cast<T*>(Allocate(count * sizeof(T)));
  }
  std::string_view CopyText(std::string_view text);
  // The schema's key for `name`, or one in the arena. The text is borrowed, not copied.
  const Key* MakeKey(std::string_view name);

 private:
  void* AllocateSlow(std::size_t size_bytes);

  std::vector<std::unique_ptr<char[]>> chunks_;
  char* next_ = nullptr;
  std::size_t left_ = 0;
  bool first_is_large_ = false;  // the first chunk does not have the usual size
};

inline Node BoolNode(bool value) {
  Node node{ValueKind::kBool, 0, {}};
  node.integer = 0;
  node.boolean = value;
  return node;
}
inline Node NullNode() {
  Node node{ValueKind::kNull, 0, {}};
  node.integer = 0;
  return node;
}
inline Node IntNode(std::int64_t value) {
  Node node{ValueKind::kInt, 0, {}};
  node.integer = value;
  return node;
}
inline Node DoubleNode(double value) {
  Node node{ValueKind::kDouble, 0, {}};
  node.number = value;
  return node;
}
// Borrows the text.
inline Node TextNode(std::string_view text, ValueKind kind = ValueKind::kString) {
  Node node{kind, static_cast<std::uint32_t>(text.size()), {}};
  node.text = text.data();
  return node;
}
inline Node ArrayNode(const Node* elements, std::size_t count) {
  Node node{ValueKind::kArray, static_cast<std::uint32_t>(count), {}};
  node.elements = elements;
  return node;
}
inline Node ObjectNode(const Member* members, std::size_t count) {
  Node node{ValueKind::kObject, static_cast<std::uint32_t>(count), {}};
  node.members = members;
  return node;
}

// Copies everything reachable from `root` into a tree of its own: one pass to measure, one to copy.
// Absent members and elements are omitted.
TreePtr FreezeNode(const Node& root);

}  // namespace drakkar::api
