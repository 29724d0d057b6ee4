#include "api/json/writer.h"

#include <gtest/gtest.h>

#include "api/tree/draft.h"

namespace drakkar::api {
namespace {

TEST(WriteJson, EscapesAsGoDoes) {
  const TreePtr tree = Draft("<a>&\"\\\n\x01\x7f é \xE2\x80\xA8\xE2\x80\xA9").Freeze();
  EXPECT_EQ(WriteJson(tree->root()),
            "\"\\u003ca\\u003e\\u0026\\\"\\\\\\n\\u0001\x7f é \\u2028\\u2029\"");
  EXPECT_EQ(WriteJson(tree->root(), {.escape_html = false}),
            "\"<a>&\\\"\\\\\\n\\u0001\x7f é \\u2028\\u2029\"");
}

TEST(WriteJson, WritesDoublesAsGoDoes) {
  const auto text = [](double value) { return WriteJson(Draft(value).Freeze()->root()); };
  EXPECT_EQ(text(1), "1");
  EXPECT_EQ(text(0.1), "0.1");
  EXPECT_EQ(text(-2.5e-7), "-2.5e-7");
  EXPECT_EQ(text(1e20), "100000000000000000000");
  EXPECT_EQ(text(1e21), "1e+21");
  EXPECT_EQ(text(1e-300), "1e-300");
  EXPECT_EQ(text(1e-6), "0.000001");
}

TEST(WriteJson, IndentsAndSortsAndLaysOutRaw) {
  const TreePtr tree = Draft::Map({{"b", Draft::Array({1, Draft::Object()})},
                                   {"a", Draft::Raw("{\"y\":[1, {}],\n\"x\":\"{,\\\"}\"}")}})
                           .Freeze();
  EXPECT_EQ(WriteJson(tree->root()), "{\"b\":[1,{}],\"a\":{\"y\":[1, {}],\n\"x\":\"{,\\\"}\"}}");
  EXPECT_EQ(WriteJson(tree->root(), {.indent = 2, .sort_members = true, .final_newline = true}),
            R"({
  "a": {
    "y": [
      1,
      {}
    ],
    "x": "{,\"}"
  },
  "b": [
    1,
    {}
  ]
}
)");
}

}  // namespace
}  // namespace drakkar::api
