#include "apiserver/rest/custom_decode.h"

#include <algorithm>

#include "api/codec/object_reader.h"
#include "api/codec/yaml_reader.h"
#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/custom/definition.h"
#include "apiserver/custom/json_values.h"
#include "apiserver/rest/decode.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

Failure CannotBeHandled(const api::KindSchema& kind, std::string_view why) {
  return api::StatusBadRequest(StrCat(kind.kind, " in version ", Quote(kind.version),
                                      " cannot be handled as a ", kind.kind, ": ", why));
}

// Whether objects, lists and maps are where the schema expects them.
bool HasShape(Value value, const JsonSchema& schema) {
  WorkBudget::Charge(value.size());
  if (!value.has_value() || schema.int_or_string) return true;
  if (schema.type == JsonSchema::Type::kObject) {
    if (!value.is_object()) return false;
    for (const auto& [key, name, member] : value.members()) {
      const JsonSchema* below = schema.Find(name);
      if (below == nullptr) below = schema.additional.get();
      if (below != nullptr && !HasShape(member, *below)) return false;
    }
  } else if (schema.type == JsonSchema::Type::kArray) {
    if (!value.is_array()) return false;
    if (schema.items == nullptr) return true;
    for (Value each : value.elements()) {
      if (!HasShape(each, *schema.items)) return false;
    }
  }
  return true;
}

api::Strictness StrictnessOf(FieldValidation validation) {
  switch (validation) {
    case FieldValidation::kIgnore:
      return api::Strictness::kIgnore;
    case FieldValidation::kWarn:
      return api::Strictness::kWarn;
    case FieldValidation::kStrict:
      return api::Strictness::kStrict;
  }
  return api::Strictness::kWarn;
}

}  // namespace

std::optional<Failure> ParseCustomBody(const Request& request, api::TreePtr& tree,
                                       std::vector<std::string>& warnings) {
  if (request.encoding == Request::Encoding::kProtobuf) {
    return api::StatusUnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml");
  }
  const bool looks = request.field_validation != FieldValidation::kIgnore;
  if (request.encoding == Request::Encoding::kYaml) {
    std::vector<std::string> duplicates;
    api::YamlReadOptions options;
    if (request.field_validation != FieldValidation::kStrict) options.duplicates = &duplicates;
    Result<std::vector<api::TreePtr>> documents = api::ParseYaml(request.text, options);
    if (!documents.ok()) return api::StatusBadRequest(documents.error().message);
    if (documents->size() != 1) {
      return api::StatusBadRequest(
          StrCat("the body of the request must be one YAML document, not ", documents->size()));
    }
    tree = std::move(documents->front());
    if (looks) {
      for (std::string& duplicate : duplicates) warnings.push_back(std::move(duplicate));
    }
    return std::nullopt;
  }
  Result<api::TreePtr> parsed = api::ParseJson(request.text, {.refuse_duplicates = looks});
  if (!parsed.ok() && looks) {
    std::string why = parsed.error().message;
    parsed = api::ParseJson(request.text, {.refuse_duplicates = false});
    if (parsed.ok() && request.field_validation == FieldValidation::kStrict) {
      return CannotBeHandled(*request.kind, StrCat("strict decoding error: ", why));
    }
    if (parsed.ok()) warnings.push_back(std::move(why));
  }
  if (!parsed.ok()) return api::StatusBadRequest(parsed.error().message);
  tree = *std::move(parsed);
  return std::nullopt;
}

std::optional<Failure> NormalizeCustom(const api::KindSchema& kind, const Request& request,
                                       api::TreePtr& tree, std::vector<std::string>& warnings) {
  const CustomVersion& version = *FindCustomVersion(kind);
  if (!tree->root().is_object()) {
    return CannotBeHandled(kind, "json: cannot unmarshal a value that is not an object");
  }
  if (tree->size_bytes() > kMaxTreeBytes) return TooMuchWorkFailure();
  std::vector<std::string> unknown;
  // Metadata has the same schema for every kind.
  if (const Value metadata = tree->root()["metadata"]; metadata.exists()) {
    static const api::StructSchema& schema =
        *api::FindStruct("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    const bool is_strict = request.field_validation == FieldValidation::kStrict;
    Result<api::ObjectReadResult> read =
        api::ConvertObject(metadata, schema,
                           {.strictness = is_strict ? api::Strictness::kWarn
                                                    : StrictnessOf(request.field_validation)});
    if (!read.ok()) return CannotBeHandled(kind, read.error().message);
    for (const std::string& warning : read->warnings) {
      const std::size_t quote = warning.find('"');
      unknown.push_back(
          StrCat(warning.substr(0, quote + 1), "metadata.", warning.substr(quote + 1)));
    }
    api::Draft draft(tree);
    draft["metadata"] = api::Draft(std::move(read->tree));
    tree = draft.Freeze();
  }
  std::vector<std::string> paths;
  tree = PruneUnknown(tree, version.schema(),
                      request.field_validation == FieldValidation::kIgnore ? nullptr : &paths);
  for (const std::string& path : paths) unknown.push_back(StrCat("unknown field ", Quote(path)));
  if (!unknown.empty() && request.field_validation == FieldValidation::kStrict) {
    return CannotBeHandled(kind, StrCat("strict decoding error: ", Join(unknown, ", ")));
  }
  for (std::string& each : unknown) warnings.push_back(std::move(each));
  if (!HasShape(tree->root(), version.schema())) {
    api::FieldErrors errors;
    CheckJsonValue(errors, api::FieldPath(), tree->root(), Value(), version.schema());
    return InvalidFailure(kind, tree->root()["metadata"]["name"].str(), errors);
  }
  return std::nullopt;
}

}  // namespace drakkar::apiserver
