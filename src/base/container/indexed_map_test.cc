#include "base/container/indexed_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace drakkar {
namespace {

TEST(IndexedMap, FindsEntriesAndIteratesInOrder) {
  IndexedMap<int> map;
  map["default/b"] = 2;
  map["default/a"] = 1;
  map["default/c"] = 3;
  map["default/b"] = 5;
  ASSERT_NE(map.Find("default/b"), nullptr);
  EXPECT_EQ(*map.Find("default/b"), 5);
  EXPECT_EQ(map.Find("default/d"), nullptr);
  std::string keys;
  for (const auto& [key, value] : map.ordered()) keys += key.back();
  EXPECT_EQ(keys, "abc");
}

TEST(IndexedMap, AnErasedKeyCanBeInsertedAgain) {
  IndexedMap<std::string> map;
  const std::string key = "a key that is longer than a small string";
  map[key] = "first";
  EXPECT_TRUE(map.Erase(map.ordered().begin()->first));  // the key is part of the entry itself
  EXPECT_FALSE(map.Erase(key));
  EXPECT_EQ(map.size(), 0u);
  EXPECT_EQ(map[key], "");
  EXPECT_EQ(map.size(), 1u);
}

TEST(IndexedMap, EntriesDoNotMoveWhenTheyAreOrdered) {
  IndexedMap<int> map;
  int* const second = &(map["b"] = 2);
  map["a"] = 1;
  map["c"] = 3;
  EXPECT_EQ(map.ordered().size(), 3u);
  EXPECT_EQ(map.Find("b"), second);
  EXPECT_EQ(&map.ordered().find("b")->second, second);
}

TEST(IndexedMap, BehavesLikeStdMapWheneverItIsIterated) {
  std::mt19937 random(7);
  IndexedMap<std::size_t> map;
  std::map<std::string, std::size_t, std::less<>> model;
  for (int step = 0; step < 20'000; ++step) {
    const std::string key = "default/an object with a long name " + std::to_string(random() % 200);
    if (random() % 2 == 0) {
      const std::size_t value = random() % 1'000;
      map[key] = value;
      model[key] = value;
    } else {
      EXPECT_EQ(map.Erase(key), model.erase(key) == 1);
    }
    ASSERT_EQ(map.size(), model.size());
    const std::size_t* found = map.Find(key);
    ASSERT_EQ(found != nullptr, model.contains(key));
    if (random() % 50 == 0) {
      ASSERT_EQ(map.ordered(), model);
    }
  }
}

}  // namespace
}  // namespace drakkar
