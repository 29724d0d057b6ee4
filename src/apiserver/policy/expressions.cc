#include "apiserver/policy/expressions.h"

#include <array>

#include "apiserver/policy/authorizer_library.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"
#include "cel/library/library.h"

namespace drakkar::apiserver {
namespace {

namespace types = cel::types;

constexpr int kMinorVersion = 37;
constexpr char kVariablesType[] = "kubernetes.variables";
constexpr char kPatchType[] = "JSONPatch";
constexpr char kObjectType[] = "Object";  // cel::kObjectTypeName
// The cost of compiling, in steps of the work budget.
constexpr std::size_t kStepsPerExpression = 20'000;
constexpr std::size_t kStepsPerByte = 200;
constexpr std::size_t kStepsPerField = 100;
constexpr std::size_t kStepsPerEnvironment = 1'000'000;

void AddRequestType(cel::Declarations& d) {
  const cel::TypeRef text = types::String();
  const cel::TypeRef texts = types::List(text);
  d.AddStruct("kubernetes.GroupVersionKind",
              {{{"group", text}, {"version", text}, {"kind", text}}});
  d.AddStruct("kubernetes.GroupVersionResource",
              {{{"group", text}, {"version", text}, {"resource", text}}});
  d.AddStruct(
      "kubernetes.UserInfo",
      {{{"username", text}, {"uid", text}, {"groups", texts}, {"extra", types::Map(text, texts)}}});
  const cel::TypeRef kind = types::Struct("kubernetes.GroupVersionKind");
  const cel::TypeRef resource = types::Struct("kubernetes.GroupVersionResource");
  d.AddStruct("kubernetes.AdmissionRequest", {{{"kind", kind},
                                               {"resource", resource},
                                               {"subResource", text},
                                               {"requestKind", kind},
                                               {"requestResource", resource},
                                               {"requestSubResource", text},
                                               {"name", text},
                                               {"namespace", text},
                                               {"operation", text},
                                               {"userInfo", types::Struct("kubernetes.UserInfo")},
                                               {"dryRun", types::Bool()},
                                               {"options", types::Dyn()}}});
}

void AddNamespaceType(cel::Declarations& d) {
  const cel::TypeRef text = types::String();
  const cel::TypeRef texts = types::List(text);
  const cel::TypeRef map = types::Map(text, text);
  d.AddStruct("kubernetes.NamespaceSpec", {{{"finalizers", texts}}});
  d.AddStruct("kubernetes.NamespaceCondition", {{{"status", text},
                                                 {"type", text},
                                                 {"lastTransitionTime", types::Timestamp()},
                                                 {"message", text},
                                                 {"reason", text}}});
  d.AddStruct("kubernetes.NamespaceStatus",
              {{{"conditions", types::List(types::Struct("kubernetes.NamespaceCondition"))},
                {"phase", text}}});
  d.AddStruct("kubernetes.NamespaceMetadata", {{{"name", text},
                                                {"generateName", text},
                                                {"namespace", text},
                                                {"labels", map},
                                                {"annotations", map},
                                                {"UID", text},
                                                {"creationTimestamp", types::Timestamp()},
                                                {"deletionGracePeriodSeconds", types::Int()},
                                                {"deletionTimestamp", types::Timestamp()},
                                                {"generation", types::Int()},
                                                {"resourceVersion", text},
                                                {"finalizers", texts}}});
  d.AddStruct("kubernetes.Namespace", {{{"metadata", types::Struct("kubernetes.NamespaceMetadata")},
                                        {"spec", types::Struct("kubernetes.NamespaceSpec")},
                                        {"status", types::Struct("kubernetes.NamespaceStatus")}}});
}

// "/metadata/labels/" + jsonpatch.escapeKey("a/b")
cel::Value EscapeKey(cel::CallContext& context, cel::library::Args args) {
  std::string escaped;
  for (const char c : args[0].text()) {
    if (c == '~') {
      escaped += "~0";
    } else if (c == '/') {
      escaped += "~1";
    } else {
      escaped += c;
    }
  }
  return cel::NewString(context.arena, escaped);
}

void AddConstruction(cel::Declarations& d) {
  const cel::TypeRef text = types::String();
  d.AddStruct(kObjectType, {});
  d.AddTypeName(kPatchType, types::Struct(kPatchType));
  d.AddStruct(kPatchType,
              {{{"op", text}, {"path", text}, {"from", text}, {"value", types::Dyn()}}});
  cel::library::Global(d, "jsonpatch.escapeKey", "string_jsonpatch_escapeKey_string", {text}, text,
                       EscapeKey);
}

std::unique_ptr<cel::Environment> MakeEnvironment(const ExpressionScope& scope,
                                                  bool constructs = false,
                                                  const PolicyCompiler::Typed& typed = {}) {
  auto environment = std::make_unique<cel::Environment>();
  cel::AddKubernetesBase(*environment, kMinorVersion);
  // Policies have no limit of their own; the size of the object limits them.
  environment->parser_options().max_source_bytes = std::size_t{1} << 20;
  cel::Declarations& d = environment->declarations();
  AddRequestType(d);
  AddNamespaceType(d);
  AddAuthorizerLibrary(d);
  if (constructs) AddConstruction(d);
  const cel::TypeRef object = typed.object ? typed.object(d) : types::Dyn();
  environment->AddVariable("object", object);
  environment->AddVariable("oldObject", object);
  environment->AddVariable("namespaceObject", types::Struct("kubernetes.Namespace"));
  environment->AddVariable("request", types::Struct("kubernetes.AdmissionRequest"));
  if (scope.variables) {
    d.AddStruct(kVariablesType, {});
    environment->AddVariable("variables", types::Struct(kVariablesType));
  }
  if (scope.params) {
    environment->AddVariable("params", typed.params ? typed.params(d) : types::Dyn());
  }
  if (scope.authorizer) {
    environment->AddVariable("authorizer", AuthorizerType());
    environment->AddVariable("authorizer.requestResource", ResourceCheckType());
  }
  return environment;
}

const cel::Environment& SharedEnvironment(bool params, bool authorizer) {
  static const std::array<std::unique_ptr<cel::Environment>, 4> environments = {
      MakeEnvironment({false, false, false}), MakeEnvironment({false, false, true}),
      MakeEnvironment({false, true, false}), MakeEnvironment({false, true, true})};
  return *environments[(params ? 2 : 0) + (authorizer ? 1 : 0)];
}

const cel::Environment& SharedConstruction(bool params) {
  static const std::array<std::unique_ptr<cel::Environment>, 2> environments = {
      MakeEnvironment({false, false, true}, true), MakeEnvironment({false, true, true}, true)};
  return *environments[params ? 1 : 0];
}

bool IsOne(const cel::Type& type, const cel::TypeRef& expected) {
  return cel::Type::Same(type, *expected);
}

// Why the type of the result is wrong; empty if it is not.
std::string CheckResult(const cel::Type& type, Returns returns) {
  switch (returns) {
    case Returns::kAny:
      return {};
    case Returns::kBool:
      if (IsOne(type, types::Bool())) return {};
      return StrCat("must evaluate to bool but got ", type.ToString());
    case Returns::kText:
      if (IsOne(type, types::String())) return {};
      return StrCat("must evaluate to string but got ", type.ToString());
    case Returns::kTextOrNull:
      if (IsOne(type, types::String()) || IsOne(type, types::Null())) return {};
      return StrCat("must evaluate to one of [string null_type] but got ", type.ToString());
    case Returns::kObject:
      if (IsOne(type, types::Struct(kObjectType))) return {};
      return StrCat("must evaluate to Object but got ", type.ToString());
    case Returns::kPatch:
      if (IsOne(type, types::List(types::Struct(kPatchType)))) return {};
      return StrCat("must evaluate to list(JSONPatch) but got ", type.ToString());
  }
  return {};
}

PolicyExpression CompileIn(const cel::Environment& environment, std::string_view source,
                           Returns returns) {
  PolicyExpression expression;
  expression.source = std::string(source);
  WorkBudget::Charge(kStepsPerExpression + kStepsPerByte * source.size());
  if (WorkBudget::IsExceeded()) return expression;
  cel::CompileResult result = environment.Compile(source);
  if (result.compiled == nullptr) {
    expression.internal_error = result.error.internal;
    expression.error =
        StrCat(result.error.internal ? "program instantiation failed: " : "compilation failed: ",
               result.error.message);
    return expression;
  }
  expression.error = CheckResult(*result.compiled->output_type, returns);
  if (expression.error.empty()) expression.compiled = std::move(result.compiled);
  return expression;
}

}  // namespace

PolicyCompiler::PolicyCompiler(bool has_params, bool has_variables, bool constructs)
    : has_params_(has_params), has_variables_(has_variables) {
  if (!has_variables) return;
  WorkBudget::Charge(2 * kStepsPerEnvironment);
  with_authorizer_ = MakeEnvironment(scope(true));
  without_authorizer_ = MakeEnvironment(scope(false));
  if (!constructs) return;
  WorkBudget::Charge(kStepsPerEnvironment);
  with_construction_ = MakeEnvironment(scope(true), true);
}

PolicyCompiler::PolicyCompiler(bool has_params, const Typed& typed)
    : has_params_(has_params), has_variables_(true), is_typed_(true) {
  with_authorizer_ = MakeEnvironment(scope(true), false, typed);
}

PolicyCompiler::~PolicyCompiler() = default;

PolicyExpression PolicyCompiler::CompileVariable(std::string_view name, std::string_view source) {
  // Both environments get a copy of the type with every variable.
  WorkBudget::Charge(2 * kStepsPerField * variables_.fields.size());
  PolicyExpression expression = Compile(source, Returns::kAny);
  variables_.fields[std::string(name)] =
      expression.compiled == nullptr ? types::Dyn() : expression.compiled->output_type;
  with_authorizer_->declarations().AddStruct(kVariablesType, variables_);
  if (without_authorizer_ != nullptr) {
    without_authorizer_->declarations().AddStruct(kVariablesType, variables_);
  }
  if (with_construction_ != nullptr) {
    with_construction_->declarations().AddStruct(kVariablesType, variables_);
  }
  return expression;
}

PolicyExpression PolicyCompiler::CompileMutation(std::string_view source, Returns returns) const {
  return CompileIn(has_variables_ ? *with_construction_ : SharedConstruction(has_params_), source,
                   returns);
}

PolicyExpression PolicyCompiler::Compile(std::string_view source, Returns returns,
                                         bool authorizer) const {
  if (!has_variables_)
    return CompileIn(SharedEnvironment(has_params_, authorizer), source, returns);
  return CompileIn(authorizer || is_typed_ ? *with_authorizer_ : *without_authorizer_, source,
                   returns);
}

PolicyExpression PolicyCompiler::CompileCondition(std::string_view source) const {
  return CompileIn(SharedEnvironment(has_params_, true), source, Returns::kBool);
}

}  // namespace drakkar::apiserver
