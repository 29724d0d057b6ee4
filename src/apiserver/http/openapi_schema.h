#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"

// Builds OpenAPI schemas from the scheme's tables. Used by openapi.cc only.
namespace drakkar::apiserver {

class CustomVersion;

enum class OpenApiVersion { kV2, kV3 };

// Collects schemas: asking for a reference adds the schema, and all that it refers to, to the
// definitions.
class SchemaCollector {
 public:
  explicit SchemaCollector(OpenApiVersion version) : version_(version) {}

  // {"$ref": "#/components/schemas/<name>"}
  api::Draft Reference(const api::StructSchema& structure);
  // The schema of a custom resource as its definition has it, under the name of its struct.
  void AddCustom(const CustomVersion& version);
  // The body of a patch: any object.
  api::Draft PatchReference();
  // All schemas, sorted by name.
  api::Draft Take();

 private:
  api::Draft NamedReference(std::string_view name);
  api::Draft Leaf(std::string_view name);
  api::Draft TypeOf(const api::TypeSchema& type);
  api::Draft FieldOf(const api::FieldSchema& field);
  api::Draft StructOf(const api::StructSchema& structure);

  OpenApiVersion version_;
  std::map<std::string, api::Draft, std::less<>> schemas_;
  std::set<std::string, std::less<>> started_;
  std::vector<const api::StructSchema*> waiting_;
};

}  // namespace drakkar::apiserver
