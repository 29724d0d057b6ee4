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
  std::string default_value;  // "" if there is none; "false" for a bool
  std::string placeholder;    // the value's name in help, "FILE"
  // The value if the flag is given without one. Such a flag accepts a value only after "=".
  std::string implied_value;
  bool hidden = false;
};

// The parsed command line; values have been checked against their flag types.
class Arguments {
 public:
  const std::vector<std::string>& positionals() const { return positionals_; }
  // Whether the flag was given on the command line.
  bool Has(std::string_view flag) const { return given_.contains(flag); }
  // CHECK-fails unless a flag with that name and type is declared.
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

// Sets of flags that several commands share.
enum class FlagGroup { kNone, kCluster };

struct Command {
  std::string name;       // "get", "image import"
  std::string arguments;  // for usage: "TYPE [NAME...]"
  std::string summary;    // one line, for the list of commands
  std::string help;       // paragraphs
  std::string examples;   // "  # what it does\n  drakkar ...\n"
  std::vector<Flag> flags;
  std::size_t min_arguments = 0;
  std::size_t max_arguments = static_cast<std::size_t>(-1);
  // kCluster adds --kubeconfig, --context, --namespace, --server, --token ...
  FlagGroup group = FlagGroup::kNone;
  std::string section;  // the heading in the list of commands
  // Returns the exit code, after printing any errors.
  std::function<int(const Arguments& arguments, Console& console)> run;
};

// Exit codes as in kubectl, and 2 for an invalid command line.
constexpr int kExitOk = 0;
constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

// The whole program: its commands, their help, and dispatch. Flags and arguments may come in any
// order, as `--flag value` or `--flag=value`; short flags may be combined (-Rf dir).
class App {
 public:
  App(std::string program, std::string summary)
      : program_(std::move(program)), summary_(std::move(summary)) {}

  // CHECK-fails if the name is taken.
  void Add(Command command);
  const std::vector<Command>& commands() const { return commands_; }
  const std::string& program() const { return program_; }

  // `words` excludes the program's name. Prints help if asked for, and one error message on a
  // mistake.
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

// A command's own flags and those of its group.
std::vector<Flag> AllFlags(const Command& command);

// The candidate that was probably meant by `word`; empty if none is close.
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace drakkar::cli
