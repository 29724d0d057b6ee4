#include "apiserver/http/table.h"

#include <algorithm>

#include "api/meta/age.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "apiserver/custom/definition.h"
#include "apiserver/http/table_cells.h"
#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;

constexpr api::ColumnSchema kNameAndAge[] = {
    {"Name", "string", "name", 0, "Name must be unique within its namespace."},
    {"Age", "string", "", 0, "How long ago the object was created."},
};

std::span<const api::ColumnSchema> ColumnsOf(const api::KindSchema& kind) {
  return kind.columns.empty() ? std::span<const api::ColumnSchema>(kNameAndAge) : kind.columns;
}

// For kinds without a cell writer: the columns that every object has.
void WriteCommonCells(Cells& cells, std::span<const api::ColumnSchema> columns) {
  for (const api::ColumnSchema& column : columns) {
    if (column.name == "Name") {
      cells.AddName();
    } else if (column.name == "Age") {
      cells.AddAge();
    } else if (column.name == "Created At") {
      cells.AddCreated();
    } else {
      cells.Add("<none>");
    }
  }
}

// A printer column: what its path finds, in the type of the column.
Draft CustomCell(const Cells& cells, const api::ColumnSchema& column, const api::JsonPath& path) {
  const std::vector<api::Value> found = path.Find(cells.object().root());
  if (found.empty() || !found[0].has_value()) return nullptr;
  const api::Value value = found[0];
  if (column.type == "date") return cells.AgeOf(value.str());
  if (column.type == "integer") {
    if (value.kind() == api::ValueKind::kInt) return value.integer();
    if (value.kind() == api::ValueKind::kDouble) {
      return static_cast<std::int64_t>(value.number());
    }
    return nullptr;
  }
  if (column.type == "number") {
    const bool is_number =
        value.kind() == api::ValueKind::kInt || value.kind() == api::ValueKind::kDouble;
    return is_number ? Draft(value.number()) : Draft(nullptr);
  }
  if (column.type == "boolean") {
    const std::optional<bool> boolean = value.optional_boolean();
    return boolean ? Draft(*boolean) : Draft(nullptr);
  }
  std::vector<std::string> texts;
  for (api::Value each : found) texts.push_back(api::PlainText(each));
  return Join(texts, ",");
}

void WriteCustomCells(Cells& cells, const CustomVersion& version) {
  cells.AddName();
  for (std::size_t i = 0; i < version.column_paths().size(); ++i) {
    cells.Add(CustomCell(cells, version.kind().columns[i + 1], version.column_paths()[i]));
  }
}

Draft MakeRow(const api::ObjectPtr& object, CellWriter write, const CustomVersion* custom,
              std::span<const api::ColumnSchema> columns, const TableOptions& options) {
  Cells cells(*object, options);
  if (custom != nullptr && !custom->column_paths().empty()) {
    WriteCustomCells(cells, *custom);
  } else if (write != nullptr) {
    write(cells);
  } else {
    WriteCommonCells(cells, columns);
  }
  CHECK(cells.size() == columns.size());
  Draft row = Draft::Object();
  row["cells"] = Draft::Array(cells.Take());
  switch (options.include_object) {
    case TableOptions::Include::kNone:
      row["object"] = nullptr;
      break;
    case TableOptions::Include::kMetadata:
      row["object"] = Draft({{"kind", "PartialObjectMetadata"},
                             {"apiVersion", "meta.k8s.io/v1"},
                             {"metadata", Draft((*object)["metadata"])}});
      break;
    case TableOptions::Include::kObject:
      row["object"] = Draft(object->root());
      break;
  }
  return row;
}

Draft MakeColumns(std::span<const api::ColumnSchema> columns) {
  Draft list = Draft::Array();
  for (const api::ColumnSchema& column : columns) {
    list.Append(Draft({{"name", column.name},
                       {"type", column.type},
                       {"format", column.format},
                       {"description", column.description},
                       {"priority", column.priority}}));
  }
  return list;
}

}  // namespace

api::TreePtr MakeTable(const api::KindSchema& kind, std::span<const api::ObjectPtr> objects,
                       const TableOptions& options) {
  const std::span<const api::ColumnSchema> columns = ColumnsOf(kind);
  const CellWriter write = FindCellWriter(kind.group, kind.kind);
  const CustomVersion* custom = FindCustomVersion(kind);
  Draft rows = Draft::Array();
  for (const api::ObjectPtr& object : objects) {
    rows.Append(MakeRow(object, write, custom, columns, options));
  }
  Draft metadata = Draft::Object();
  if (!options.resource_version.empty()) metadata["resourceVersion"] = options.resource_version;
  if (!options.continue_token.empty()) metadata["continue"] = options.continue_token;
  if (options.remaining_items) metadata["remainingItemCount"] = *options.remaining_items;
  Draft table({{"kind", "Table"},
               {"apiVersion", "meta.k8s.io/v1"},
               {"metadata", std::move(metadata)},
               {"columnDefinitions", options.omit_columns ? Draft(nullptr) : MakeColumns(columns)},
               {"rows", std::move(rows)}});
  return table.Freeze();
}

std::optional<TableOptions::Include> ParseIncludeObject(std::string_view text) {
  if (text == "None") return TableOptions::Include::kNone;
  if (text == "Metadata" || text.empty()) return TableOptions::Include::kMetadata;
  if (text == "Object") return TableOptions::Include::kObject;
  return std::nullopt;
}

std::string Cells::AgeOf(std::string_view time) const {
  if (time.empty()) return "<unknown>";
  const Result<WallTime> parsed = api::ParseTime(time);
  if (!parsed.ok()) return "<unknown>";
  return api::FormatAge(options_.now - *parsed);
}

void Cells::AddAge() {
  Add(AgeOf(object_["metadata"]["creationTimestamp"].str()));
}

void Cells::AddCreated() {
  AddText(object_["metadata"]["creationTimestamp"].str(), "<unknown>");
}

CellWriter FindCellWriter(std::string_view group, std::string_view kind) {
  static const std::vector<CellWriterEntry> entries = [] {
    std::vector<CellWriterEntry> all;
    for (auto list :
         {PodCellWriters(), ClusterCellWriters(), ResourceCellWriters(), WorkloadCellWriters(),
          StorageCellWriters(), BatchCellWriters(), NetworkCellWriters(), AdmissionCellWriters()}) {
      all.insert(all.end(), list.begin(), list.end());
    }
    return all;
  }();
  for (const CellWriterEntry& entry : entries) {
    if (entry.kind == kind && entry.group == group) return entry.write;
  }
  return nullptr;
}

std::string JoinTexts(api::Value list, std::string_view separator) {
  std::vector<std::string_view> texts;
  for (api::Value each : list.elements()) texts.push_back(each.str());
  return Join(texts, separator);
}

std::string MapText(api::Value map) {
  std::vector<std::string> parts;
  for (const api::MemberView& member : map.members()) {
    parts.push_back(StrCat(member.name, "=", member.value.str()));
  }
  std::ranges::sort(parts);
  return parts.empty() ? "<none>" : Join(parts, ",");
}

void AddContainersAndImages(Cells& cells, api::Value pod_spec) {
  std::vector<std::string_view> names;
  std::vector<std::string_view> images;
  for (api::Value container : pod_spec["containers"].elements()) {
    names.push_back(container["name"].str());
    images.push_back(container["image"].str());
  }
  cells.Add(Join(names, ","));
  cells.Add(Join(images, ","));
}

}  // namespace drakkar::apiserver
