#include "api/tree/member_index.h"

#include <gtest/gtest.h>

#include <string>

namespace drakkar::api {
namespace {

TEST(MemberIndex, FindsMembersAndAddsMissingOnes) {
  Draft object = Draft::Map({{"a", 1}, {"b", 2}});
  MemberIndex index(object);
  index.Entry("b") = 3;
  {
    const std::string name = "c";
    index.Entry(name) = 4;
  }
  EXPECT_EQ(index.Entry("c").integer(), 4);
  for (int i = 0; i < 1'000; ++i) index.Entry("n" + std::to_string(i)) = i;
  EXPECT_EQ(index.Entry("n7").integer(), 7);
  EXPECT_EQ(index.Entry("a").integer(), 1);
  EXPECT_EQ(object.size(), 1'003u);
}

}  // namespace
}  // namespace drakkar::api
