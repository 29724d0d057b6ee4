#pragma once

#include <string_view>

namespace drakkar::dashboard {

// A file of the page, embedded in the binary at build time (web/dashboard).
struct PageFile {
  std::string_view path;  // "/app.js"
  std::string_view content_type;
  std::string_view content;
};

// The file with exactly this path, or null. "/" is the page itself.
const PageFile* FindPageFile(std::string_view path);

}  // namespace drakkar::dashboard
