#include "device/device_cel.h"

#include <algorithm>

#include "base/exec/work_budget.h"
#include "base/text/text.h"
#include "cel/cost/estimator.h"
#include "cel/environment/environment.h"
#include "cel/library/library.h"
#include "cel/library/objects.h"
#include "device/cel_device.h"

namespace drakkar::device {
namespace {

constexpr char kDeviceType[] = "kubernetes.DRADevice";
constexpr std::size_t kMaxDomainLength = 63;
constexpr std::size_t kMaxIdLength = 32;
constexpr std::size_t kMaxDriverLength = 63;
constexpr std::size_t kMaxEntries = 32;
constexpr std::size_t kMaxValueSize = 64;  // a string's length; more than a list can have
// For one device. CEL's cost does not count what it takes to compile a regular expression that the
// expression computes.
constexpr std::int64_t kMaxSteps = 5'000'000;

cel::TypeRef AttributeType(bool lists) {
  return lists ? cel::types::Dyn() : cel::types::Any();
}

cel::TypeRef Nested(const cel::TypeRef& value) {
  return cel::types::Map(cel::types::String(), cel::types::Map(cel::types::String(), value));
}

std::unique_ptr<cel::Environment> MakeEnvironment(bool lists, bool consumable, int minor) {
  auto environment = std::make_unique<cel::Environment>();
  cel::AddKubernetesBase(*environment, minor);
  environment->parser_options().macros.bindings = true;
  environment->parser_options().max_source_bytes = 10 * kMaxSelectorBytes;
  cel::StructType device;
  device.fields["driver"] = cel::types::String();
  device.fields["attributes"] = Nested(AttributeType(lists));
  device.fields["capacity"] = Nested(cel::types::Quantity());
  if (consumable) device.fields["allowMultipleAllocations"] = cel::types::Bool();
  environment->declarations().AddStruct(kDeviceType, std::move(device));
  environment->AddVariable("device", cel::types::Struct(kDeviceType));
  if (lists && minor < 37)
    cel::library::AddIncludes(environment->declarations(), "dra_includes_dyn_dyn");
  return environment;
}

// Size limits of the paths below `device`, from the API.
std::optional<cel::Estimate> SizeOfPath(std::span<const std::string> path) {
  if (path.empty() || path[0] != "device") return std::nullopt;
  if (path.size() == 1) return cel::Estimate{0, 0};
  const auto upto = [](std::size_t size) { return cel::Estimate{0, size}; };
  const std::string& field = path[1];
  if (field == "driver")
    return path.size() == 2 ? std::optional(upto(kMaxDriverLength)) : std::nullopt;
  if (field == "allowMultipleAllocations")
    return path.size() == 2 ? std::optional(upto(1)) : std::nullopt;
  const bool attributes = field == "attributes";
  if (!attributes && field != "capacity") return std::nullopt;
  if (path.size() == 2) return upto(kMaxEntries);
  if (path[2] == "@keys")
    return path.size() == 3 ? std::optional(upto(kMaxDomainLength)) : std::nullopt;
  if (path[2] != "@values" && path[2] != "@items") return std::nullopt;
  if (path.size() == 3) return upto(kMaxEntries);
  if (path[3] == "@keys")
    return path.size() == 4 ? std::optional(upto(kMaxIdLength)) : std::nullopt;
  const bool by_index = path[3] == "@values" || path[3] == "@items";
  if (path.size() > 4) return std::nullopt;
  if (attributes) return upto(kMaxValueSize);
  return by_index ? std::optional(upto(0)) : std::nullopt;
}

const cel::EstimatorOptions& SelectorEstimatorOptions() {
  static const cel::EstimatorOptions kOptions = {SizeOfPath};
  return kOptions;
}

bool IsDerivedScalar(const cel::Type& type) {
  switch (type.kind()) {
    case cel::TypeKind::kBool:
    case cel::TypeKind::kInt:
    case cel::TypeKind::kString:
    case cel::TypeKind::kAny:
    case cel::TypeKind::kDyn:
      return !type.nullable();
    case cel::TypeKind::kStruct:
      return type.name() == "kubernetes.Semver";
    default:
      return false;
  }
}

ReadSet MakeReadSet(const cel::Program& program) {
  ReadSet reads;
  for (const cel::AccessPath& path : program.access_paths()) {
    if (path.keys.empty()) {
      reads.all = true;
      continue;
    }
    const std::string& field = path.keys[0];
    if (field == "driver") {
      reads.driver = true;
    } else if (field == "allowMultipleAllocations") {
      reads.allow_multiple_allocations = true;
    } else if (path.keys.size() == 1) {
      reads.all = true;
    } else {
      const bool attributes = field == "attributes";
      if (path.keys.size() == 2) {
        (attributes ? reads.attribute_domains : reads.capacity_domains).push_back(path.keys[1]);
      } else {
        (attributes ? reads.attributes : reads.capacity).push_back({path.keys[1], path.keys[2]});
      }
    }
  }
  const auto tidy = [](auto& keys) {
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  };
  tidy(reads.attributes);
  tidy(reads.capacity);
  tidy(reads.attribute_domains);
  tidy(reads.capacity_domains);
  return reads;
}

std::string NotABool(const cel::Value& value) {
  const std::string type(cel::TypeName(value));
  std::string reason;
  switch (value.kind) {
    case cel::Kind::kString:
      reason = "unsupported native conversion from string to 'bool'";
      break;
    case cel::Kind::kInt:
      reason = "unsupported type conversion from 'int' to bool";
      break;
    case cel::Kind::kList:
    case cel::Kind::kMap:
      reason = StrCat("type conversion error from ", type, " to 'bool'");
      break;
    default:
      reason = StrCat("type conversion error from '", type, "' to 'bool'");
      break;
  }
  return StrCat("CEL result of type ", type, " could not be converted to bool: ", reason);
}

}  // namespace

std::string WithHint(std::string_view error) {
  if (error.find("no such key:") == std::string_view::npos) return std::string(error);
  return StrCat(error,
                ". consider using CEL optional chaining (.? followed by orValue()) or guarding the "
                "check with "
                "has() for optional fields");
}

DeviceExpression::DeviceExpression(std::unique_ptr<cel::Compiled> compiled)
    : compiled_(std::move(compiled)), read_set_(MakeReadSet(*compiled_->program)) {}
DeviceExpression::~DeviceExpression() = default;

const cel::TypeRef& DeviceExpression::output_type() const {
  return compiled_->output_type;
}

cel::Estimate DeviceExpression::EstimateCost() const {
  return cel::EstimateCost(compiled_->checked, SelectorEstimatorOptions());
}

DeviceExpression::Answer DeviceExpression::Matches(const CelDevice& device,
                                                   cel::Evaluator& evaluator,
                                                   std::uint64_t cost_limit) const {
  const WorkBudget budget(kMaxSteps);
  const cel::Evaluation result =
      compiled_->program->Evaluate(evaluator, device.variables(), cost_limit);
  Answer answer;
  answer.cost = result.cost;
  if (result.value.kind == cel::Kind::kBool) {
    answer.matches = result.value.boolean;
  } else {
    answer.error = result.value.IsError() ? result.value.error->message : NotABool(result.value);
  }
  return answer;
}

DeviceExpression::Derived DeviceExpression::Derive(const CelDevice& device,
                                                   cel::Evaluator& evaluator,
                                                   std::uint64_t cost_limit) const {
  const WorkBudget budget(kMaxSteps);
  const cel::Evaluation result =
      compiled_->program->Evaluate(evaluator, device.variables(), cost_limit);
  Derived derived;
  derived.cost = result.cost;
  if (result.value.IsError()) {
    derived.error = result.value.error->message;
    return derived;
  }
  Result<AttributeValue> value = ToAttributeValue(result.value);
  if (value.ok()) {
    derived.value = *std::move(value);
  } else {
    derived.error = value.error().message;
  }
  return derived;
}

DeviceCompiler::DeviceCompiler(const CelFeatures& features)
    : features_(features),
      new_(MakeEnvironment(features.list_type_attributes, features.consumable_capacity,
                           features.compatibility_minor)),
      // Stored expressions ignore the switches: whatever was once accepted keeps compiling.
      stored_(MakeEnvironment(true, true, 1'000)) {}
DeviceCompiler::~DeviceCompiler() = default;

DeviceCompiler::Outcome DeviceCompiler::CompileSelector(std::string_view source,
                                                        ExpressionSet set) const {
  return Compile(source, set, false);
}
DeviceCompiler::Outcome DeviceCompiler::CompileDerivedAttribute(std::string_view source,
                                                                ExpressionSet set) const {
  return Compile(source, set, true);
}

DeviceCompiler::Outcome DeviceCompiler::Compile(std::string_view source, ExpressionSet set,
                                                bool derived) const {
  const cel::Environment& environment = set == ExpressionSet::kNew ? *new_ : *stored_;
  const bool lists = set == ExpressionSet::kStored || features_.list_type_attributes;
  Outcome outcome;
  cel::CompileResult result = environment.Compile(source);
  if (!result.compiled && !result.error.internal) {
    outcome.failure.message = StrCat("compilation failed: ", result.error.message);
    return outcome;
  }
  if (!result.compiled) {
    outcome.failure = {StrCat("program instantiation failed: ", result.error.message), true};
    return outcome;
  }
  const cel::Type& type = *result.compiled->output_type;
  const cel::TypeRef attribute_type = AttributeType(lists);
  if (derived) {
    const bool list =
        lists && type.kind() == cel::TypeKind::kList && IsDerivedScalar(*type.parameter(0));
    if (!IsDerivedScalar(type) && !list) {
      outcome.failure.message =
          StrCat("must evaluate to a primitive scalar (string, integer, boolean, semver)",
                 lists ? " or a list of these scalars" : "", ", not ", type.ToString());
      return outcome;
    }
  } else if (!((type.kind() == cel::TypeKind::kBool) || cel::Type::Same(type, *attribute_type))) {
    outcome.failure.message =
        StrCat("must evaluate to bool or the unknown type, not ", type.ToString());
    return outcome;
  }
  outcome.expression.reset(new DeviceExpression(std::move(result.compiled)));
  return outcome;
}

}  // namespace drakkar::device
