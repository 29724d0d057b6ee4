#include "dashboard/page/page.h"

#include <gtest/gtest.h>

namespace drakkar::dashboard {
namespace {

TEST(Page, FindsFilesByTheirExactPath) {
  const PageFile* page = FindPageFile("/");
  ASSERT_NE(page, nullptr);
  EXPECT_EQ(page->content_type, "text/html; charset=utf-8");
  for (const char* path :
       {"", "//", "/../etc/passwd", "/app.js/", "/index.html", "app.js", "/.", "/%2e%2e/app.js"}) {
    EXPECT_EQ(FindPageFile(path), nullptr) << path;
  }
}

TEST(Page, LoadsNothingFromElsewhere) {
  for (const char* path : {"/", "/app.js", "/app.css"}) {
    const PageFile* file = FindPageFile(path);
    if (file == nullptr) continue;  // built without npm
    for (const char* text :
         {"https://", "//cdn", "@import", "eval(", "new Function", "innerHTML"}) {
      EXPECT_EQ(file->content.find(text), std::string_view::npos) << path << ": " << text;
    }
  }
}

}  // namespace
}  // namespace drakkar::dashboard
