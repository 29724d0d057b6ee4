// Server-side apply of a configuration to an existing object; a zero byte separates the two. The
// result contains what was applied, and applying it again is a no-op.
#include <cstddef>
#include <cstdint>
#include <variant>

#include "api/apply/managed_fields.h"
#include "api/apply/typed_value.h"
#include "api/codec/object_reader.h"
#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "base/result/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::api;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t split = text.find('\0');
  if (split == std::string_view::npos) return 0;
  const auto applied = ParseJson(text.substr(split + 1));
  if (!applied.ok() || !(*applied)->root().is_object()) return 0;
  const std::string_view version = (*applied)->root()["apiVersion"].str();
  const KindSchema* kind = FindKindByApiVersion(version, (*applied)->root()["kind"].str());
  if (kind == nullptr) return 0;
  // The existing object has gone through the reader.
  const auto read =
      ReadObject(text.substr(0, split), *kind->schema, {.strictness = Strictness::kIgnore});
  const Value live = read.ok() ? read->tree->root() : Value();
  FieldManager by;
  by.manager = "m";
  by.api_version = version;
  by.schema = kind->schema;
  by.now = "2025-01-02T00:00:00Z";
  static_cast<void>(ApplyConfiguration(live, (*applied)->root(), false, by));
  auto first = ApplyConfiguration(live, (*applied)->root(), true, by);
  if (const Status* status = std::get_if<Status>(&first)) {
    CHECK(status->code >= 400 && !status->message.empty());
    return 0;
  }
  const auto made = ConvertObject(std::get<Applied>(first).object->root(), *kind->schema,
                                  {.strictness = Strictness::kIgnore});
  if (!made.ok()) return 0;
  static_cast<void>(TrackUpdate(live, made->tree->root(), by));
  const auto again = ApplyConfiguration(made->tree->root(), (*applied)->root(), false, by);
  CHECK(std::holds_alternative<Applied>(again));
  return 0;
}
