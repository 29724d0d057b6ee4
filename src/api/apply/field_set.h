#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "api/tree/freeze.h"
#include "base/result/result.h"

namespace drakkar::api {

// Sets of field paths, as FieldsV1 writes them: {"f:spec":{"f:nodeName":{}}}. A set is a tree of
// nodes in an arena that its user keeps; null is the empty set. Sets are never changed: operations
// make new ones that share what stays the same.
struct FieldNode {
  char kind = 0;           // 'f' a member, 'k' an element by its keys, 'v' by value, 'i' by index
  std::uint8_t marks = 0;  // kOwned, kRemoved
  std::uint16_t id = 0;    // of the schema's name that `text` is; 0: it is none, or not known to be
  std::uint32_t count = 0;              // of children
  std::string_view text;                // the name, or JSON: {"name":"a"}
  const FieldNode* children = nullptr;  // in order of kind, then text
};

constexpr std::uint8_t kOwned = 1;    // the path itself is in the set; of a comparison: it changed
constexpr std::uint8_t kRemoved = 2;  // comparisons only

// Order of siblings: below, at or above zero. The ids of schema names have the order of their
// texts.
inline int CompareElements(const FieldNode& a, const FieldNode& b) {
  if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
  if (a.id != 0 && b.id != 0) return static_cast<int>(a.id) - static_cast<int>(b.id);
  return a.text.compare(b.text);
}
inline bool operator<(const FieldNode& a, const FieldNode& b) {
  return CompareElements(a, b) < 0;
}
inline bool SameElement(const FieldNode& a, const FieldNode& b) {
  if (a.id != 0 && b.id != 0) return a.id == b.id && a.kind == b.kind;
  return a.kind == b.kind && a.text == b.text;
}

// Siblings that are being gathered, those of all levels on one stack; few need no memory.
using FieldStack = absl::InlinedVector<FieldNode, 48>;

// Deeper documents are refused.
constexpr int kMaxFieldSetDepth = 100;

// The set of a FieldsV1 document; null if it is empty. Nothing of `json` is borrowed.
Result<const FieldNode*> ParseFieldsV1(std::string_view json, Arena& arena);
// The same for sets that are needed once: names may lie in `json`.
Result<const FieldNode*> ParseBorrowedFieldsV1(std::string_view json, Arena& arena);
void AppendFieldsV1(std::string& out, const FieldNode* set);

// Takes the nodes from `first` on off the stack and hangs them below `node`, sorted.
void SetChildren(FieldNode& node, FieldStack& scratch, std::size_t first, Arena& arena);

// What `b` marks with one of `mask` counts as being in b.
const FieldNode* Union(const FieldNode* a, const FieldNode* b, std::uint8_t mask, Arena& arena);
const FieldNode* Subtract(const FieldNode* a, const FieldNode* b, std::uint8_t mask, Arena& arena);
const FieldNode* Intersect(const FieldNode* a, const FieldNode* b, std::uint8_t mask, Arena& arena);
bool Intersects(const FieldNode* a, const FieldNode* b, std::uint8_t mask);
// Without the paths of `b` and everything below them.
const FieldNode* SubtractBelow(const FieldNode* a, const FieldNode* b, Arena& arena);

bool SameSet(const FieldNode* a, const FieldNode* b);
// The union with `b`, a plain set, would be `a` again.
bool Includes(const FieldNode* a, const FieldNode* b);

// The child of `set`, or null.
const FieldNode* FindChild(const FieldNode* set, char kind, std::string_view text);
const FieldNode* FindChild(const FieldNode* set, const FieldNode& wanted);

// Every path of the set as users read it: .spec.containers[name="a"].image
void ForEachPath(const FieldNode* set, const std::function<void(const std::string& path)>& each);
// One element of a path: .image, [name="a"], [="x"].
std::string PathElementText(char kind, std::string_view text);

}  // namespace drakkar::api
