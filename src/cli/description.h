#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/env/clock.h"

namespace drakkar::cli {

// A readable description: labels with values, and sections of them.
struct Entry {
  std::string label;
  std::string value;                                 // lines after the first stand under it
  std::vector<Entry> entries = {};                   // the section's
  std::vector<std::vector<std::string>> table = {};  // rows of a section that is a table
};

struct Description {
  std::vector<Entry> entries;

  Entry& Add(std::string label, std::string_view value = {});
  // Not if the value is empty.
  void AddIfAny(std::string label, std::string_view value);
};

// Values of one section start in one column; sections are two spaces further in.
std::string PrintDescription(const Description& description);

// Name, namespace, labels, annotations, owner: what all objects have.
void DescribeMetadata(Description& out, api::Value object);
// Any value, by its own names: what no special description knows.
void DescribeAny(Description& out, std::string_view name, api::Value value);
void DescribeAnyInto(Entry& section, std::string_view name, api::Value value);
// "a=1\nb=2", or "<none>".
std::string MapText(api::Value map, std::string_view separator = "=");
// Conditions as a table: TYPE, STATUS, and what else there is.
Entry ConditionsEntry(api::Value conditions);
// Events as a table, the oldest first.
Entry EventsEntry(api::Value events, WallTime now);
// "spec.nodeName" -> "Node Name" of its last part.
std::string TitleOf(std::string_view field);

}  // namespace drakkar::cli
