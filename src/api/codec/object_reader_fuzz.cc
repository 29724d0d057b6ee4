#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/codec/object_reader.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "base/result/check.h"

// An object of the kind it states, or of one of two kinds that have most types of fields. Accepted
// input is in canonical form: reading it again changes nothing.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::api;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const auto tree = ParseJson(json, {.refuse_duplicates = false});
  const Value root = tree.ok() ? (*tree)->root() : Value();
  const KindSchema* own = FindKindByApiVersion(root["apiVersion"].str(), root["kind"].str());
  for (const KindSchema* kind :
       {own, FindKind("", "v1", "Pod"), FindKind("resource.k8s.io", "v1", "ResourceSlice")}) {
    if (kind == nullptr) continue;
    const auto once = ReadObject(json, *kind->schema, {.strictness = Strictness::kIgnore});
    if (!once.ok()) continue;
    const auto twice = ConvertObject(once->tree->root(), *kind->schema);
    CHECK(twice.ok());
    CHECK(WriteJson(twice->tree->root()) == WriteJson(once->tree->root()));
  }
  return 0;
}
