// A schema of a custom resource, and on the next lines two states of an object. Whatever they are,
// the object is pruned, defaulted and checked without a crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/json/reader.h"
#include "api/tree/draft.h"
#include "apiserver/custom/definition_rules.h"
#include "apiserver/custom/json_schema.h"
#include "apiserver/custom/json_values.h"
#include "apiserver/custom/rules.h"
#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

api::TreePtr ReadObject(std::string_view text) {
  auto tree = api::ParseJson(text);
  if (tree.ok() && (*tree)->root().is_object()) return *std::move(tree);
  return api::Draft::Object().Freeze();
}

api::TreePtr DefinitionWith(api::Value schema) {
  api::Draft version{{"name", "v1"},
                     {"served", true},
                     {"storage", true},
                     {"schema", {{"openAPIV3Schema", api::Draft(schema)}}}};
  api::Draft versions = api::Draft::Array();
  versions.Append(std::move(version));
  api::Draft definition{
      {"metadata", {{"name", "things.example.com"}}},
      {"spec",
       {{"group", "example.com"},
        {"scope", "Namespaced"},
        {"names", {{"plural", "things"}, {"singular", "thing"}, {"kind", "Thing"}}},
        {"versions", std::move(versions)}}}};
  return definition.Freeze();
}

}  // namespace
}  // namespace drakkar::apiserver

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  using namespace drakkar::apiserver;
  const std::vector<std::string_view> lines =
      Split(std::string_view(reinterpret_cast<const char*>(data), size), '\n');
  const auto source = api::ParseJson(lines[0]);
  if (!source.ok()) return 0;
  static_cast<void>(ValidateDefinition(DefinitionWith((*source)->root())->root(), api::Value()));
  api::FieldErrors errors;
  const JsonSchema schema = ReadJsonSchema((*source)->root(), api::FieldPath("schema"), errors);
  if (!errors.empty()) return 0;
  const api::TreePtr before = ReadObject(lines.size() > 1 ? lines[1] : "");
  std::vector<std::string> unknown;
  api::TreePtr object =
      PruneUnknown(ReadObject(lines.size() > 2 ? lines[2] : ""), schema, &unknown);
  CHECK(unknown.size() <= kMaxUnknownFields);
  // What is pruned once has nothing more to prune.
  CHECK(PruneUnknown(object, schema, nullptr) == object);
  api::Draft draft(object);
  ApplyJsonDefaults(draft, schema);
  object = draft.Freeze();
  CheckJsonValue(errors, api::FieldPath(), object->root(), before->root(), schema);
  const CustomRules rules(schema);
  rules.Check(errors, object->root(), before->root());
  return 0;
}
