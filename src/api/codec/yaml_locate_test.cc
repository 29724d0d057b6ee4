#include "api/codec/yaml_locate.h"

#include <gtest/gtest.h>

namespace drakkar::api {
namespace {

constexpr char kText[] =
    "# devices\n"
    "count: 4\n"
    "attributes:\n"
    "  model: x\n"
    "devices:\n"
    "  - name: a\n"
    "  - name: b\n"
    "    taints: [{key: k}, {key: l}]\n";

TEST(LocateYaml, FindsTheKeyOfAMember) {
  EXPECT_EQ(LocateYaml(kText, {"count"}), (YamlPosition{2, 1}));
  EXPECT_EQ(LocateYaml(kText, {"attributes", "model"}), (YamlPosition{4, 3}));
  EXPECT_EQ(LocateYaml(kText, {"devices", "1", "taints"}), (YamlPosition{8, 5}));
}

TEST(LocateYaml, FindsElementsOfLists) {
  EXPECT_EQ(LocateYaml(kText, {"devices", "1", "taints", "1", "key"}), (YamlPosition{8, 25}));
}

TEST(LocateYaml, FindsNothingWhereThereIsNothing) {
  EXPECT_EQ(LocateYaml(kText, {"devices", "2"}), std::nullopt);
  EXPECT_EQ(LocateYaml(kText, {"count", "x"}), std::nullopt);
  EXPECT_EQ(LocateYaml(kText, {"devices", "x"}), std::nullopt);
  EXPECT_EQ(LocateYaml("", {"x"}), std::nullopt);
  EXPECT_EQ(LocateYaml("a: [", {"x"}), std::nullopt);
}

}  // namespace
}  // namespace drakkar::api
