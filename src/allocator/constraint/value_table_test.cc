#include "allocator/constraint/value_table.h"

#include <gtest/gtest.h>

#include <set>

namespace drakkar::allocator {
namespace {

using device::AttributeValue;
using device::VersionText;

TEST(ValueTable, WithoutListsAListOfAnyTypeIsNoValue) {
  ValueTable table;
  for (const AttributeValue& list :
       {AttributeValue(std::vector<std::int64_t>{1}), AttributeValue(std::vector<bool>{true}),
        AttributeValue(std::vector<std::string>{"a"}),
        AttributeValue(std::vector<VersionText>{{"1.0.0"}})}) {
    EXPECT_EQ(table.Intern(list, false), ValueTable::kNone) << list.index();
    EXPECT_GE(table.Intern(list, true), 0) << list.index();
  }
}

TEST(ValueTable, NothingAndAnEmptyListAreNoValues) {
  ValueTable table;
  EXPECT_EQ(table.Intern(std::monostate(), true), ValueTable::kNone);
  EXPECT_EQ(table.Intern(std::vector<std::string>(), true), ValueTable::kNone);
}

TEST(ValueTable, EveryValueOfEveryTypeHasItsOwnNumber) {
  ValueTable table;
  std::set<std::int32_t> numbers;
  const std::vector<AttributeValue> values = {std::int64_t{1},
                                              std::int64_t{2},
                                              true,
                                              false,
                                              std::string("1"),
                                              std::string("2"),
                                              VersionText{"1"},
                                              VersionText{"2"},
                                              std::vector<std::string>{"1", "2"}};
  for (const AttributeValue& value : values) {
    const std::int32_t number = table.Intern(value, true);
    EXPECT_TRUE(numbers.insert(number).second) << value.index();
    EXPECT_EQ(table.Intern(value, true), number) << value.index();
  }
}

TEST(ValueTable, AListIsTheSetOfItsElements) {
  ValueTable table;
  const std::int32_t two = table.Intern(std::vector<std::int64_t>{3, 5}, true);
  EXPECT_EQ(table.Intern(std::vector<std::int64_t>{5, 3, 5}, true), two);
  EXPECT_EQ(table.set(two).size(), 2u);
  const std::int32_t one = table.Intern(std::vector<std::int64_t>{5}, true);
  EXPECT_EQ(table.Intern(std::int64_t{5}, false), one);
  EXPECT_FALSE(AreDisjoint(table.set(one), table.set(two)));
  EXPECT_EQ(Intersect(table.set(one), table.set(two)), table.set(one));
  const std::int32_t other = table.Intern(std::vector<std::int64_t>{4}, true);
  EXPECT_TRUE(AreDisjoint(table.set(other), table.set(two)));
}

}  // namespace
}  // namespace drakkar::allocator
