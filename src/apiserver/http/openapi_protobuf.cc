#include "apiserver/http/openapi_protobuf.h"

#include "api/codec/protobuf_writer.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/tree/value.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

// The field numbers of openapi.v2 (gnostic's OpenAPIv2.proto).
enum Field : std::uint32_t {
  kSwagger = 1,
  kInfo = 2,
  kPaths = 8,
  kDefinitions = 9,
  kTitle = 1,
  kVersion = 2,
  kName = 1,   // of a named value
  kValue = 2,  // of a named value
  kYaml = 2,   // of Any
  kRef = 1,
  kFormat = 2,
  kDescription = 4,
  kRequired = 19,
  kAdditionalProperties = 21,
  kType = 22,
  kItems = 23,
  kProperties = 25,
  kExtension = 31,
};

void AppendText(std::string& out, Field field, std::string_view text) {
  if (!text.empty()) api::AppendBytes(out, field, text);
}

std::string SchemaOf(Value schema);

std::string NamedSchemas(Value schemas) {
  std::string out;
  for (const auto& [key, name, schema] : schemas.members()) {
    std::string named;
    AppendText(named, kName, name);
    api::AppendBytes(named, kValue, SchemaOf(schema));
    api::AppendBytes(out, 1, named);
  }
  return out;
}

std::string SchemaOf(Value schema) {
  std::string out;
  AppendText(out, kRef, schema["$ref"].str());
  AppendText(out, kFormat, schema["format"].str());
  AppendText(out, kDescription, schema["description"].str());
  for (Value each : schema["required"].elements()) AppendText(out, kRequired, each.str());
  if (const Value more = schema["additionalProperties"]; more.is_object()) {
    std::string item;
    api::AppendBytes(item, 1, SchemaOf(more));
    api::AppendBytes(out, kAdditionalProperties, item);
  }
  if (!schema["type"].str().empty()) {
    std::string item;
    api::AppendBytes(item, 1, schema["type"].str());
    api::AppendBytes(out, kType, item);
  }
  if (schema["items"].is_object()) {
    std::string item;
    api::AppendBytes(item, 1, SchemaOf(schema["items"]));
    api::AppendBytes(out, kItems, item);
  }
  if (schema["properties"].is_object()) {
    api::AppendBytes(out, kProperties, NamedSchemas(schema["properties"]));
  }
  // Extensions are kept as text; JSON is YAML.
  for (const auto& [key, name, value] : schema.members()) {
    if (!name.starts_with("x-")) continue;
    std::string any, named;
    AppendText(any, kYaml, api::WriteJson(value) + "\n");
    AppendText(named, kName, name);
    api::AppendBytes(named, kValue, any);
    api::AppendBytes(out, kExtension, named);
  }
  return out;
}

}  // namespace

std::shared_ptr<const std::string> OpenApiInProtobuf(
    const std::shared_ptr<const std::string>& json) {
  static std::shared_ptr<const std::string> source, made;
  if (json == nullptr) return nullptr;
  if (source != json) {
    made = OpenApiToProtobuf(*json);
    source = json;
  }
  return made;
}

bool AsksForOpenApiProtobuf(std::string_view path, std::string_view accept) {
  // "@v1.0" is the older spelling of ".v1.0".
  return path == "/openapi/v2" &&
         accept.starts_with("application/com.github.proto-openapi.spec.v2");
}

std::shared_ptr<const std::string> OpenApiToProtobuf(std::string_view json) {
  const Result<api::TreePtr> document = api::ParseJson(json);
  if (!document.ok()) return nullptr;
  const Value root = (*document)->root();
  std::string out, info;
  AppendText(out, kSwagger, root["swagger"].str());
  AppendText(info, kTitle, root["info"]["title"].str());
  AppendText(info, kVersion, root["info"]["version"].str());
  api::AppendBytes(out, kInfo, info);
  api::AppendBytes(out, kPaths, "");
  api::AppendBytes(out, kDefinitions, NamedSchemas(root["definitions"]));
  return std::make_shared<const std::string>(std::move(out));
}

}  // namespace drakkar::apiserver
