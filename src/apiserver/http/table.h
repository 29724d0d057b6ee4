#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "api/meta/object.h"
#include "base/env/clock.h"

namespace drakkar::api {
struct KindSchema;
}

namespace drakkar::apiserver {

struct TableOptions {
  // What a row includes of its object besides the cells: nothing, its metadata as
  // PartialObjectMetadata, or the whole object.
  enum class Include { kNone, kMetadata, kObject };
  Include include_object = Include::kMetadata;
  // Leaves out the column definitions: for watch events after the first.
  bool omit_columns = false;
  // The time that ages are relative to.
  WallTime now{};

  // The list's own metadata.
  std::string resource_version;
  std::string continue_token;
  std::optional<std::int64_t> remaining_items;

  // How many devices of a slice are allocated; if empty or nullopt, shown as unknown.
  std::function<std::optional<std::int64_t>(const api::Object& slice)> allocated_devices;
};

// Objects of one kind as a meta.k8s.io/v1 Table with the columns that kubectl users know. Pure.
api::TreePtr MakeTable(const api::KindSchema& kind, std::span<const api::ObjectPtr> objects,
                       const TableOptions& options);

// "None", "Metadata" or "Object", as in the query parameter includeObject; nullopt otherwise.
std::optional<TableOptions::Include> ParseIncludeObject(std::string_view text);

}  // namespace drakkar::apiserver
