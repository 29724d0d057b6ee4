#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result/result.h"

namespace drakkar::features {

// A set of features: one bit per feature of a registry, in 64-bit words. Sets of registries of
// different sizes cannot be combined. Up to 128 features are stored inline, so that testing a node
// reads two adjacent words.
class FeatureSet {
 public:
  FeatureSet() = default;  // over an empty registry
  explicit FeatureSet(std::size_t size);

  std::size_t size() const { return size_; }  // bits, not members
  // The index must be less than size().
  void Set(std::size_t index, bool on = true);
  bool Get(std::size_t index) const;

  bool IsEmpty() const;
  std::size_t Count() const;  // members
  bool operator==(const FeatureSet& other) const;

  // Whether every member is in `other`; runs once per node. The sizes must be equal.
  bool IsSubsetOf(const FeatureSet& other) const {
    CHECK(size_ == other.size_);
    const std::uint64_t* mine = words();
    const std::uint64_t* theirs = other.words();
    std::uint64_t missing = 0;
    for (std::size_t i = 0; i < WordCount(); ++i) missing |= mine[i] & ~theirs[i];
    return missing == 0;
  }
  // The same for sets of unknown origin; fails if the sizes differ.
  Result<bool> CheckedIsSubsetOf(const FeatureSet& other) const;
  // The members that are not in `other`; fails if the sizes differ.
  Result<FeatureSet> Difference(const FeatureSet& other) const;

  // Calls `visit(index)` for each member, in ascending order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (std::size_t i = 0; i < WordCount(); ++i) {
      for (std::uint64_t word = words()[i]; word != 0; word &= word - 1) {
        visit(i * kWordBits + static_cast<std::size_t>(std::countr_zero(word)));
      }
    }
  }

  // One 0 or 1 per bit, bit 0 first. Equal sets of one registry give equal strings.
  std::string ToString() const;

 private:
  static constexpr std::size_t kWordBits = 64;
  static constexpr std::size_t kInlineWords = 2;

  std::size_t WordCount() const { return (size_ + kWordBits - 1) / kWordBits; }
  const std::uint64_t* words() const {
    return size_ <= kInlineWords * kWordBits ? inline_.data() : heap_.data();
  }
  std::uint64_t* words() { return const_cast<std::uint64_t*>(std::as_const(*this).words()); }

  std::size_t size_ = 0;
  std::array<std::uint64_t, kInlineWords> inline_{};
  std::vector<std::uint64_t> heap_;  // all words, if they do not fit inline
};

}  // namespace drakkar::features
