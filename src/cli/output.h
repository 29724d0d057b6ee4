#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"
#include "cli/jsonpath.h"

namespace drakkar::cli {

// The value of -o.
struct OutputFormat {
  enum class Kind { kTable, kWide, kYaml, kJson, kName, kJsonPath, kCustomColumns };
  Kind kind = Kind::kTable;
  std::optional<JsonPath> path;                           // kJsonPath
  std::vector<std::pair<std::string, JsonPath>> columns;  // kCustomColumns: header and path
  bool is_table() const { return kind == Kind::kTable || kind == Kind::kWide; }
};

// "", "wide", "yaml", "json", "name", "jsonpath=...", "custom-columns=HEADER:PATH,...".
Result<OutputFormat> ParseOutputFormat(const std::string& text);

struct PrintOptions {
  bool no_headers = false;
  bool show_managed_fields = false;
};

// Prints objects in every format but tables: one object as is, several (or with `as_list`) as a v1
// List.
std::string PrintObjects(const OutputFormat& format, const std::vector<api::Value>& objects,
                         bool as_list, const PrintOptions& options = {});

// "pod/x" for an object; uses the lower-cased kind if the kind is unknown.
std::string NameOf(api::Value object);

}  // namespace drakkar::cli
