#include "base/container/indexed_map.h"

#include <gtest/gtest.h>

namespace drakkar {
namespace {

TEST(IndexedMap, FindsWhatWasPutAndWalksInOrder) {
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

TEST(IndexedMap, AnErasedKeyIsGoneAndMayComeBack) {
  IndexedMap<std::string> map;
  const std::string key = "a key that is longer than a small string";
  map[key] = "first";
  EXPECT_TRUE(map.Erase(map.ordered().begin()->first));  // the key lies in the entry itself
  EXPECT_FALSE(map.Erase(key));
  EXPECT_EQ(map.size(), 0u);
  EXPECT_EQ(map[key], "");
  EXPECT_EQ(map.size(), 1u);
}

}  // namespace
}  // namespace drakkar
