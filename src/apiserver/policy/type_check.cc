#include "apiserver/policy/type_check.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "api/scheme/scheme.h"
#include "apiserver/custom/definition.h"
#include "apiserver/custom/schema_value.h"
#include "apiserver/policy/expressions.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Value;
namespace types = cel::types;

constexpr std::string_view kMetadata = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

cel::TypeRef DeclareStruct(cel::Declarations& declarations, const api::StructSchema& schema,
                           std::set<std::string_view>& known);

// As OpenAPI describes the type. What has several forms can be anything.
cel::TypeRef DeclareType(cel::Declarations& declarations, const api::TypeSchema& type,
                         std::set<std::string_view>& known) {
  switch (type.kind) {
    case api::FieldKind::kString:
    case api::FieldKind::kDuration:
      return types::String();
    case api::FieldKind::kBool:
      return types::Bool();
    case api::FieldKind::kInt32:
    case api::FieldKind::kInt64:
      return types::Int();
    case api::FieldKind::kDouble:
      return types::Double();
    case api::FieldKind::kTime:
    case api::FieldKind::kMicroTime:
      return types::Timestamp();
    case api::FieldKind::kBytes:
      return types::Bytes();
    case api::FieldKind::kStruct:
      return DeclareStruct(declarations, *type.structure, known);
    case api::FieldKind::kList:
      return types::List(DeclareType(declarations, *type.element, known));
    case api::FieldKind::kMap:
      return types::Map(types::String(), DeclareType(declarations, *type.element, known));
    default:
      return types::Dyn();
  }
}

cel::TypeRef DeclareStruct(cel::Declarations& declarations, const api::StructSchema& schema,
                           std::set<std::string_view>& known) {
  const std::string name(schema.name);
  if (known.insert(schema.name).second) {
    cel::StructType type;
    for (const api::FieldSchema& field : schema.fields) {
      const cel::TypeRef of_field = DeclareType(declarations, field.type, known);
      type.fields[std::string(field.key->view())] = of_field;
      // Expressions may also use the name in the form that rules of custom resources need.
      if (std::string escaped = EscapeProperty(field.key->view()); !escaped.empty()) {
        type.fields[std::move(escaped)] = of_field;
      }
    }
    declarations.AddStruct(name, std::move(type));
  }
  return types::Struct(name);
}

cel::TypeRef DeclareKind(cel::Declarations& declarations, const api::KindSchema* kind,
                         const std::string& name) {
  if (kind == nullptr) return types::Dyn();
  std::set<std::string_view> known;
  const CustomVersion* version = kind->family == nullptr ? nullptr : FindCustomVersion(*kind);
  if (version == nullptr) return DeclareStruct(declarations, *kind->schema, known);
  const cel::TypeRef type = DeclareSchemaType(declarations, version->schema(), name);
  if (const cel::StructType* declared = declarations.FindStruct(type->name())) {
    cel::StructType complete = *declared;
    complete.fields["apiVersion"] = types::String();
    complete.fields["kind"] = types::String();
    complete.fields["metadata"] = DeclareStruct(declarations, *api::FindStruct(kMetadata), known);
    declarations.AddStruct(type->name(), std::move(complete));
  }
  return type;
}

// The names in a list of a rule; none if one of them is a wildcard.
std::vector<std::string_view> Names(Value list) {
  std::vector<std::string_view> names;
  for (const Value each : list.elements()) {
    if (each.str().find('*') != std::string_view::npos) return {};
    names.push_back(each.str());
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string_view> Resources(Value list) {
  std::vector<std::string_view> names;
  for (const Value each : list.elements()) {
    if (each.str().find_first_of("*/") == std::string_view::npos) names.push_back(each.str());
  }
  std::ranges::sort(names);
  return names;
}

// "apps/v1, Kind=Deployment"
std::string Describe(const api::KindSchema& kind) {
  return StrCat(kind.group, "/", kind.version, ", Kind=", kind.kind);
}

}  // namespace

PolicyTypeCheck::PolicyTypeCheck(api::ObjectPtr policy, const Kinds& kinds)
    : policy_(std::move(policy)) {
  const Value spec = (*policy_)["spec"];
  const auto add_kinds = [&](Value rule) {
    for (const std::string_view group : Names(rule["apiGroups"])) {
      for (const std::string_view version : Names(rule["apiVersions"])) {
        for (const std::string_view plural : Resources(rule["resources"])) {
          if (kinds_.size() == kMaxKinds) return;
          const api::KindSchema* kind = kinds.find_resource(group, version, plural);
          const bool is_new = kind != nullptr && std::ranges::find(kinds_, kind) == kinds_.end();
          if (is_new) kinds_.push_back(kind);
        }
      }
    }
  };
  for (const Value rule : spec["matchConstraints"]["resourceRules"].elements()) add_kinds(rule);
  std::ranges::sort(kinds_, {}, [](const api::KindSchema* kind) {
    return std::tuple(kind->group, kind->version, kind->kind);
  });
  const Value params = spec["paramKind"];
  if (params.has_value()) {
    params_ = kinds.find_kind(params["apiVersion"].str(), params["kind"].str());
  }
  std::size_t index = 0;
  for (const Value validation : spec["validations"].elements()) {
    const std::string path = StrCat("spec.validations[", index++, "].");
    expressions_.push_back({path + "expression", std::string(validation["expression"].str()), ""});
    if (const std::string_view message = validation["messageExpression"].str(); !message.empty()) {
      expressions_.push_back({path + "messageExpression", std::string(message), ""});
    }
  }
}

bool PolicyTypeCheck::Next() {
  if (next_ == kinds_.size()) return false;
  const api::KindSchema& kind = *kinds_[next_++];
  const WorkBudget unlimited(WorkBudget::kUnlimited);
  const Value spec = (*policy_)["spec"];
  PolicyCompiler compiler(
      spec["paramKind"].has_value(),
      PolicyCompiler::Typed{
          .object = [&](cel::Declarations& to) { return DeclareKind(to, &kind, "object"); },
          .params = [&](cel::Declarations& to) { return DeclareKind(to, params_, "params"); }});
  for (const Value variable : spec["variables"].elements()) {
    compiler.CompileVariable(variable["name"].str(), variable["expression"].str());
  }
  for (Checked& each : expressions_) {
    const PolicyExpression compiled = compiler.Compile(each.expression, Returns::kAny);
    if (compiled.error.empty()) continue;
    if (!each.warning.empty()) each.warning += '\n';
    each.warning +=
        StrCat(Describe(kind), compiled.internal_error ? ": type checking error: " : ": ",
               compiled.error, "\n");
  }
  return true;
}

api::Draft PolicyTypeCheck::Result() const {
  api::Draft result = api::Draft::Object();
  for (const Checked& each : expressions_) {
    if (each.warning.empty()) continue;
    result["expressionWarnings"].Append({{"fieldRef", each.field}, {"warning", each.warning}});
  }
  return result;
}

}  // namespace drakkar::apiserver
