#include <algorithm>
#include <set>

#include "base/text/text.h"
#include "cli/commands.h"
#include "cli/resource_names.h"

namespace drakkar::cli {
namespace {

// Whether resource types or object names follow the command.
bool TakesTypes(const Command& command) {
  return command.arguments.starts_with("TYPE");
}

std::vector<std::string> FlagWords(const Command& command) {
  std::vector<std::string> words = {"--help"};
  for (const Flag& flag : AllFlags(command)) {
    if (!flag.hidden) words.push_back("--" + flag.name);
  }
  return words;
}

// Flags that take the next word as their value.
std::vector<std::string> ValueFlags(const App& app) {
  std::set<std::string> words;
  for (const Command& command : app.commands()) {
    for (const Flag& flag : AllFlags(command)) {
      if (flag.type == FlagType::kBool || !flag.implied_value.empty()) continue;
      words.insert("--" + flag.name);
      if (flag.short_name != 0) words.insert(StrCat("-", flag.short_name));
    }
  }
  return {words.begin(), words.end()};
}

std::vector<std::string> FirstWords(const App& app) {
  std::set<std::string> words;
  for (const Command& command : app.commands()) {
    words.insert(command.name.substr(0, command.name.find(' ')));
  }
  return {words.begin(), words.end()};
}

// For bash and zsh; zsh can run bash completions.
std::string BashScript(const App& app) {
  const std::string& name = app.program();
  std::string out = StrCat(
      "# Completion for ", name, " in bash: source <(", name, " completion bash)\n", "_", name,
      "() {\n"
      "  local current=\"${COMP_WORDS[COMP_CWORD]}\" words=() word skip=\n"
      "  COMPREPLY=()\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    if [ -n \"$skip\" ]; then skip=; continue; fi\n"
      "    case \"$word\" in\n"
      "      ",
      Join(ValueFlags(app), "|"),
      ") skip=1 ;;\n"
      "      -*) ;;\n"
      "      *) words+=(\"$word\") ;;\n"
      "    esac\n"
      "  done\n"
      "  if [ -n \"$skip\" ]; then COMPREPLY=($(compgen -f -- \"$current\")); return; fi\n"
      "  local flags= types= next=\n"
      "  case \"${words[*]}\" in\n"
      "    '') next='",
      Join(FirstWords(app), " "), " help' ;;\n");
  // Longer names first, so that "image import" is matched before "image".
  std::vector<const Command*> commands;
  for (const Command& command : app.commands()) commands.push_back(&command);
  std::ranges::stable_sort(commands, std::greater<>(),
                           [](const Command* c) { return c->name.size(); });
  std::map<std::string, std::vector<std::string>> groups;
  for (const Command* command : commands) {
    if (const std::size_t space = command->name.find(' '); space != std::string::npos) {
      groups[command->name.substr(0, space)].push_back(command->name.substr(space + 1));
    }
    out += StrCat("    '", command->name, "'|'", command->name, " '*) flags='",
                  Join(FlagWords(*command), " "), "'", TakesTypes(*command) ? " types=1" : "",
                  " ;;\n");
  }
  for (const auto& [group, names] : groups) {
    out += StrCat("    '", group, "') next='", Join(names, " "), "' ;;\n");
  }
  out += StrCat(
      "  esac\n"
      "  case \"$current\" in\n"
      "    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$current\")); return ;;\n"
      "  esac\n"
      "  if [ -n \"$next\" ]; then COMPREPLY=($(compgen -W \"$next\" -- \"$current\")); return; "
      "fi\n"
      "  if [ \"${words[0]}\" = logs ]; then words=(logs pods); types=1; fi\n"
      "  if [ -n \"$types\" ] && [ ${#words[@]} -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W '",
      Join(AllTypeNames(), " "),
      "' -- \"$current\"))\n"
      "  elif [ -n \"$types\" ]; then\n"
      "    COMPREPLY=($(compgen -W \"$(",
      name,
      " get \"${words[1]}\" -o name 2>/dev/null | "
      "sed 's,.*/,,')\" -- \"$current\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -f -- \"$current\"))\n"
      "  fi\n"
      "}\n");
  return out;
}

std::string FishQuote(std::string_view text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string FishScript(const App& app) {
  const std::string& name = app.program();
  std::string out =
      StrCat("# Completion for ", name, " in fish: ", name, " completion fish | source\n");
  for (const Command& command : app.commands()) {
    const std::size_t space = command.name.find(' ');
    const std::string first = command.name.substr(0, space);
    const std::string seen = StrCat("'__fish_seen_subcommand_from ", first, "'");
    if (space == std::string::npos) {
      out += StrCat("complete -c ", name, " -n __fish_use_subcommand -xa ", first, " -d ",
                    FishQuote(command.summary), "\n");
    } else {
      out += StrCat("complete -c ", name, " -n __fish_use_subcommand -xa ", first, "\n");
      out += StrCat("complete -c ", name, " -n ", seen, " -xa ", command.name.substr(space + 1),
                    " -d ", FishQuote(command.summary), "\n");
    }
    for (const Flag& flag : AllFlags(command)) {
      if (flag.hidden) continue;
      const bool takes_value = flag.type != FlagType::kBool && flag.implied_value.empty();
      out += StrCat("complete -c ", name, " -n ", seen, " -l ", flag.name,
                    flag.short_name == 0 ? "" : StrCat(" -s ", flag.short_name),
                    takes_value ? " -r" : "", " -d ", FishQuote(flag.help), "\n");
    }
    if (TakesTypes(command)) {
      out += StrCat("complete -c ", name, " -n ", seen, " -xa '", Join(AllTypeNames(), " "), "'\n");
    }
  }
  return out;
}

}  // namespace

Command CompletionCommand(const App& app) {
  Command command;
  command.name = "completion";
  command.arguments = "bash|zsh|fish";
  command.summary = "Print a shell completion script";
  command.examples =
      "  # in ~/.bashrc\n"
      "  source <(drakkar completion bash)\n"
      "\n"
      "  # in ~/.zshrc\n"
      "  source <(drakkar completion zsh)\n"
      "\n"
      "  # in ~/.config/fish/config.fish\n"
      "  drakkar completion fish | source\n";
  command.section = "Other";
  command.min_arguments = 1;
  command.max_arguments = 1;
  command.run = [&app](const Arguments& arguments, Console& console) {
    const std::string& shell = arguments.positionals()[0];
    const std::string& name = app.program();
    if (shell == "bash") {
      console.Out(StrCat(BashScript(app), "complete -o default -F _", name, " ", name, "\n"));
    } else if (shell == "zsh") {
      console.Out(StrCat("autoload -U +X compinit && compinit\n",
                         "autoload -U +X bashcompinit && bashcompinit\n", BashScript(app),
                         "complete -o default -F _", name, " ", name, "\n"));
    } else if (shell == "fish") {
      console.Out(FishScript(app));
    } else {
      console.Error(StrCat("unknown shell ", Quote(shell), ": must be bash, zsh or fish"));
      return kExitUsage;
    }
    return kExitOk;
  };
  return command;
}

}  // namespace drakkar::cli
