#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/meta/field_error.h"
#include "apiserver/custom/json_schema.h"
#include "cel/environment/environment.h"

namespace drakkar::apiserver {

// The rules of x-kubernetes-validations of one version, compiled. Immutable; `schema` must outlive
// it.
class CustomRules {
 public:
  // What a rule may cost: by its estimate when the definition is written, and per evaluation.
  static constexpr std::uint64_t kMaxEstimate = 10'000'000;
  static constexpr std::uint64_t kMaxTotalEstimate = 100'000'000;
  static constexpr std::uint64_t kMaxRuleCost = 1'000'000;
  static constexpr std::uint64_t kMaxObjectCost = 10'000'000;

  explicit CustomRules(const JsonSchema& schema);
  ~CustomRules();

  // Evaluates the rules for an object. Rules about a transition are skipped without `before`.
  void Check(api::FieldErrors& errors, api::Value object, api::Value before) const;

  // Why rules are not accepted in a definition: they do not compile, have the wrong type, or cost
  // too much. `path` is that of the schema.
  void CheckDefinition(api::FieldErrors& errors, const api::FieldPath& path) const;

 private:
  struct Compiled {
    const JsonSchemaRule* rule = nullptr;
    std::unique_ptr<cel::Compiled> program;  // null: it did not compile
    std::string error;
    std::unique_ptr<cel::Compiled> message;
    std::string message_error;
    bool uses_old = false;
    std::uint64_t estimate = 0;  // for all places where it is evaluated
  };
  class Compiler;
  class Evaluation;

  const JsonSchema& schema_;
  std::unordered_map<const JsonSchema*, std::vector<Compiled>> rules_;
};

}  // namespace drakkar::apiserver
