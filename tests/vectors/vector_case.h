#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/field_error.h"
#include "api/tree/value.h"
#include "features/gates/feature_gates.h"

namespace drakkar::vectors {

// The directory of the vectors: DRAKKAR_VECTORS, default ../shared/vectors from the source root.
std::string Root();
bool Available(std::string_view area);
// The names of an area's files, without their folder; sorted.
std::vector<std::string> FilesOf(std::string_view area, std::string_view extension);
std::string ReadText(std::string_view area, std::string_view file);

// A line of a .jsonl file. Opaque values in objects are kept byte for byte.
struct Case {
  std::string file;  // "resourceslice.v1"
  api::TreePtr line;
  api::TreePtr object;
  api::TreePtr before;  // null on create
  api::Value operator[](std::string_view name) const { return line->root().Entry(name); }
  std::string name() const { return std::string(line->root()["case"].str()); }
};
// `failure` is set if the case cannot be read.
std::optional<Case> ReadCase(const std::string& file, const std::string& text,
                             std::string& failure);

// The gates of a case; unknown names are ignored.
FeatureGates GatesOf(api::Value feature_gates);

// Reads an object by its apiVersion and kind, as the server reads requests; with `zero_values` also
// sets the fields that responses always have.
api::TreePtr ReadApiObject(std::string_view json, std::string& failure, bool zero_values = false);

// The reverse: opaque values that are not JSON are written as in the vectors.
std::string WriteApiObject(api::Value object);

// The differences between expected and actual errors, as multisets or (with `once`) as sets; empty
// if there are none.
std::string CompareErrors(api::Value expected, const api::FieldErrors& actual, bool once);

// Cases that we answer differently on purpose: area, file and case, with the row of
// docs/compatibility.md.
class Deviations {
 public:
  explicit Deviations(std::string_view area);
  // The row of a listed case, or empty.
  std::string RowOf(const std::string& file, const std::string& name) const;

 private:
  std::map<std::string, std::string> rows_;
};

// Counts the cases of an area and prints its line: "AREA: N passed, N failed, N listed deviations".
class Tally {
 public:
  explicit Tally(std::string_view area) : area_(area), deviations_(area) {}
  // `problem` is empty if our answer agrees.
  void Count(const std::string& file, const std::string& name, const std::string& problem);
  // Prints the line; fails the running test if a case failed, or if a listed deviation agrees.
  void Finish();

 private:
  std::string area_;
  Deviations deviations_;
  int passed_ = 0;
  int failed_ = 0;
  int deviating_ = 0;
  std::vector<std::string> agreeing_;
};

}  // namespace drakkar::vectors
