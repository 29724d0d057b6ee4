#include "cli/output.h"

#include "api/codec/yaml_writer.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "cli/resource_names.h"
#include "cli/table.h"

namespace drakkar::cli {
namespace {

using api::Value;

constexpr std::string_view kFormats =
    "wide, yaml, json, name, jsonpath=TEMPLATE or custom-columns=HEADER:PATH,...";

Result<OutputFormat> ParseColumns(std::string_view text) {
  OutputFormat format;
  format.kind = OutputFormat::Kind::kCustomColumns;
  for (std::string_view part : Split(text, ',')) {
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos || colon == 0) {
      return InvalidArgument(StrCat("custom-columns: ", Quote(part), " is not HEADER:PATH"));
    }
    ASSIGN_OR_RETURN(JsonPath path, JsonPath::ParsePath(part.substr(colon + 1)));
    format.columns.emplace_back(part.substr(0, colon), std::move(path));
  }
  return format;
}

// Drops metadata.managedFields unless it was asked for.
api::TreePtr Clean(Value object, bool keep_managed_fields) {
  api::Draft draft(object);
  if (!keep_managed_fields && object["metadata"]["managedFields"].exists()) {
    draft["metadata"].Remove("managedFields");
  }
  return draft.Freeze();
}

std::string PrintColumns(const OutputFormat& format, const std::vector<Value>& objects,
                         bool no_headers) {
  std::vector<std::vector<std::string>> rows;
  if (!no_headers) {
    rows.emplace_back();
    for (const auto& [header, path] : format.columns) rows.back().push_back(header);
  }
  for (Value object : objects) {
    rows.emplace_back();
    for (const auto& [header, path] : format.columns) {
      std::vector<std::string> texts;
      for (Value value : path.Find(object)) texts.push_back(PlainText(value));
      rows.back().push_back(texts.empty() ? "<none>" : Join(texts, ","));
    }
  }
  std::vector<std::size_t> widths;
  return LayOut(rows, widths);
}

}  // namespace

Result<OutputFormat> ParseOutputFormat(const std::string& text) {
  OutputFormat format;
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (name == "jsonpath" || name == "custom-columns") {
    if (value.empty())
      return InvalidArgument(StrCat("-o ", name, " needs a template, as in -o ", name, "=..."));
    if (name == "custom-columns") return ParseColumns(value);
    format.kind = OutputFormat::Kind::kJsonPath;
    ASSIGN_OR_RETURN(format.path, JsonPath::Parse(value));
    return format;
  }
  if (text.empty()) return format;
  if (text == "wide") {
    format.kind = OutputFormat::Kind::kWide;
  } else if (text == "yaml") {
    format.kind = OutputFormat::Kind::kYaml;
  } else if (text == "json") {
    format.kind = OutputFormat::Kind::kJson;
  } else if (text == "name") {
    format.kind = OutputFormat::Kind::kName;
  } else {
    return InvalidArgument(StrCat("unknown output format ", Quote(text), ": must be ", kFormats));
  }
  return format;
}

std::string NameOf(Value object) {
  const std::string_view name = object["metadata"]["name"].str();
  const api::KindSchema* kind =
      api::FindKindByApiVersion(object["apiVersion"].str(), object["kind"].str());
  if (kind != nullptr) return ObjectName(*kind, name);
  return StrCat(ToLower(object["kind"].str()), "/", name);
}

std::string PrintObjects(const OutputFormat& format, const std::vector<Value>& objects,
                         bool as_list, const PrintOptions& options) {
  if (format.kind == OutputFormat::Kind::kName) {
    std::string out;
    for (Value object : objects) out += NameOf(object) + "\n";
    return out;
  }
  if (format.kind == OutputFormat::Kind::kCustomColumns) {
    return PrintColumns(format, objects, options.no_headers);
  }
  api::TreePtr tree;
  if (objects.size() == 1 && !as_list) {
    tree = Clean(objects.front(), options.show_managed_fields);
  } else {
    api::Draft list = {{"apiVersion", "v1"}, {"items", api::Draft::Array()}, {"kind", "List"}};
    for (Value object : objects) {
      list["items"].Append(api::Draft(Clean(object, options.show_managed_fields)));
    }
    list["metadata"]["resourceVersion"] = "";
    tree = list.Freeze();
  }
  switch (format.kind) {
    case OutputFormat::Kind::kJson: {
      api::WriteOptions json;
      json.indent = 4;
      json.sort_members = true;
      json.escape_html = false;
      json.final_newline = true;
      std::string text = api::WriteJson(tree->root(), json);
      if (!text.ends_with('\n')) text += '\n';
      return text;
    }
    case OutputFormat::Kind::kJsonPath:
      return format.path->Print(tree->root());
    default:
      return api::WriteYaml(tree->root());
  }
}

}  // namespace drakkar::cli
