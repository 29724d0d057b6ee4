#include <algorithm>

#include "api/meta/time.h"
#include "base/result/check.h"
#include "base/text/text.h"
#include "cli/command.h"
#include "cli/internal/parser.h"

namespace drakkar::cli {
namespace {

const std::vector<Flag>& ClusterFlags() {
  static const auto* const kFlags = new std::vector<Flag>{
      {"kubeconfig", 0, FlagType::kString,
       "File with the server's address and credentials. If not given: $KUBECONFIG, then "
       "~/.kube/config, then /var/lib/drakkar/admin.kubeconfig.",
       "", "FILE"},
      {"context", 0, FlagType::kString, "Use this context instead of the kubeconfig's current one.",
       "", "NAME"},
      {"namespace", 'n', FlagType::kString, "Use this namespace instead of the context's.", "",
       "NAME"},
      {"progress", 0, FlagType::kBool,
       "Report progress if a call takes longer than two seconds, even if standard error is not a "
       "terminal.",
       "false"},
      {"v", 'v', FlagType::kInt, "Log level; from 6 on, print each request to standard error.", "0",
       "LEVEL"},
  };
  return *kFlags;
}

const Flag kHelpFlag{"help", 'h', FlagType::kBool, "Show this help.", "false"};

std::vector<Flag> FlagsWithHelp(const Command& command) {
  std::vector<Flag> flags = AllFlags(command);
  flags.push_back(kHelpFlag);
  return flags;
}

Result<Duration> ReadDuration(const std::string& text) {
  if (std::optional<std::int64_t> seconds = ParseInt64(text)) {
    return Duration(std::chrono::seconds(*seconds));
  }
  return api::ParseDuration(text);
}

std::optional<bool> ReadBool(std::string_view text) {
  const std::string lower = ToLower(text);
  if (lower == "true" || lower == "1" || lower == "t") return true;
  if (lower == "false" || lower == "0" || lower == "f") return false;
  return std::nullopt;
}

// Returns what is wrong with `value`, or an empty string.
std::string WrongValue(const Flag& flag, const std::string& value) {
  const std::string start = StrCat("invalid value ", Quote(value), " for --", flag.name, ": ");
  switch (flag.type) {
    case FlagType::kInt:
      return ParseInt64(value) ? "" : start + "must be an integer";
    case FlagType::kBool:
      return ReadBool(value) ? "" : start + "must be true or false";
    case FlagType::kDuration:
      return ReadDuration(value).ok() ? "" : start + "must be a duration such as 30s, 5m or 1h";
    case FlagType::kString:
    case FlagType::kRepeated:
      return "";
  }
  return "";
}

// Breaks `text` into lines of at most `width` characters, each after `indent` spaces.
std::string Wrap(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = 0;
  for (std::string_view word : Split(text, ' ')) {
    if (word.empty()) continue;
    if (column > 0 && column + 1 + word.size() > width) {
      out += StrCat("\n", std::string(indent, ' '));
      column = 0;
    }
    if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

constexpr std::size_t kHelpWidth = 96;

void AppendFlags(std::string& out, const std::vector<Flag>& flags) {
  std::vector<std::pair<std::string, const Flag*>> rows;
  std::size_t width = 0;
  for (const Flag& flag : flags) {
    if (flag.hidden) continue;
    std::string left = flag.short_name != 0 ? StrCat("-", flag.short_name, ", ") : "    ";
    left += StrCat("--", flag.name);
    const std::string placeholder = flag.placeholder.empty() ? "VALUE" : flag.placeholder;
    if (!flag.implied_value.empty()) {
      left += StrCat("[=", placeholder, "]");
    } else if (flag.type != FlagType::kBool) {
      left += StrCat(" ", placeholder);
    }
    width = std::max(width, left.size());
    rows.emplace_back(std::move(left), &flag);
  }
  for (const auto& [left, flag] : rows) {
    std::string help = flag->help;
    if (!flag->default_value.empty() &&
        !(flag->type == FlagType::kBool && flag->default_value == "false")) {
      help += StrCat(" (default: ", flag->default_value, ")");
    }
    out += StrCat("  ", left, std::string(width - left.size() + 2, ' '),
                  Wrap(help, width + 4, kHelpWidth - width - 4), "\n");
  }
}

// Insertions, deletions, substitutions and swaps of neighbours.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1,
                             cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

const std::string& Arguments::Text(std::string_view flag) const {
  CHECK(types_.contains(flag));
  if (const auto given = given_.find(flag); given != given_.end()) return given->second.back();
  return defaults_.find(flag)->second;
}

std::int64_t Arguments::Int(std::string_view flag) const {
  return ParseInt64(Text(flag)).value_or(0);
}

bool Arguments::Bool(std::string_view flag) const {
  return ReadBool(Text(flag)).value_or(false);
}

Duration Arguments::Time(std::string_view flag) const {
  const std::string& text = Text(flag);
  return text.empty() ? Duration{0} : ReadDuration(text).value();
}

std::vector<std::string> Arguments::List(std::string_view flag) const {
  CHECK(types_.contains(flag));
  const auto given = given_.find(flag);
  return given == given_.end() ? std::vector<std::string>() : given->second;
}

std::vector<Flag> AllFlags(const Command& command) {
  std::vector<Flag> flags = command.flags;
  if (command.group == FlagGroup::kCluster) {
    flags.insert(flags.end(), ClusterFlags().begin(), ClusterFlags().end());
  }
  return flags;
}

std::string Nearest(std::string_view word, const std::vector<std::string>& candidates) {
  // With more than a third of its letters wrong it is another word.
  const std::size_t limit = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::size_t best = limit;
  std::string nearest;
  const std::string lower = ToLower(word);
  for (const std::string& candidate : candidates) {
    const std::size_t distance = EditDistance(lower, ToLower(candidate));
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

void App::Add(Command command) {
  CHECK(std::ranges::find(commands_, command.name, &Command::name) == commands_.end());
  commands_.push_back(std::move(command));
}

const Command* App::FindCommand(const std::vector<std::string>& words, std::size_t& used) const {
  const Command* found = nullptr;
  std::string name;
  for (std::size_t i = 0; i < words.size() && i < 3; ++i) {
    name += (i == 0 ? "" : " ") + words[i];
    const auto command = std::ranges::find(commands_, name, &Command::name);
    if (command == commands_.end()) continue;
    found = &*command;
    used = i + 1;
  }
  return found;
}

int App::ReportUnknownCommand(const std::vector<std::string>& words, Console& console) const {
  std::vector<std::string> names;
  std::string group;  // the commands of the group, if only its name was given
  for (const Command& command : commands_) {
    names.push_back(command.name);
    if (command.name.starts_with(words[0] + " "))
      group += (group.empty() ? "" : ", ") + command.name;
  }
  if (!group.empty() && words.size() == 1) {
    console.Error(StrCat(Quote(words[0]), " needs a subcommand: ", group));
    return kExitUsage;
  }
  const std::string asked =
      group.empty() || words.size() < 2 ? words[0] : StrCat(words[0], " ", words[1]);
  const std::string nearest = Nearest(asked, names);
  console.Error(
      StrCat("unknown command ", Quote(asked),
             nearest.empty() ? "" : StrCat(", did you mean ", Quote(nearest), "?"),
             nearest.empty() ? StrCat(": `", program_, " --help` lists the commands") : ""));
  return kExitUsage;
}

Result<Arguments> App::Parse(const Command& command, const std::vector<std::string>& words) const {
  const std::vector<Flag> flags = FlagsWithHelp(command);
  ASSIGN_OR_RETURN(internal::ParsedWords parsed, internal::ParseWords(flags, words));
  Arguments arguments;
  for (const Flag& flag : flags) {
    arguments.types_[flag.name] = flag.type;
    arguments.defaults_[flag.name] = flag.default_value;
  }
  if (parsed.given.contains("help")) {
    arguments.given_ = std::move(parsed.given);
    return arguments;
  }
  if (!parsed.unknown.empty()) {
    std::string word = parsed.unknown.front();
    word = word.substr(0, word.find('='));
    std::vector<std::string> names;
    for (const Flag& flag : flags) names.push_back("--" + flag.name);
    const std::string nearest = word.starts_with("--") ? Nearest(word, names) : "";
    return InvalidArgument(StrCat(
        "unknown flag ", word, " for ", Quote(command.name),
        nearest.empty() ? StrCat(": `", program_, " ", command.name, " --help` lists the flags")
                        : StrCat(", did you mean ", nearest, "?")));
  }
  for (const Flag& flag : flags) {
    const auto given = parsed.given.find(flag.name);
    if (given == parsed.given.end()) continue;
    for (const std::string& value : given->second) {
      if (std::string wrong = WrongValue(flag, value); !wrong.empty())
        return InvalidArgument(wrong);
    }
  }
  const std::size_t count = parsed.positionals.size();
  const std::string usage = StrCat("`", program_, " ", command.name,
                                   command.arguments.empty() ? "" : " ", command.arguments, "`");
  if (count < command.min_arguments) {
    return InvalidArgument(StrCat(Quote(command.name), " needs more arguments; usage: ", usage));
  }
  if (count > command.max_arguments) {
    return InvalidArgument(StrCat("unexpected argument ",
                                  Quote(parsed.positionals[command.max_arguments]), " for ",
                                  Quote(command.name), ": ", usage));
  }
  arguments.positionals_ = std::move(parsed.positionals);
  arguments.given_ = std::move(parsed.given);
  return arguments;
}

int App::Run(const std::vector<std::string>& all_words, Console& console) const {
  // Cluster flags may precede the command, as in `-n x get pods`. Move them behind it.
  std::vector<std::string> words = all_words;
  std::vector<std::string> leading;
  while (!words.empty() && words[0].size() > 1 && words[0][0] == '-') {
    if (words[0] == "--help" || words[0] == "-h") {
      console.Out(Help());
      return kExitOk;
    }
    if (words[0] == "--version") words[0] = "version";
    if (words[0][0] != '-') break;
    std::string name = words[0].substr(0, words[0].find('='));
    const bool has_value = name.size() != words[0].size();
    const auto flag = std::ranges::find_if(ClusterFlags(), [&](const Flag& f) {
      return name == "--" + f.name || (f.short_name != 0 && name == StrCat("-", f.short_name));
    });
    if (flag == ClusterFlags().end()) {
      console.Error(StrCat("unknown flag ", name, ": give a command first; `", program_,
                           " --help` lists the commands"));
      return kExitUsage;
    }
    const std::size_t taken =
        !has_value && flag->type != FlagType::kBool && words.size() > 1 ? 2 : 1;
    leading.insert(leading.end(), words.begin(),
                   words.begin() + static_cast<std::ptrdiff_t>(taken));
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(taken));
  }
  if (words.empty()) {
    console.Out(Help());
    return leading.empty() ? kExitOk : kExitUsage;
  }
  const bool asks_help = words[0] == "help";
  if (asks_help) words.erase(words.begin());
  std::size_t used = 0;
  const Command* command = FindCommand(words, used);
  if (command == nullptr) {
    if (asks_help && words.empty()) {
      console.Out(Help());
      return kExitOk;
    }
    return ReportUnknownCommand(words, console);
  }
  if (asks_help) {
    console.Out(HelpFor(*command));
    return kExitOk;
  }
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(used));
  words.insert(words.begin(), leading.begin(), leading.end());
  Result<Arguments> arguments = Parse(*command, words);
  if (!arguments.ok()) {
    console.Error(arguments.error().message);
    return kExitUsage;
  }
  if (arguments->Bool("help")) {
    console.Out(HelpFor(*command));
    return kExitOk;
  }
  return command->run(*arguments, console);
}

std::string App::Help() const {
  std::string out = StrCat(summary_, "\n\nUsage:\n  ", program_, " COMMAND [ARGUMENTS] [FLAGS]\n");
  std::vector<std::string> sections;
  std::size_t width = 0;
  for (const Command& command : commands_) {
    if (std::ranges::find(sections, command.section) == sections.end()) {
      sections.push_back(command.section);
    }
    width = std::max(width, command.name.size());
  }
  for (const std::string& section : sections) {
    out += StrCat("\n", section.empty() ? "Commands" : section, ":\n");
    for (const Command& command : commands_) {
      if (command.section != section) continue;
      out += StrCat("  ", command.name, std::string(width - command.name.size() + 2, ' '),
                    command.summary, "\n");
    }
  }
  out += StrCat("\n`", program_, " COMMAND --help` describes a command and shows examples.\n");
  return out;
}

std::string App::HelpFor(const Command& command) const {
  std::string out = StrCat(command.summary, "\n\nUsage:\n  ", program_, " ", command.name,
                           command.arguments.empty() ? "" : " ", command.arguments, " [FLAGS]\n");
  if (!command.help.empty()) {
    out += "\n";
    for (std::string_view paragraph : Split(command.help, '\n')) {
      out += StrCat(Wrap(paragraph, 0, kHelpWidth), "\n");
    }
  }
  if (!command.examples.empty()) out += StrCat("\nExamples:\n", command.examples);
  std::vector<Flag> own = command.flags;
  own.push_back(kHelpFlag);
  out += "\nFlags:\n";
  AppendFlags(out, own);
  if (command.group == FlagGroup::kCluster) {
    out += "\nFlags for all commands that talk to a server:\n";
    AppendFlags(out, ClusterFlags());
  }
  return out;
}

}  // namespace drakkar::cli
