#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::api {

struct YamlReadOptions {
  int max_depth = 100;
  std::size_t max_size_bytes = std::size_t{64} << 20;
  // What aliases may make of the text, counted in bytes of the trees: a few lines of anchors can
  // stand for gigabytes.
  std::size_t max_expanded_bytes = std::size_t{64} << 20;
  std::size_t max_documents = 100'000;
  // Where a key that comes twice is told, at most kMaxDuplicates of them: the last one then counts.
  // Null: it is an error.
  std::vector<std::string>* duplicates = nullptr;
  static constexpr std::size_t kMaxDuplicates = 100;
};

// Reads a stream of YAML documents (JSON too, which is YAML) as kubectl does: documents without
// content are left out; anchors, aliases and << are resolved; keys are texts. A key that comes
// twice (see the options), a depth or size beyond the options, or text that is no YAML is an error
// that ends in "line 3, column 7".
Result<std::vector<TreePtr>> ParseYaml(std::string_view text, const YamlReadOptions& options = {});

}  // namespace drakkar::api
