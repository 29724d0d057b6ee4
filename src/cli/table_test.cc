#include "cli/table.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"

namespace drakkar::cli {
namespace {

constexpr std::string_view kTable = R"({"kind":"Table",
  "columnDefinitions":[{"name":"Name","format":"name","priority":0},{"name":"Count","priority":0},
                       {"name":"Node","priority":1}],
  "rows":[{"cells":["a",3,null],"object":{"metadata":{"namespace":"x","labels":{"b":"2","a":"1"}}}},
          {"cells":["longer","first\nsecond","n"],"object":{"metadata":{"namespace":"y"}}}]})";

class TableTest : public ::testing::Test {
 protected:
  std::string Print(TableOptions options, const std::vector<std::size_t>& order = {}) {
    return TablePrinter(std::move(options)).Print(tree_->root(), order);
  }
  api::TreePtr tree_ = api::ParseJson(kTable).value();
};

TEST_F(TableTest, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(Print({}), "NAME     COUNT\na        3\nlonger   first...\n");
}

TEST_F(TableTest, WideShowsAllColumns) {
  EXPECT_EQ(Print({.wide = true}),
            "NAME     COUNT      NODE\na        3          <none>\nlonger   first...   n\n");
}

TEST_F(TableTest, NamespacesLabelsAndPrefixesAreAdded) {
  EXPECT_EQ(
      Print({.no_headers = true, .with_namespace = true, .show_labels = true, .name_prefix = "p/"}),
      "x   p/a        3          a=1,b=2\ny   p/longer   first...   <none>\n");
}

TEST_F(TableTest, ControlCharactersAreShownAndNotSent) {
  std::vector<std::size_t> widths;
  EXPECT_EQ(LayOut({{"a\x1b[2Jb", "c\td"},
                    {"e\rf",
                     "\xc2\x9b"
                     "31m"}},
                   widths),
            "a^[[2Jb   c^Id\ne^Mf      ?31m\n");
}

TEST_F(TableTest, RowsAreInTheGivenOrder) {
  EXPECT_EQ(Print({.no_headers = true}, {1, 0}), "longer   first...\na        3\n");
}

TEST_F(TableTest, LaterRowsKeepTheColumnsOfTheFirst) {
  TablePrinter printer({});
  printer.Print(tree_->root());
  const api::TreePtr later =
      api::ParseJson(R"({"kind":"Table","rows":[{"cells":["b",4,"n"]}]})").value();
  EXPECT_EQ(printer.Print(later->root()), "b        4\n");
}

TEST_F(TableTest, NonAsciiCharactersCountAsOneColumn) {
  std::vector<std::size_t> widths;
  EXPECT_EQ(LayOut({{"\xC3\xA9", "x"}, {"ab", "y"}}, widths), "\xC3\xA9    x\nab   y\n");
}

}  // namespace
}  // namespace drakkar::cli
