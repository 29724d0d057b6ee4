#include "controllers/job/index_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace drakkar::controllers {
namespace {

TEST(IndexSet, ReadsAndWritesTheFormOfAStatus) {
  EXPECT_EQ(IndexSet::Parse("0,2-5,7", 100).ToString(), "0,2-5,7");
  EXPECT_EQ(IndexSet::Parse("3,4", 100).ToString(), "3,4");
  EXPECT_EQ(IndexSet::Parse("3-4,5", 100).ToString(), "3-5");
  EXPECT_EQ(IndexSet::Parse("0-9", 5).ToString(), "0-4") << "no more than there are";
  EXPECT_EQ(IndexSet::Parse("x,1,-2,5-3,4-", 100).ToString(), "1");
  EXPECT_EQ(IndexSet::Parse("", 100).size(), 0);
}

TEST(IndexSet, BehavesLikeASetOfNumbers) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    IndexSet set, other;
    std::set<std::int64_t> model, other_model;
    for (int i = 0; i < 40; ++i) {
      const auto index = static_cast<std::int64_t>(random() % 60);
      set.Add(index);
      model.insert(index);
      const auto second = static_cast<std::int64_t>(random() % 60);
      other.Add(second);
      other_model.insert(second);
    }
    for (std::int64_t i = 0; i < 60; ++i) ASSERT_EQ(set.Has(i), model.contains(i)) << i;
    ASSERT_EQ(set.size(), static_cast<std::int64_t>(model.size()));
    ASSERT_EQ(IndexSet::Parse(set.ToString(), 60).ToString(), set.ToString());
    std::int64_t common = 0;
    for (std::int64_t i : model) common += other_model.contains(i);
    ASSERT_EQ(set.Common(other), common);
    std::vector<std::int64_t> missing;
    for (std::int64_t i = 0; i < 55 && missing.size() < 8; ++i) {
      if (!model.contains(i)) missing.push_back(i);
    }
    ASSERT_EQ(set.FirstMissing(8, 55), missing);
    set.AddAll(other);
    model.insert(other_model.begin(), other_model.end());
    ASSERT_EQ(set.size(), static_cast<std::int64_t>(model.size()));
  }
}

}  // namespace
}  // namespace drakkar::controllers
