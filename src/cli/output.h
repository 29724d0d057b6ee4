#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"
#include "cli/jsonpath.h"

namespace drakkar::cli {

// How -o wants objects printed.
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

// Objects in every form but tables. One object alone is printed as it is, several (or `as_list`)
// as a v1 List.
std::string PrintObjects(const OutputFormat& format, const std::vector<api::Value>& objects,
                         bool as_list, const PrintOptions& options = {});

// "pod/x" of an object, by its kind; the lower-cased kind if we do not know it.
std::string NameOf(api::Value object);

}  // namespace drakkar::cli
