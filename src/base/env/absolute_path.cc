#include "base/env/absolute_path.h"

#include <filesystem>
#include <system_error>

namespace drakkar {

std::string AbsolutePath(const std::string& path) {
  if (path.empty()) return path;
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::absolute(path, ignored);
  std::filesystem::path found = std::filesystem::weakly_canonical(whole, ignored);
  if (found.empty()) found = whole.lexically_normal();
  std::string text = found.string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace drakkar
