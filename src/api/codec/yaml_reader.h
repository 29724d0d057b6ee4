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
  // Limit for what aliases may expand to, in bytes of the trees: a few lines of anchors can stand
  // for gigabytes.
  std::size_t max_expanded_bytes = std::size_t{64} << 20;
  std::size_t max_documents = 100'000;
  // Receives duplicate keys, at most kMaxDuplicates of them; the last one then counts. If null, a
  // duplicate is an error.
  std::vector<std::string>* duplicates = nullptr;
  static constexpr std::size_t kMaxDuplicates = 100;
};

// Reads a stream of YAML documents (including JSON, which is YAML) as kubectl does: empty documents
// are skipped; anchors, aliases and << are resolved; keys are texts. Invalid YAML, a duplicate key
// (see the options) and exceeding a limit are errors that end in "line 3, column 7".
Result<std::vector<TreePtr>> ParseYaml(std::string_view text, const YamlReadOptions& options = {});

}  // namespace drakkar::api
