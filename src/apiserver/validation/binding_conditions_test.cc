#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "apiserver/validation/resource_rules.h"

namespace drakkar::apiserver {
namespace {

std::size_t Errors(std::string_view device) {
  Findings found;
  const auto tree = api::ParseJson(device);
  CheckBindingConditions(found, api::FieldPath("d"), (*tree)->root());
  return found.list().size();
}

TEST(BindingConditions, EitherListAloneIsValid) {
  EXPECT_EQ(Errors(R"({"bindingConditions":["a"]})"), 0u);
  EXPECT_EQ(Errors(R"({"bindingFailureConditions":["b"]})"), 0u);
  EXPECT_EQ(Errors(R"({"bindingConditions":["a"],"bindingFailureConditions":["b"]})"), 0u);
}

TEST(BindingConditions, OverlapAndDuplicatesAreErrors) {
  EXPECT_EQ(Errors(R"({"bindingConditions":["a"],"bindingFailureConditions":["a"]})"), 1u);
  EXPECT_EQ(Errors(R"({"bindingConditions":["a","a"]})"), 1u);
  EXPECT_EQ(Errors(R"({"bindingFailureConditions":["b","b"]})"), 1u);
}

TEST(BindingConditions, EachListHasALimit) {
  EXPECT_EQ(Errors(R"({"bindingConditions":["a","b","c","d"]})"), 0u);
  EXPECT_EQ(Errors(R"({"bindingConditions":["a","b","c","d","e"]})"), 1u);
}

}  // namespace
}  // namespace drakkar::apiserver
