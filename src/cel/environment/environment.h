#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cel/checker/checker.h"
#include "cel/cost/estimator.h"
#include "cel/parser/parser.h"
#include "cel/planner/program.h"

namespace drakkar::cel {

// An expression that compiled. Immutable.
struct Compiled {
  TypeRef output_type;
  CheckedAst checked;
  std::unique_ptr<Program> program;
};

struct CompileError {
  std::string message;    // complete, including the source line and a caret
  bool internal = false;  // the expression is well-formed but a constant in it cannot be evaluated
};

struct CompileResult {
  std::unique_ptr<Compiled> compiled;  // null on error
  CompileError error;
};

// The variables, functions, types and rules expressions are compiled against. Built once, then
// only read.
class Environment {
 public:
  Declarations& declarations() { return declarations_; }
  const Declarations& declarations() const { return declarations_; }
  ParserOptions& parser_options() { return parser_options_; }
  // Literals that can only fail at run time are compile-time errors.
  void set_validate_literals(bool validate) { validate_literals_ = validate; }

  // Declares a variable; evaluations bind them in the order of declaration.
  void AddVariable(const std::string& name, TypeRef type);
  const std::vector<std::string>& variables() const { return variables_; }

  // `check` false skips types: names are resolved, everything is dynamic.
  CompileResult Compile(std::string_view source, bool check = true) const;

 private:
  Declarations declarations_;
  ParserOptions parser_options_;
  bool validate_literals_ = false;
  std::vector<std::string> variables_;
};

// The standard library and the well-known wrapper messages.
void AddLanguage(Environment& environment);
// The language as Kubernetes offers it to every kind of expression in release 1.`minor`.
void AddKubernetesBase(Environment& environment, int minor);

}  // namespace drakkar::cel
