#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "api/json/reader.h"
#include "base/env/file_system.h"

namespace drakkar::api {

// What a test that needs the vectors says when it skips.
inline constexpr char kNoVectors[] = "no conformance vectors: set DRAKKAR_VECTORS";

// Loads a file of conformance vectors from DRAKKAR_VECTORS, default ../shared/vectors beside the
// source root. Null if the vectors are missing; the test then skips.
inline TreePtr LoadVectors(std::string_view name) {
  const char* root = std::getenv("DRAKKAR_VECTORS");
  const std::string path =
      std::string(root != nullptr ? root : "../shared/vectors") + "/" + std::string(name);
  const auto text = RealFileSystem().ReadFile(path);
  if (!text.ok()) return nullptr;
  auto tree = ParseJson(*text);
  return tree.ok() ? *tree : nullptr;
}

}  // namespace drakkar::api
