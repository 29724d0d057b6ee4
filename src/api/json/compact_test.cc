#include "api/json/compact.h"

#include <gtest/gtest.h>

namespace drakkar::api {
namespace {

TEST(CompactJson, DropsSpacesOutsideStringsOnly) {
  EXPECT_EQ(CompactJson("{\"a\": [1,\n\t\"b c\", {\"d \": null}]}\r\n"),
            "{\"a\":[1,\"b c\",{\"d \":null}]}");
  EXPECT_EQ(CompactJson(R"( {"a": "\" b \\", "c": 1} )"), R"({"a":"\" b \\","c":1})");
}

TEST(CompactJson, LeavesCompactTextAlone) {
  for (const std::string_view text : {"", "null", R"({"f:a":{"k:{\"x\":\"1 2\"}":{}}})", "\"\\"}) {
    EXPECT_EQ(CompactJson(text), text);
  }
}

}  // namespace
}  // namespace drakkar::api
