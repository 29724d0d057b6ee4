#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/meta/field_error.h"
#include "api/tree/value.h"
#include "cel/library/pattern.h"

namespace drakkar::apiserver {

// A rule of x-kubernetes-validations, as written.
struct JsonSchemaRule {
  api::Value source;  // in the definition's tree
  std::string_view rule() const { return source["rule"].str(); }
};

// What a value must satisfy beyond its type. Most values have none.
struct JsonValueRules;

// A structural schema of a custom resource: openAPIV3Schema of one version, or a part of it.
// Immutable and safe to read from any thread. Borrows from the definition's tree.
struct JsonSchema {
  enum class Type : std::uint8_t {
    kNone,  // anything
    kObject,
    kArray,
    kString,
    kInteger,
    kNumber,
    kBoolean,
  };
  enum class ListType : std::uint8_t { kAtomic, kSet, kMap };

  JsonSchema();
  ~JsonSchema();
  JsonSchema(JsonSchema&&) noexcept;
  JsonSchema& operator=(JsonSchema&&) noexcept;

  const JsonSchema* Find(std::string_view property) const;
  // A schema of objects with free keys: additionalProperties.
  bool is_map() const { return additional != nullptr || allows_any; }

  Type type = Type::kNone;
  ListType list_type = ListType::kAtomic;
  bool nullable = false;
  bool preserves_unknown = false;
  bool is_embedded = false;  // x-kubernetes-embedded-resource, and the root
  bool int_or_string = false;
  bool is_atomic = false;   // x-kubernetes-map-type: atomic
  bool allows_any = false;  // additionalProperties: true
  // Here or below.
  bool has_defaults = false;
  bool has_rules = false;
  std::vector<std::pair<std::string_view, std::unique_ptr<JsonSchema>>> properties;  // by name
  std::unique_ptr<JsonSchema> additional;
  std::unique_ptr<JsonSchema> items;
  std::vector<std::string_view> list_keys;
  std::vector<std::string_view> required;
  api::Value default_value;  // absent: none
  std::string_view format;
  std::unique_ptr<JsonValueRules> values;
  std::vector<JsonSchemaRule> rules;
  api::Value source;
};

struct JsonValueRules {
  std::optional<double> maximum;
  std::optional<double> minimum;
  bool exclusive_maximum = false;
  bool exclusive_minimum = false;
  std::optional<double> multiple_of;
  std::optional<std::int64_t> max_length;
  std::optional<std::int64_t> min_length;
  std::optional<std::int64_t> max_items;
  std::optional<std::int64_t> min_items;
  std::optional<std::int64_t> max_properties;
  std::optional<std::int64_t> min_properties;
  std::string_view pattern_text;
  std::unique_ptr<cel::library::Pattern> pattern;
  api::Value enumeration;
  std::vector<JsonSchema> all_of;
  std::vector<JsonSchema> any_of;
  std::vector<JsonSchema> one_of;
  std::unique_ptr<JsonSchema> negated;
};

std::string_view JsonTypeName(JsonSchema::Type type);  // "integer"

// Reads a schema and checks that it is structural. `source` must outlive the result; `path` is that
// of the schema in the definition. Errors are Kubernetes'.
JsonSchema ReadJsonSchema(api::Value source, const api::FieldPath& path, api::FieldErrors& errors);

}  // namespace drakkar::apiserver
