#include "apiserver/http/openapi_foreign.h"

#include <algorithm>
#include <array>
#include <string>

#include "api/json/reader.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::Value;

constexpr std::string_view kOldReference = "#/components/schemas/";
constexpr std::string_view kReference = "#/definitions/";

// Members of a schema that are copied as they are.
constexpr std::array<std::string_view, 21> kPlain = {
    "format",          "title",         "description",   "default",   "multipleOf",
    "maximum",         "minimum",       "maxLength",     "minLength", "pattern",
    "maxItems",        "minItems",      "required",      "enum",      "type",
    "uniqueItems",     "maxProperties", "minProperties", "readOnly",  "exclusiveMaximum",
    "exclusiveMinimum"};

std::string Reference(std::string_view text) {
  if (!text.starts_with(kOldReference)) return std::string(text);
  return StrCat(kReference, text.substr(kOldReference.size()));
}

Draft ToVersion2(Value schema);

Draft EachToVersion2(Value schemas) {
  Draft converted = Draft::Object();
  for (const auto& [key, name, schema] : schemas.members()) {
    converted.Entry(name) = ToVersion2(schema);
  }
  return converted;
}

Draft ToVersion2(Value schema) {
  // true: anything
  if (!schema.is_object()) return schema.kind() == api::ValueKind::kBool ? Draft(schema) : Draft();
  Draft converted = Draft::Object();
  for (const auto& [key, name, value] : schema.members()) {
    if (name == "$ref") {
      converted.Entry(name) = Reference(value.str());
    } else if (name == "properties") {
      converted.Entry(name) = EachToVersion2(value);
    } else if (name == "items" || name == "additionalProperties") {
      converted.Entry(name) = ToVersion2(value);
    } else if (name == "allOf" && value.size() == 1) {
      // How version 3 adds a description to a reference.
      for (const auto& [inner_key, inner_name, inner] : value.at(0).members()) {
        if (inner_name == "$ref") converted.Entry(inner_name) = Reference(inner.str());
      }
    } else if (name.starts_with("x-") || std::ranges::find(kPlain, name) != kPlain.end()) {
      converted.Entry(name) = Draft(value);
    }
  }
  return converted;
}

}  // namespace

void AddForeignDefinitions(Draft& definitions, std::string_view document) {
  const Result<api::TreePtr> read = api::ParseJson(document);
  if (!read.ok()) return;
  definitions.KeepAlive(*read);
  for (const auto& [key, name, schema] : (*read)->root()["components"]["schemas"].members()) {
    if (!definitions.HasEntry(name)) definitions.Entry(name) = ToVersion2(schema);
  }
}

}  // namespace drakkar::apiserver
