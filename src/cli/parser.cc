// The only file that includes CLI11, because it takes seconds to compile.
#include <CLI/CLI.hpp>

#include "base/text/text.h"
#include "cli/internal/parser.h"

namespace drakkar::cli::internal {
namespace {

bool IsSwitch(const Flag& flag) {
  return flag.type == FlagType::kBool || !flag.implied_value.empty();
}

const Flag* FindShort(const std::vector<Flag>& flags, char name) {
  for (const Flag& flag : flags) {
    if (flag.short_name == name) return &flag;
  }
  return nullptr;
}

// CLI11 reads "-o=wide" as the value "=wide", and "--output=" as a flag without a value. Rewrite
// such words into a form that it parses as other tools do.
std::vector<std::string> Normalize(const std::vector<Flag>& flags,
                                   const std::vector<std::string>& words) {
  std::vector<std::string> normal;
  bool only_positionals = false;
  for (const std::string& word : words) {
    if (word == "--") only_positionals = true;
    if (!only_positionals && word.size() > 3 && word[0] == '-' && word[1] != '-' &&
        word[2] == '=') {
      if (const Flag* flag = FindShort(flags, word[1])) {
        normal.push_back(StrCat("--", flag->name, word.substr(2)));
        continue;
      }
    }
    if (!only_positionals && word.starts_with("--") && word.find('=') == word.size() - 1) {
      normal.push_back(word.substr(0, word.size() - 1));
      normal.emplace_back();
      continue;
    }
    normal.push_back(word);
  }
  return normal;
}

}  // namespace

Result<ParsedWords> ParseWords(const std::vector<Flag>& flags,
                               const std::vector<std::string>& words) {
  ParsedWords parsed;
  CLI::App parser;
  parser.set_help_flag();
  parser.allow_extras();
  std::vector<std::pair<const Flag*, CLI::Option*>> options;
  try {
    for (const Flag& flag : flags) {
      std::string names = StrCat("--", flag.name);
      if (flag.short_name != 0) names += StrCat(",-", flag.short_name);
      CLI::Option* option = IsSwitch(flag) ? parser.add_flag(names)
                                           : parser.add_option(names)->expected(1)->type_size(1);
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      if (!IsSwitch(flag)) option->allow_extra_args(false);
      options.emplace_back(&flag, option);
    }
    std::vector<std::string> normal = Normalize(flags, words);
    std::reverse(normal.begin(), normal.end());  // CLI11 expects the words in reverse order
    parser.parse(std::move(normal));
  } catch (const CLI::ArgumentMismatch& mismatch) {
    for (const auto& [flag, option] : options) {
      // "--file: 1 required TEXT missing"
      const std::string_view what = mismatch.what();
      if (what.starts_with(option->get_name() + ":")) {
        return InvalidArgument(StrCat("flag --", flag->name, " needs a value"));
      }
    }
    return InvalidArgument(mismatch.what());
  } catch (const CLI::Error& error) {
    return InvalidArgument(error.what());
  }
  for (const auto& [flag, option] : options) {
    if (option->count() == 0) continue;
    for (const std::string& value : option->results()) {
      parsed.given[flag->name].push_back(
          IsSwitch(*flag) && value == "true" && !flag->implied_value.empty() ? flag->implied_value
                                                                             : value);
    }
  }
  bool only_positionals = false;
  for (const std::string& word : parser.remaining(false)) {
    if (!only_positionals && word == "--") {
      only_positionals = true;
    } else if (!only_positionals && word.size() > 1 && word[0] == '-' &&
               !(word[1] >= '0' && word[1] <= '9')) {
      parsed.unknown.push_back(word);
    } else {
      parsed.positionals.push_back(word);
    }
  }
  return parsed;
}

}  // namespace drakkar::cli::internal
