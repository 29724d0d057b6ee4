#include "apiserver/custom/rules.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <span>

#include "apiserver/custom/schema_value.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"
#include "cel/cost/estimator.h"

namespace drakkar::apiserver {
namespace {

using api::FieldError;
using api::FieldErrors;
using api::FieldPath;
using api::Value;
using Type = JsonSchema::Type;

constexpr int kMinorVersion = 37;
constexpr std::uint64_t kMaxRequestBytes = std::uint64_t{3} << 20;
constexpr std::uint64_t kStepsPerCost = 10;
constexpr std::size_t kStepsPerRule = 50'000;
constexpr std::size_t kStepsPerByte = 200;
constexpr std::size_t kMaxMessageBytes = std::size_t{5} * 1024;
constexpr char kRootType[] = "selfType";

std::uint64_t Times(std::uint64_t a, std::uint64_t b) {
  return cel::Estimate{a, a}.Times({b, b}).max;
}

// The minimum number of bytes that a value takes in a request.
std::uint64_t MinBytes(const JsonSchema& schema) {
  switch (schema.type) {
    case Type::kString:
      return 2;
    case Type::kBoolean:
      return 4;
    case Type::kArray:
      return 2;
    case Type::kObject: {
      std::uint64_t bytes = 2;
      for (std::string_view name : schema.required) {
        const JsonSchema* property = schema.Find(name);
        if (property != nullptr && !property->default_value.exists()) {
          bytes += name.size() + 4 + MinBytes(*property);
        }
      }
      return bytes;
    }
    default:
      return 1;
  }
}

// How many elements, entries or bytes a value can have at most.
std::optional<std::uint64_t> MaxElements(const JsonSchema& schema) {
  const JsonValueRules* rules = schema.values.get();
  const auto limit = [](const std::optional<std::int64_t>& given) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, *given));
  };
  switch (schema.type) {
    case Type::kArray:
      if (rules != nullptr && rules->max_items) return limit(rules->max_items);
      return (kMaxRequestBytes - 2) / ((schema.items == nullptr ? 1 : MinBytes(*schema.items)) + 1);
    case Type::kObject:
      if (!schema.is_map()) return std::nullopt;
      if (rules != nullptr && rules->max_properties) return limit(rules->max_properties);
      return (kMaxRequestBytes - 2) /
             ((schema.additional == nullptr ? 1 : MinBytes(*schema.additional)) + 6);
    case Type::kString:
      if (rules != nullptr && rules->enumeration.exists()) {
        std::uint64_t longest = 0;
        for (Value each : rules->enumeration.elements()) {
          longest = std::max<std::uint64_t>(longest, each.str().size());
        }
        return longest;
      }
      if (rules != nullptr && rules->max_length) return 4 * limit(rules->max_length);
      if (schema.format == "date") return 10;
      if (schema.format == "date-time") return 30;
      return kMaxRequestBytes - 2;
    default:
      return schema.int_or_string ? std::optional(kMaxRequestBytes - 2) : std::nullopt;
  }
}

// The estimated sizes of what is below `self` and `oldSelf`.
std::optional<cel::Estimate> SizeBelow(const JsonSchema& schema,
                                       std::span<const std::string> path) {
  const JsonSchema* at = &schema;
  for (std::size_t i = 1; i < path.size(); ++i) {
    const std::string& part = path[i];
    if (part == "@items" || part == "@values") {
      at = at->items != nullptr ? at->items.get() : at->additional.get();
    } else if (part == "@keys") {
      return cel::Estimate{0, kMaxRequestBytes};
    } else if (const JsonSchema* property = at->Find(UnescapeProperty(part))) {
      at = property;
    } else {
      at = at->additional.get();
    }
    if (at == nullptr) return std::nullopt;
  }
  const std::optional<std::uint64_t> most = MaxElements(*at);
  if (!most) return std::nullopt;
  return cel::Estimate{0, *most};
}

std::string CostMessage(std::string_view what, std::uint64_t cost, std::uint64_t limit) {
  const double factor = static_cast<double>(cost) / static_cast<double>(limit);
  char text[64];
  if (factor > 100.0) {
    std::snprintf(text, sizeof(text), "more than 100x");
  } else if (factor < 1.5) {
    std::snprintf(text, sizeof(text), "%fx", factor);
  } else {
    std::snprintf(text, sizeof(text), "%.1fx", factor);
  }
  return StrCat(
      what, " exceeds budget by factor of ", text,
      " (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where "
      "arrays, maps, and strings are declared)");
}

std::string RuleText(const JsonSchemaRule& rule) {
  const std::string_view message = rule.source["message"].str();
  return std::string(Trim(message.empty() ? rule.rule() : message));
}

}  // namespace

class CustomRules::Compiler {
 public:
  explicit Compiler(CustomRules& rules) : rules_(rules) {
    cel::AddKubernetesBase(environment_, kMinorVersion);
    environment_.parser_options().max_source_bytes = std::size_t{1} << 20;
    environment_.AddVariable("self", cel::types::Dyn());
    environment_.AddVariable("oldSelf", cel::types::Dyn());
  }

  void Walk(const JsonSchema& schema, const std::string& name, std::uint64_t places) {
    if (!schema.has_rules || WorkBudget::IsExceeded()) return;
    if (!schema.rules.empty()) {
      const cel::TypeRef type = DeclareSchemaType(environment_.declarations(), schema, name);
      std::vector<Compiled>& compiled = rules_.rules_[&schema];
      for (const JsonSchemaRule& rule : schema.rules) {
        compiled.push_back(Compile(schema, rule, type, places));
      }
    }
    for (const auto& [property, below] : schema.properties) {
      Walk(*below, StrCat(name, ".", property), places);
    }
    if (schema.items != nullptr) {
      Walk(*schema.items, name + ".@idx", Times(places, MaxElements(schema).value_or(1)));
    }
    if (schema.additional != nullptr) {
      Walk(*schema.additional, name + ".@elem", Times(places, MaxElements(schema).value_or(1)));
    }
  }

 private:
  Compiled Compile(const JsonSchema& schema, const JsonSchemaRule& rule, const cel::TypeRef& type,
                   std::uint64_t places) {
    Compiled compiled;
    compiled.rule = &rule;
    const bool optional = rule.source["optionalOldSelf"].boolean();
    environment_.declarations().AddVariable("self", type);
    environment_.declarations().AddVariable("oldSelf",
                                            optional ? cel::types::Optional(type) : type);
    compiled.program = CompileText(rule.rule(), cel::types::Bool(), "bool", compiled.error);
    if (const std::string_view source = rule.source["messageExpression"].str(); !source.empty()) {
      compiled.message =
          CompileText(source, cel::types::String(), "string", compiled.message_error);
    }
    if (compiled.program == nullptr) return compiled;
    for (const cel::AccessPath& path : compiled.program->program->access_paths()) {
      compiled.uses_old = compiled.uses_old || path.variable == 1;
    }
    const cel::EstimatorOptions options = {
        [&](std::span<const std::string> path) { return SizeBelow(schema, path); }};
    compiled.estimate = Times(cel::EstimateCost(compiled.program->checked, options).max, places);
    return compiled;
  }

  std::unique_ptr<cel::Compiled> CompileText(std::string_view source, const cel::TypeRef& wanted,
                                             std::string_view wanted_name, std::string& error) {
    WorkBudget::Charge(kStepsPerRule + kStepsPerByte * source.size());
    cel::CompileResult result = environment_.Compile(source);
    if (result.compiled == nullptr) {
      error = StrCat("compilation failed: ", result.error.message);
      return nullptr;
    }
    if (!cel::Type::Same(*result.compiled->output_type, *wanted)) {
      error = StrCat("cel expression must evaluate to a ", wanted_name);
      return nullptr;
    }
    return std::move(result.compiled);
  }

  CustomRules& rules_;
  cel::Environment environment_;
};

class CustomRules::Evaluation {
 public:
  Evaluation(const CustomRules& rules, FieldErrors& errors) : rules_(rules), errors_(errors) {}

  void Walk(const FieldPath& path, Value value, Value before, const JsonSchema& schema) {
    if (!schema.has_rules || !value.has_value() || stopped_ || WorkBudget::IsExceeded()) return;
    if (!schema.rules.empty()) Run(path, value, before, schema);
    if (value.is_object()) {
      for (const auto& [key, name, member] : value.members()) {
        if (const JsonSchema* property = schema.Find(name)) {
          Walk(path.Child(name), member, before.Entry(name), *property);
        } else if (schema.additional != nullptr) {
          Walk(path.Key(name), member, before.Entry(name), *schema.additional);
        }
      }
    } else if (value.is_array() && schema.items != nullptr) {
      std::size_t index = 0;
      for (Value element : value.elements()) {
        Walk(path.Index(index++), element, FindBefore(before, element, schema), *schema.items);
      }
    }
  }

 private:
  static Value FindBefore(Value list, Value element, const JsonSchema& schema) {
    if (schema.list_type != JsonSchema::ListType::kMap) return {};
    WorkBudget::Charge(20 * list.size());
    for (Value each : list.elements()) {
      if (std::ranges::all_of(schema.list_keys, [&](std::string_view key) {
            return api::Equal(each.Entry(key), element.Entry(key));
          })) {
        return each;
      }
    }
    return {};
  }

  void Run(const FieldPath& path, Value value, Value before, const JsonSchema& schema) {
    const auto found = rules_.rules_.find(&schema);
    if (found == rules_.rules_.end()) return;
    const std::string_view type = JsonTypeName(schema.type);
    const bool unchanged = before.exists() && api::Equal(value, before);
    cel::Arena arena;
    const cel::Value self = SchemaValue(arena, value, schema);
    const cel::Value old =
        before.has_value() ? SchemaValue(arena, before, schema) : cel::MakeNull();
    for (const Compiled& compiled : found->second) {
      if (stopped_ || WorkBudget::IsExceeded()) return;
      if (compiled.program == nullptr) {
        errors_.push_back(
            FieldError::Invalid(path, type, StrCat("rule compile error: ", compiled.error)));
        continue;
      }
      const bool optional = compiled.rule->source["optionalOldSelf"].boolean();
      if (compiled.uses_old && !before.has_value() && !optional) continue;
      // Unchanged values were accepted before.
      if (unchanged && !compiled.uses_old) continue;
      const cel::Value old_self = !optional            ? old
                                  : before.has_value() ? cel::NewOptional(arena, old)
                                                       : cel::MakeOptional(nullptr);
      const cel::Value variables[] = {self, old_self};
      const cel::Evaluation result =
          compiled.program->program->Evaluate(evaluator_, variables, kMaxRuleCost);
      WorkBudget::Charge(result.cost * kStepsPerCost);
      const std::string text = RuleText(*compiled.rule);
      if (result.cost > budget_) {
        errors_.push_back(FieldError::Invalid(
            path, type,
            "validation failed due to running out of cost budget, no further validation rules will "
            "be run"));
        stopped_ = true;
        return;
      }
      budget_ -= result.cost;
      if (result.cancelled) {
        errors_.push_back(FieldError::Invalid(
            path, type,
            StrCat("'", result.value.error->message,
                   "': no further validation rules will be run due to call cost exceeds limit for "
                   "rule: ",
                   text)));
        stopped_ = true;
        return;
      }
      if (result.value.IsError()) {
        const std::string& why = result.value.error->message;
        errors_.push_back(FieldError::Invalid(
            path, type,
            why.starts_with("no such overload")
                ? StrCat("'", why,
                         "': call arguments did not match a supported operator, function or macro "
                         "signature for rule: ",
                         text)
                : StrCat(why, " evaluating rule: ", text)));
        continue;
      }
      if (!result.value.IsTrue()) AddFailure(path, value, schema, compiled, variables);
    }
  }

  void AddFailure(const FieldPath& path, Value value, const JsonSchema& schema,
                  const Compiled& compiled, std::span<const cel::Value> variables) {
    const Value source = compiled.rule->source;
    std::string detail;
    if (compiled.message != nullptr) {
      const cel::Evaluation result =
          compiled.message->program->Evaluate(evaluator_, variables, kMaxRuleCost);
      WorkBudget::Charge(result.cost * kStepsPerCost);
      if (result.value.kind == cel::Kind::kString) {
        detail = std::string(Trim(result.value.text()));
        if (detail.size() > kMaxMessageBytes || detail.find('\n') != std::string::npos) {
          detail.clear();
        }
      }
    }
    if (detail.empty()) detail = std::string(Trim(source["message"].str()));
    if (detail.empty()) detail = StrCat("failed rule: ", Trim(compiled.rule->rule()));
    FieldPath at = path;
    if (std::string_view below = source["fieldPath"].str(); !below.empty()) {
      if (below.starts_with('.')) below.remove_prefix(1);
      at = path.Child(below);
    }
    const api::BadValue shown = schema.type == Type::kObject || schema.type == Type::kArray
                                    ? api::BadValue::Omitted()
                                    : api::BadValue(value);
    const std::string_view reason = source["reason"].str();
    if (reason == "FieldValueForbidden") {
      errors_.push_back(FieldError::Forbidden(at, detail));
    } else if (reason == "FieldValueRequired") {
      errors_.push_back(FieldError::Required(at, detail));
    } else if (reason == "FieldValueDuplicate") {
      errors_.push_back(FieldError::Duplicate(at, shown));
    } else {
      errors_.push_back(FieldError::Invalid(at, shown, detail));
    }
  }

  const CustomRules& rules_;
  FieldErrors& errors_;
  cel::Evaluator evaluator_;
  std::uint64_t budget_ = kMaxObjectCost;
  bool stopped_ = false;
};

CustomRules::CustomRules(const JsonSchema& schema) : schema_(schema) {
  if (schema.has_rules) Compiler(*this).Walk(schema, kRootType, 1);
}

CustomRules::~CustomRules() = default;

void CustomRules::Check(FieldErrors& errors, Value object, Value before) const {
  if (rules_.empty()) return;
  Evaluation(*this, errors).Walk(FieldPath(), object, before, schema_);
}

namespace {

// The schemas with rules, with their paths in the definition.
void ForEachRuled(const JsonSchema& schema, const FieldPath& path,
                  const std::function<void(const JsonSchema&, const FieldPath&)>& each) {
  if (!schema.has_rules) return;
  if (!schema.rules.empty()) each(schema, path.Child("x-kubernetes-validations"));
  for (const auto& [name, below] : schema.properties) {
    ForEachRuled(*below, path.Child("properties").Key(name), each);
  }
  if (schema.items != nullptr) ForEachRuled(*schema.items, path.Child("items"), each);
  if (schema.additional != nullptr) {
    ForEachRuled(*schema.additional, path.Child("additionalProperties"), each);
  }
}

}  // namespace

void CustomRules::CheckDefinition(FieldErrors& errors, const FieldPath& path) const {
  std::uint64_t total = 0;
  ForEachRuled(schema_, path, [&](const JsonSchema& schema, const FieldPath& at) {
    const auto found = rules_.find(&schema);
    if (found == rules_.end()) return;
    std::size_t index = 0;
    for (const Compiled& compiled : found->second) {
      const FieldPath rule = at.Index(index++);
      const Value source = compiled.rule->source;
      if (Trim(compiled.rule->rule()).empty()) {
        errors.push_back(FieldError::Required(rule.Child("rule"), "rule is not specified"));
        continue;
      }
      if (!compiled.error.empty()) {
        errors.push_back(
            FieldError::Invalid(rule.Child("rule"), compiled.rule->rule(), compiled.error));
      }
      if (!compiled.message_error.empty()) {
        errors.push_back(FieldError::Invalid(rule.Child("messageExpression"),
                                             source["messageExpression"].str(),
                                             compiled.message_error));
      }
      if (const std::string_view message = source["message"].str();
          Trim(message).find_first_of("\r\n") != std::string_view::npos) {
        errors.push_back(FieldError::Invalid(rule.Child("message"), message,
                                             "message must not contain line breaks"));
      }
      if (compiled.estimate > kMaxEstimate) {
        errors.push_back(FieldError::Forbidden(
            rule.Child("rule"),
            CostMessage("estimated rule cost", compiled.estimate, kMaxEstimate)));
      }
      total = cel::Estimate{total, total}.Plus({compiled.estimate, compiled.estimate}).max;
    }
  });
  if (total > kMaxTotalEstimate) {
    errors.push_back(FieldError::Forbidden(
        path, CostMessage("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 "
                          "schema",
                          total, kMaxTotalEstimate)));
  }
}

}  // namespace drakkar::apiserver
