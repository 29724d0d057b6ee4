#include "device/attribute.h"

#include <gtest/gtest.h>

namespace drakkar::device {
namespace {

TEST(FindAttribute, FallsBackToTheBareNameInTheDriversOwnDomainOnly) {
  const std::vector<Attribute> attributes = {
      {"both", std::int64_t{1}}, {"d.example/both", std::int64_t{2}}, {"model", std::string("x")}};
  EXPECT_EQ(*FindAttribute(attributes, "d.example", "d.example/model"),
            AttributeValue(std::string("x")));
  EXPECT_EQ(*FindAttribute(attributes, "d.example", "d.example/both"),
            AttributeValue(std::int64_t{2}));
  EXPECT_EQ(FindAttribute(attributes, "other.example", "d.example/model"), nullptr);
  EXPECT_EQ(FindAttribute(attributes, "d.example", "d.example/absent"), nullptr);
  EXPECT_NE(FindAttribute(attributes, "d.example", "model"), nullptr);
  EXPECT_EQ(FindAttribute(attributes, "d.example", "zzz"), nullptr);
}

}  // namespace
}  // namespace drakkar::device
