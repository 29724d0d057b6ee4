#include "cel/environment/environment.h"

#include "cel/environment/literal_checks.h"
#include "cel/library/library.h"
#include "cel/planner/planner.h"

namespace drakkar::cel {

void Environment::AddVariable(const std::string& name, TypeRef type) {
  declarations_.AddVariable(name, std::move(type));
  variables_.push_back(name);
}

CompileResult Environment::Compile(std::string_view source, bool check) const {
  CompileResult result;
  std::vector<Issue> issues;
  Ast ast = Parse(source, parser_options_, issues);
  auto compiled = std::make_unique<Compiled>();
  if (issues.empty()) {
    compiled->checked = check ? Check(std::move(ast), declarations_, issues)
                              : ResolveUnchecked(std::move(ast), declarations_);
    if (issues.empty() && validate_literals_) CheckLiterals(compiled->checked, issues);
  }
  if (!issues.empty()) {
    result.error.message = FormatIssues(source, std::move(issues));
    return result;
  }
  compiled->output_type = compiled->checked.TypeOf(*compiled->checked.ast.root);
  Result<std::unique_ptr<Program>> program = Plan(compiled->checked, declarations_, variables_);
  if (!program.ok()) {
    result.error = {program.error().message, true};
    // Kept so that a caller can still report the type the expression would have had.
    return result;
  }
  compiled->program = *std::move(program);
  result.compiled = std::move(compiled);
  return result;
}

void AddLanguage(Environment& environment) {
  Declarations& d = environment.declarations();
  library::AddStandard(d);
  // Well-known wrapper messages.
  struct WellKnown {
    const char* name;
    TypeRef type;
  };
  for (const WellKnown& known :
       {WellKnown{"Bool", types::Bool()}, WellKnown{"Int64", types::Int()},
        WellKnown{"Int32", types::Int()}, WellKnown{"UInt64", types::Uint()},
        WellKnown{"UInt32", types::Uint()}, WellKnown{"Double", types::Double()},
        WellKnown{"Float", types::Double()}, WellKnown{"String", types::String()},
        WellKnown{"Bytes", types::Bytes()}}) {
    const std::string name = std::string("google.protobuf.") + known.name + "Value";
    d.AddTypeName(name, types::Wrapper(known.type));
    d.AddStruct(name, {{{"value", known.type}}});
  }
}

void AddKubernetesBase(Environment& environment, int minor) {
  Declarations& d = environment.declarations();
  MacroOptions& macros = environment.parser_options().macros;
  d.homogeneous_literals = true;
  d.cross_type_comparisons = minor >= 28;
  AddLanguage(environment);
  library::AddUrls(d);
  library::AddRegex(d);
  library::AddKubernetesLists(d);
  macros.optionals = minor >= 28;
  environment.parser_options().optional_syntax = minor >= 28;
  if (minor >= 28) {
    library::AddOptionals(d);
    library::AddQuantities(d);
  }
  environment.set_validate_literals(minor >= 29);
  library::AddStrings(d, minor >= 29 ? 2 : 0);
  if (minor >= 29) library::AddSets(d);
  if (minor >= 30) {
    library::AddIps(d);
    library::AddCidrs(d);
  }
  if (minor >= 31) library::AddFormats(d);
  macros.two_variables = minor >= 32;
  if (minor >= 32) library::AddTwoVariables(d);
  if (minor >= 33) library::AddSemvers(d);
  macros.lists = minor >= 34;
  if (minor >= 34) library::AddLists(d);
  if (minor >= 37) library::AddIncludes(d, "list_includes_dyn_dyn");
  macros.bindings = false;  // an environment with cel.bind sets it itself
}

}  // namespace drakkar::cel
