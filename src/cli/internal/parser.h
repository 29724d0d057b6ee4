#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result/result.h"
#include "cli/command.h"

namespace drakkar::cli::internal {

struct ParsedWords {
  std::vector<std::string> positionals;
  std::map<std::string, std::vector<std::string>, std::less<>> given;  // by flag name
  std::vector<std::string> unknown;  // words that look like flags but are not
};

// Splits a command line according to the known flags, without checking values. Fails if a flag
// lacks its value.
Result<ParsedWords> ParseWords(const std::vector<Flag>& flags,
                               const std::vector<std::string>& words);

}  // namespace drakkar::cli::internal
