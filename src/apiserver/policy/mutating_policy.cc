#include "apiserver/policy/mutating_policy.h"

#include "api/apply/typed_value.h"
#include "api/patch/json_patch.h"
#include "api/scheme/scheme.h"
#include "apiserver/policy/cel_tree.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::MergeKind;
using api::Value;

// The paths in an applied configuration that would replace a whole list, map or struct. People
// rarely intend that.
void FindAtomics(Value value, const api::TypeSchema& type, const std::string& path,
                 std::vector<std::string>& found) {
  const auto each_field = [&](const api::StructSchema& schema) {
    for (const auto& [key, name, member] : value.members()) {
      if (const api::FieldSchema* field = schema.Find(name)) {
        FindAtomics(member, field->type, StrCat(path, ".", name), found);
      }
    }
  };
  if (value.is_object() && type.kind == api::FieldKind::kStruct) {
    if (type.merge == MergeKind::kAtomic) found.push_back(path);
    each_field(*type.structure);
  } else if (value.is_object() && type.kind == api::FieldKind::kMap) {
    if (type.merge == MergeKind::kAtomic) found.push_back(path);
  } else if (value.is_array() && type.kind == api::FieldKind::kList) {
    if (type.merge == MergeKind::kAtomic) found.push_back(path);
    std::size_t index = 0;
    for (Value element : value.elements()) {
      FindAtomics(element, *type.element, StrCat(path, "[", index++, "]"), found);
    }
  }
}

MutatingPolicy::Change Apply(Value object, api::Draft configuration, const api::KindSchema& kind) {
  configuration["apiVersion"] = kind.api_version();
  configuration["kind"] = kind.kind;
  const api::TreePtr applied = configuration.Freeze();
  if (const std::vector<std::string> problems = api::CheckTyped(applied->root(), *kind.schema);
      !problems.empty()) {
    return {
        .object = nullptr,
        .error = StrCat("error applying patch: failed to convert patch object to typed object: ",
                        Join(problems, ", "))};
  }
  std::vector<std::string> atomics;
  for (const auto& [key, name, member] : applied->root().members()) {
    if (const api::FieldSchema* field = kind.schema->Find(name)) {
      FindAtomics(member, field->type, StrCat(".", name), atomics);
    }
  }
  if (!atomics.empty()) {
    return {.object = nullptr,
            .error = StrCat("error applying patch: invalid ApplyConfiguration: may not mutate "
                            "atomic arrays, maps or structs: ",
                            Join(atomics, ", "))};
  }
  return {.object = api::MergeTyped(object, applied->root(), *kind.schema).Freeze(), .error = {}};
}

MutatingPolicy::Change ApplyPatch(Value object, const api::Draft& patch) {
  const api::TreePtr operations = patch.Freeze();
  Result<api::TreePtr> patched = api::ApplyJsonPatch(object, operations->root());
  if (patched.ok()) return {.object = *std::move(patched), .error = {}};
  // A test that fails means that the patch does not apply to this object.
  if (patched.error().message.ends_with("failed: test failed")) return {};
  return {.object = nullptr, .error = StrCat("JSON Patch: ", patched.error().message)};
}

}  // namespace

MutatingPolicy::MutatingPolicy(api::ObjectPtr policy) : AdmissionPolicy(std::move(policy)) {
  // A stored policy is compiled once, on first use.
  const WorkBudget unlimited(WorkBudget::kUnlimited);
  PolicyCompiler compiler(has_params_, !spec()["variables"].empty(), /*constructs=*/true);
  CompileShared(compiler);
  is_reinvocable_ = spec()["reinvocationPolicy"].str() == "IfNeeded";
  for (Value each : spec()["mutations"].elements()) {
    Mutation& mutation = mutations_.emplace_back();
    mutation.is_patch = each["patchType"].str() == "JSONPatch";
    const Value source = mutation.is_patch ? each["jsonPatch"] : each["applyConfiguration"];
    mutation.expression = compiler.CompileMutation(
        Trim(source["expression"].str()), mutation.is_patch ? Returns::kPatch : Returns::kObject);
  }
}

MutatingPolicy::Change MutatingPolicy::Mutate(std::size_t mutation, const Input& input,
                                              Value object, const api::KindSchema& kind) const {
  // Variables are evaluated again: an earlier mutation may have changed the object.
  PolicyEvaluation evaluation(*this, input);
  std::uint64_t budget = kMaxPolicyCost;
  const Mutation& applied = mutations_[mutation];
  const PolicyEvaluation::Outcome outcome = evaluation.Run(applied.expression, false, true, budget);
  if (!outcome.error.empty()) return {.object = nullptr, .error = outcome.error};
  Result<api::Draft> tree = CelTree(outcome.value);
  if (!tree.ok()) return {.object = nullptr, .error = tree.error().message};
  return applied.is_patch ? ApplyPatch(object, *tree) : Apply(object, *std::move(tree), kind);
}

}  // namespace drakkar::apiserver
