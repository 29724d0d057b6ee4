#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "base/env/clock.h"

// Builds the cells of a row, per kind. Used by table.cc only.
namespace drakkar::apiserver {

struct TableOptions;

// The cells of one row, in the order of the kind's columns in schema/kinds.schema.
class Cells {
 public:
  Cells(const api::Object& object, const TableOptions& options)
      : object_(object), options_(options) {}

  api::Value operator[](api::FieldName name) const { return object_[name]; }
  const api::Object& object() const { return object_; }
  const TableOptions& options() const { return options_; }

  void Add(api::Draft cell) { cells_.push_back(std::move(cell)); }
  // The text, or `fallback` if it is empty.
  void AddText(std::string_view text, std::string_view fallback = "") {
    Add(text.empty() ? fallback : text);
  }
  void AddName() { Add(object_.name()); }
  void AddAge();      // of the object itself
  void AddCreated();  // the creation time, not the age

  // "5m", or "<unknown>" if the time is not set.
  std::string AgeOf(std::string_view time) const;

  std::vector<api::Draft> Take() { return std::move(cells_); }
  std::size_t size() const { return cells_.size(); }

 private:
  const api::Object& object_;
  const TableOptions& options_;
  std::vector<api::Draft> cells_;
};

using CellWriter = void (*)(Cells& cells);

// The writer for a kind, or null: then the columns are Name and Age.
CellWriter FindCellWriter(std::string_view group, std::string_view kind);

// One list per file; FindCellWriter searches all of them.
struct CellWriterEntry {
  std::string_view group;
  std::string_view kind;
  CellWriter write;
};
std::vector<CellWriterEntry> AdmissionCellWriters();
std::vector<CellWriterEntry> PodCellWriters();
std::vector<CellWriterEntry> ClusterCellWriters();
std::vector<CellWriterEntry> ResourceCellWriters();
std::vector<CellWriterEntry> WorkloadCellWriters();
std::vector<CellWriterEntry> StorageCellWriters();
std::vector<CellWriterEntry> BatchCellWriters();
std::vector<CellWriterEntry> NetworkCellWriters();

// Shared by several kinds.
std::string JoinTexts(api::Value list, std::string_view separator);
// "a=b,c=d"; "<none>" if empty.
std::string MapText(api::Value map);
void AddContainersAndImages(Cells& cells, api::Value pod_spec);

}  // namespace drakkar::apiserver
