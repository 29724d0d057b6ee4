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
  std::vector<std::string> unknown;  // words that look like flags and are none
};

// Takes the words of a command line apart by the flags there are. Values are not looked at. An
// error is a flag without its value.
Result<ParsedWords> ParseWords(const std::vector<Flag>& flags,
                               const std::vector<std::string>& words);

}  // namespace drakkar::cli::internal
