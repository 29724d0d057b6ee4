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
// nodes in an arena that the caller keeps; null is the empty set. Sets are immutable: operations
// build new ones that share unchanged subtrees.
struct FieldNode {
  char kind = 0;            // 'f': member, 'k': element by its keys, 'v': by value, 'i': by index
  std::uint8_t marks = 0;   // kOwned, kRemoved
  std::uint16_t id = 0;     // of the schema name equal to `text`; 0: none or unknown
  std::uint32_t count = 0;  // number of children
  std::string_view text;    // the name, or JSON: {"name":"a"}
  const FieldNode* children = nullptr;  // sorted by kind, then text
};

constexpr std::uint8_t kOwned = 1;    // the path itself is in the set; in a comparison: it changed
constexpr std::uint8_t kRemoved = 2;  // comparisons only

// Three-way comparison of siblings. Ids of schema names sort as their texts do.
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

// Siblings being collected, for all levels on one stack. Small sets need no allocation.
using FieldStack = absl::InlinedVector<FieldNode, 48>;

// Deeper documents are rejected.
constexpr int kMaxFieldSetDepth = 100;

// Parses a FieldsV1 document; null if the set is empty. Does not borrow from `json`.
Result<const FieldNode*> ParseFieldsV1(std::string_view json, Arena& arena);
// For sets that are used once: names may point into `json`.
Result<const FieldNode*> ParseBorrowedFieldsV1(std::string_view json, Arena& arena);
void AppendFieldsV1(std::string& out, const FieldNode* set);

// Pops the nodes from `first` on and makes them the sorted children of `node`.
void SetChildren(FieldNode& node, FieldStack& scratch, std::size_t first, Arena& arena);

// A node of `b` counts as a member if it carries one of the marks in `mask`.
const FieldNode* Union(const FieldNode* a, const FieldNode* b, std::uint8_t mask, Arena& arena);
const FieldNode* Subtract(const FieldNode* a, const FieldNode* b, std::uint8_t mask, Arena& arena);
const FieldNode* Intersect(const FieldNode* a, const FieldNode* b, std::uint8_t mask, Arena& arena);
bool Intersects(const FieldNode* a, const FieldNode* b, std::uint8_t mask);
// `a` without the paths of `b` and everything below them.
const FieldNode* SubtractBelow(const FieldNode* a, const FieldNode* b, Arena& arena);

bool SameSet(const FieldNode* a, const FieldNode* b);
// Whether the union with `b`, a plain set, would equal `a`.
bool Includes(const FieldNode* a, const FieldNode* b);

// The child of `set`, or null.
const FieldNode* FindChild(const FieldNode* set, char kind, std::string_view text);
const FieldNode* FindChild(const FieldNode* set, const FieldNode& wanted);

// The paths of the set as users see them: .spec.containers[name="a"].image
void ForEachPath(const FieldNode* set, const std::function<void(const std::string& path)>& each);
// One element of a path: .image, [name="a"], [="x"].
std::string PathElementText(char kind, std::string_view text);

}  // namespace drakkar::api
