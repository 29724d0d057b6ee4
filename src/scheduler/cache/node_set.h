#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace drakkar::scheduler {

// A node's index into the columns of the NodeTable. Indexes of removed nodes are reused.
using NodeIndex = std::uint32_t;
inline constexpr NodeIndex kNoNode = ~NodeIndex{0};

// A set of nodes, one bit each. Sets can be combined only if they have the size of the same table.
class NodeSet {
 public:
  void Resize(std::size_t node_count) { words_.resize((node_count + 63) / 64, 0); }
  std::size_t word_count() const { return words_.size(); }
  std::uint64_t word(std::size_t i) const { return words_[i]; }
  void set_word(std::size_t i, std::uint64_t bits) { words_[i] = bits; }

  void Add(NodeIndex node) { words_[node / 64] |= std::uint64_t{1} << (node % 64); }
  void Remove(NodeIndex node) { words_[node / 64] &= ~(std::uint64_t{1} << (node % 64)); }
  void Put(NodeIndex node, bool in) { in ? Add(node) : Remove(node); }
  // Also for indexes beyond the size.
  bool Contains(NodeIndex node) const {
    return node / 64 < words_.size() && ((words_[node / 64] >> (node % 64)) & 1) != 0;
  }
  void Clear() { words_.assign(words_.size(), 0); }

  bool IsEmpty() const {
    for (const std::uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }
  std::size_t Count() const {
    std::size_t count = 0;
    for (const std::uint64_t word : words_) count += static_cast<std::size_t>(std::popcount(word));
    return count;
  }
  void IntersectWith(const NodeSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
  }
  void AddAll(const NodeSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  void RemoveAll(const NodeSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.words_[i];
  }

  // In ascending order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t word = words_[i]; word != 0; word &= word - 1) {
        visit(static_cast<NodeIndex>(i * 64 + static_cast<std::size_t>(std::countr_zero(word))));
      }
    }
  }
  // The first member at or after `from`, or kNoNode.
  NodeIndex NextFrom(NodeIndex from) const {
    std::size_t i = from / 64;
    if (i >= words_.size()) return kNoNode;
    std::uint64_t word = words_[i] & (~std::uint64_t{0} << (from % 64));
    while (word == 0) {
      if (++i == words_.size()) return kNoNode;
      word = words_[i];
    }
    return static_cast<NodeIndex>(i * 64 + static_cast<std::size_t>(std::countr_zero(word)));
  }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace drakkar::scheduler
