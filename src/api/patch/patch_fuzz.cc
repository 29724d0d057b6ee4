#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/json/reader.h"
#include "api/patch/json_patch.h"
#include "api/patch/merge_patch.h"
#include "api/patch/strategic.h"
#include "api/scheme/scheme.h"
#include "base/result/check.h"

// Two documents, separated by a zero byte: every patch either applies or is rejected, and a merge
// patch computed from two documents leads from one to the other. The first document states its
// kind; the default is a pod.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::api;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t split = text.find('\0');
  if (split == std::string_view::npos) return 0;
  const auto original = ParseJson(text.substr(0, split));
  const auto patch = ParseJson(text.substr(split + 1));
  if (!original.ok() || !patch.ok()) return 0;
  const Value from = (*original)->root();
  const Value to = (*patch)->root();
  const KindSchema* kind = FindKindByApiVersion(from["apiVersion"].str(), from["kind"].str());
  const StructSchema& schema =
      kind != nullptr ? *kind->schema : *FindKindByApiVersion("v1", "Pod")->schema;
  (void)ApplyJsonPatch(from, to, {.max_operations = 100, .max_copied_bytes = 10'000});
  (void)ApplyStrategicPatch(from, to, schema);
  (void)CreateStrategicPatch(from, to, schema);
  const TreePtr nothing = *ParseJson("{}");
  const auto a = ApplyMergePatch(nothing->root(), from);
  const auto b = ApplyMergePatch(nothing->root(), to);
  if (!a.ok() || !b.ok() || !(*a)->root().is_object() || !(*b)->root().is_object()) return 0;
  const auto made =
      ApplyMergePatch((*a)->root(), CreateMergePatch((*a)->root(), (*b)->root())->root());
  CHECK(made.ok());
  CHECK(Equal((*made)->root(), (*b)->root()));
  return 0;
}
