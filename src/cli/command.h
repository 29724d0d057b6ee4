#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/env/clock.h"
#include "base/result/result.h"
#include "cli/console.h"

namespace drakkar::cli {

enum class FlagType {
  kString,
  kInt,
  kBool,      // --wait, --wait=false
  kDuration,  // "30s", "5m", "1h30m"; a bare number is seconds
  kRepeated,  // may come more than once
};

struct Flag {
  std::string name;  // without dashes
  char short_name = 0;
  FlagType type = FlagType::kString;
  std::string help;           // one sentence
  std::string default_value;  // "" for none; "false" for a switch
  std::string placeholder;    // "FILE"; what help shows for the value
  // What the flag means without a value. Such a flag takes its value only after "=".
  std::string implied_value;
  bool hidden = false;
};

// What was on the command line: checked, every number a number.
class Arguments {
 public:
  const std::vector<std::string>& positionals() const { return positionals_; }
  // Given on the command line, rather than its default.
  bool Has(std::string_view flag) const { return given_.contains(flag); }
  // The readings below need a flag of that name and type to be declared; else it is a bug.
  const std::string& Text(std::string_view flag) const;
  std::int64_t Int(std::string_view flag) const;
  bool Bool(std::string_view flag) const;
  Duration Time(std::string_view flag) const;
  std::vector<std::string> List(std::string_view flag) const;

 private:
  friend class App;
  std::vector<std::string> positionals_;
  std::map<std::string, std::vector<std::string>, std::less<>> given_;
  std::map<std::string, std::string, std::less<>> defaults_;
  std::map<std::string, FlagType, std::less<>> types_;
};

// Flags that several commands share in help and meaning.
enum class FlagGroup { kNone, kCluster };

struct Command {
  std::string name;       // "get", "image import"
  std::string arguments;  // "TYPE [NAME...]", for help
  std::string summary;    // one line for the list of commands
  std::string help;       // paragraphs
  std::string examples;   // "  # what it does\n  drakkar ...\n"
  std::vector<Flag> flags;
  std::size_t min_arguments = 0;
  std::size_t max_arguments = static_cast<std::size_t>(-1);
  // kCluster adds --kubeconfig, --context, --namespace, --server, --token ...
  FlagGroup group = FlagGroup::kNone;
  std::string section;  // the heading in the list of commands
  // The process exit code. Errors have been printed.
  std::function<int(const Arguments& arguments, Console& console)> run;
};

// Exit codes, as kubectl has them, and 2 for a command line that makes no sense.
constexpr int kExitOk = 0;
constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

// The binary as a whole: its commands, their help, and choosing the one to run. Flags and arguments
// may come in any order, `--flag value` or `--flag=value`, short ones together (-Rf dir).
class App {
 public:
  App(std::string program, std::string summary)
      : program_(std::move(program)), summary_(std::move(summary)) {}

  // Two commands of one name are a bug.
  void Add(Command command);
  const std::vector<Command>& commands() const { return commands_; }
  const std::string& program() const { return program_; }

  // Without the program's name. Prints help where asked for; a mistake gives one sentence.
  int Run(const std::vector<std::string>& words, Console& console) const;

  std::string Help() const;
  std::string HelpFor(const Command& command) const;

 private:
  const Command* FindCommand(const std::vector<std::string>& words, std::size_t& used) const;
  int ReportUnknownCommand(const std::vector<std::string>& words, Console& console) const;
  Result<Arguments> Parse(const Command& command, const std::vector<std::string>& words) const;

  std::string program_;
  std::string summary_;
  std::vector<Command> commands_;
};

// The flags of a command, those of its group included.
std::vector<Flag> AllFlags(const Command& command);

// The one of `candidates` that was probably meant by `word`; empty if none is near.
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace drakkar::cli
