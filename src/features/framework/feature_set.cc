#include "features/framework/feature_set.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::features {

FeatureSet::FeatureSet(std::size_t size) : size_(size) {
  if (WordCount() > kInlineWords) heap_.resize(WordCount());
}

void FeatureSet::Set(std::size_t index, bool on) {
  CHECK(index < size_);
  const std::uint64_t bit = std::uint64_t{1} << (index % kWordBits);
  std::uint64_t& word = words()[index / kWordBits];
  word = on ? word | bit : word & ~bit;
}

bool FeatureSet::Get(std::size_t index) const {
  CHECK(index < size_);
  return (words()[index / kWordBits] >> (index % kWordBits) & 1) != 0;
}

bool FeatureSet::IsEmpty() const {
  return std::all_of(words(), words() + WordCount(), [](std::uint64_t word) { return word == 0; });
}

std::size_t FeatureSet::Count() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < WordCount(); ++i) {
    count += static_cast<std::size_t>(std::popcount(words()[i]));
  }
  return count;
}

bool FeatureSet::operator==(const FeatureSet& other) const {
  return size_ == other.size_ && std::equal(words(), words() + WordCount(), other.words());
}

Result<bool> FeatureSet::CheckedIsSubsetOf(const FeatureSet& other) const {
  if (size_ != other.size_) {
    return InvalidArgument(StrCat("bitmap size mismatch; ", size_, " != ", other.size_));
  }
  return IsSubsetOf(other);
}

Result<FeatureSet> FeatureSet::Difference(const FeatureSet& other) const {
  if (size_ != other.size_) {
    return InvalidArgument(StrCat("bitmap size mismatch: ", size_, " != ", other.size_));
  }
  FeatureSet rest = *this;
  for (std::size_t i = 0; i < WordCount(); ++i) rest.words()[i] &= ~other.words()[i];
  return rest;
}

std::string FeatureSet::ToString() const {
  std::string text(size_, '0');
  ForEach([&](std::size_t index) { text[index] = '1'; });
  return text;
}

}  // namespace drakkar::features
