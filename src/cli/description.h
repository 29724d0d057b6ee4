#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/env/clock.h"

namespace drakkar::cli {

// A human-readable description: labelled values and nested sections.
struct Entry {
  std::string label;
  std::string value;                                 // further lines are aligned under the first
  std::vector<Entry> entries = {};                   // of a section
  std::vector<std::vector<std::string>> table = {};  // rows, if the section is a table
};

struct Description {
  std::vector<Entry> entries;

  Entry& Add(std::string label, std::string_view value = {});
  // Adds nothing if `value` is empty.
  void AddIfAny(std::string label, std::string_view value);
};

// Values within a section are aligned; nested sections are indented by two spaces.
std::string PrintDescription(const Description& description);

// Adds name, namespace, labels, annotations and owner.
void DescribeMetadata(Description& out, api::Value object);
// Adds any value under its own field names; for kinds without a special format.
void DescribeAny(Description& out, std::string_view name, api::Value value);
void DescribeAnyInto(Entry& section, std::string_view name, api::Value value);
// "a=1\nb=2", or "<none>".
std::string MapText(api::Value map, std::string_view separator = "=");
// Conditions as a table: TYPE, STATUS and the other fields.
Entry ConditionsEntry(api::Value conditions);
// Events as a table, oldest first.
Entry EventsEntry(api::Value events, WallTime now);
// "spec.nodeName" becomes "Node Name".
std::string TitleOf(std::string_view field);

}  // namespace drakkar::cli
