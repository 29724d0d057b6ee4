#include "features/framework/feature_set.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

namespace drakkar::features {
namespace {

// A FeatureSet and a model of it.
struct Pair {
  FeatureSet bits;
  std::set<std::size_t> model;

  explicit Pair(std::size_t size) : bits(size) {}
};

std::vector<std::size_t> Members(const FeatureSet& set) {
  std::vector<std::size_t> members;
  set.ForEach([&](std::size_t index) { members.push_back(index); });
  return members;
}

void ExpectSame(const Pair& pair) {
  EXPECT_EQ(Members(pair.bits), std::vector<std::size_t>(pair.model.begin(), pair.model.end()));
  EXPECT_EQ(pair.bits.Count(), pair.model.size());
  EXPECT_EQ(pair.bits.IsEmpty(), pair.model.empty());
  std::string text;
  for (std::size_t i = 0; i < pair.bits.size(); ++i) text += pair.model.contains(i) ? '1' : '0';
  EXPECT_EQ(pair.bits.ToString(), text);
}

// Sizes around word boundaries and around the inline capacity.
class FeatureSetOfSize : public testing::TestWithParam<std::size_t> {};

INSTANTIATE_TEST_SUITE_P(Sizes, FeatureSetOfSize,
                         testing::Values(1, 5, 20, 40, 63, 64, 65, 100, 127, 128, 129, 192, 1024));

TEST_P(FeatureSetOfSize, BehavesLikeASetOfNumbers) {
  const std::size_t size = GetParam();
  const std::uint64_t seed = 5328 + size;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20; ++round) {
    Pair a(size);
    Pair b(size);
    const std::size_t changes = random() % (2 * size + 1);
    for (std::size_t i = 0; i < changes; ++i) {
      Pair& pair = random() % 2 == 0 ? a : b;
      const std::size_t index = random() % size;
      const bool on = random() % 3 != 0;
      pair.bits.Set(index, on);
      if (on) {
        pair.model.insert(index);
      } else {
        pair.model.erase(index);
      }
      EXPECT_EQ(pair.bits.Get(index), on);
    }
    // Sometimes a real subset, which is rare by chance.
    if (round % 3 == 0) {
      for (std::size_t index : a.model) {
        b.bits.Set(index);
        b.model.insert(index);
      }
    }
    ExpectSame(a);
    ExpectSame(b);

    const bool subset =
        std::includes(b.model.begin(), b.model.end(), a.model.begin(), a.model.end());
    EXPECT_EQ(a.bits.IsSubsetOf(b.bits), subset);
    EXPECT_EQ(a.bits.CheckedIsSubsetOf(b.bits).value(), subset);
    EXPECT_EQ(a.bits == b.bits, a.model == b.model);
    Pair difference(size);
    difference.bits = a.bits.Difference(b.bits).value();
    std::set_difference(a.model.begin(), a.model.end(), b.model.begin(), b.model.end(),
                        std::inserter(difference.model, difference.model.end()));
    ExpectSame(difference);
  }
}

TEST(FeatureSet, CopiesDoNotShareBits) {
  for (std::size_t size : {10u, 500u}) {
    FeatureSet one(size);
    FeatureSet two = one;
    two.Set(size - 1);
    EXPECT_TRUE(one.IsEmpty());
    EXPECT_FALSE(one == two);
  }
}

TEST(FeatureSet, SetsOfDifferentSizesCannotBeCombined) {
  const FeatureSet small(3);
  const FeatureSet large(9);
  EXPECT_EQ(small.Difference(large).error().message, "bitmap size mismatch: 3 != 9");
  EXPECT_EQ(small.CheckedIsSubsetOf(large).error().message, "bitmap size mismatch; 3 != 9");
  EXPECT_FALSE(small == large);
}

TEST(FeatureSetDeathTest, AnIndexOutOfRangeAborts) {
  FeatureSet set(3);
  EXPECT_DEATH(set.Set(3), "");
  EXPECT_DEATH(set.Get(3), "");
}

}  // namespace
}  // namespace drakkar::features
