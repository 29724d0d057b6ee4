#include "cli/description.h"

#include <algorithm>

#include "api/meta/annotations.h"
#include "base/text/text.h"
#include "cli/age.h"
#include "cli/jsonpath.h"
#include "cli/printable.h"
#include "cli/table.h"

namespace drakkar::cli {
namespace {

using api::Value;

constexpr std::size_t kIndent = 2;
// Long values are meant for programs and are truncated.
constexpr std::size_t kMaxValueBytes = 200;
// Depth limit for nested values without a special format.
constexpr int kMaxDepth = 20;

std::string Shortened(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  if (text.size() > kMaxValueBytes) text = text.substr(0, kMaxValueBytes) + "...";
  return text;
}

void Print(const std::vector<Entry>& entries, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  std::size_t width = 0;
  for (const Entry& entry : entries) {
    if (!entry.value.empty()) width = std::max(width, entry.label.size());
  }
  for (const Entry& entry : entries) {
    out += StrCat(margin, entry.label, ":");
    if (!entry.value.empty()) {
      bool first = true;
      for (std::string_view line : Split(entry.value, '\n')) {
        out += first ? std::string(width - entry.label.size() + 2, ' ')
                     : StrCat("\n", margin, std::string(width + 3, ' '));
        out += line;
        first = false;
      }
    }
    out += '\n';
    Print(entry.entries, indent + kIndent, out);
    std::vector<std::size_t> widths;
    const std::string table = LayOut(entry.table, widths);
    for (std::string_view line : Split(table, '\n')) {
      if (!line.empty()) out += StrCat(margin, std::string(kIndent, ' '), line, "\n");
    }
  }
}

bool IsScalar(Value value) {
  return !value.is_array() && !value.is_object();
}

Entry AnyEntry(std::string label, Value value, int depth) {
  Entry entry{std::move(label), ""};
  if (IsScalar(value) || depth > kMaxDepth) {
    entry.value = Shortened(PlainText(value));
    if (entry.value.empty()) entry.value = "<none>";
    return entry;
  }
  if (value.empty()) {
    entry.value = "<none>";
    return entry;
  }
  if (value.is_object()) {
    for (const auto& member : value.members()) {
      entry.entries.push_back(AnyEntry(TitleOf(member.name), member.value, depth + 1));
    }
    return entry;
  }
  if (IsScalar(value.at(0))) {
    std::vector<std::string> lines;
    for (Value element : value.elements()) lines.push_back(Shortened(PlainText(element)));
    entry.value = Join(lines, "\n");
    return entry;
  }
  std::size_t index = 0;
  for (Value element : value.elements()) {
    std::string name(element["name"].str());
    if (name.empty()) name = element["type"].str();
    if (name.empty()) name = StrCat(index);
    entry.entries.push_back(AnyEntry(std::move(name), element, depth + 1));
    ++index;
  }
  return entry;
}

}  // namespace

Entry& Description::Add(std::string label, std::string_view value) {
  entries.push_back({std::move(label), std::string(value)});
  return entries.back();
}

void Description::AddIfAny(std::string label, std::string_view value) {
  if (!value.empty()) Add(std::move(label), value);
}

std::string PrintDescription(const Description& description) {
  std::string out;
  Print(description.entries, 0, out);
  return Printable(out);
}

std::string TitleOf(std::string_view field) {
  std::string title;
  char before = '\0';
  for (std::size_t i = 0; i < field.size(); ++i) {
    const char c = field[i];
    const bool is_upper = c >= 'A' && c <= 'Z';
    const bool was_lower = before >= 'a' && before <= 'z';
    const bool next_lower = i + 1 < field.size() && field[i + 1] >= 'a' && field[i + 1] <= 'z';
    const bool was_upper = before >= 'A' && before <= 'Z';
    if (is_upper && (was_lower || (was_upper && next_lower))) title += ' ';
    title += i == 0 && c >= 'a' && c <= 'z' && field.find_first_of("./-") == std::string_view::npos
                 ? static_cast<char>(c - 'a' + 'A')
                 : c;
    before = c;
  }
  return title;
}

std::string MapText(Value map, std::string_view separator) {
  std::vector<std::string> lines;
  for (const auto& member : map.members()) {
    lines.push_back(StrCat(member.name, separator, Shortened(PlainText(member.value))));
  }
  std::ranges::sort(lines);
  return lines.empty() ? "<none>" : Join(lines, "\n");
}

void DescribeMetadata(Description& out, Value object) {
  const Value metadata = object["metadata"];
  out.Add("Name", metadata["name"].str());
  out.AddIfAny("Namespace", metadata["namespace"].str());
  out.Add("Labels", MapText(metadata["labels"]));
  std::vector<std::string> annotations;
  for (const auto& member : metadata["annotations"].members()) {
    if (member.name == api::kLastAppliedAnnotation) continue;
    annotations.push_back(StrCat(member.name, ": ", Shortened(std::string(member.value.str()))));
  }
  out.Add("Annotations", annotations.empty() ? "<none>" : Join(annotations, "\n"));
  out.Add("Created", metadata["creationTimestamp"].str("<unknown>"));
  for (Value owner : metadata["ownerReferences"].elements()) {
    if (owner["controller"].boolean()) {
      out.Add("Controlled By", StrCat(owner["kind"].str(), "/", owner["name"].str()));
    }
  }
  if (!metadata["finalizers"].empty()) {
    std::vector<std::string_view> names;
    for (Value finalizer : metadata["finalizers"].elements()) names.push_back(finalizer.str());
    out.Add("Finalizers", Join(names, "\n"));
  }
  if (metadata["deletionTimestamp"].has_value()) {
    out.Add("Terminating", StrCat("since ", metadata["deletionTimestamp"].str()));
  }
}

void DescribeAny(Description& out, std::string_view name, Value value) {
  if (value.exists()) out.entries.push_back(AnyEntry(TitleOf(name), value, 0));
}

void DescribeAnyInto(Entry& section, std::string_view name, Value value) {
  if (value.exists()) section.entries.push_back(AnyEntry(TitleOf(name), value, 0));
}

Entry ConditionsEntry(Value conditions) {
  Entry entry{"Conditions", ""};
  if (conditions.empty()) {
    entry.value = "<none>";
    return entry;
  }
  entry.table.push_back({"Type", "Status", "Reason", "Message"});
  for (Value condition : conditions.elements()) {
    entry.table.push_back({std::string(condition["type"].str()),
                           std::string(condition["status"].str()),
                           std::string(condition["reason"].str("-")),
                           Shortened(std::string(condition["message"].str()))});
  }
  return entry;
}

Entry EventsEntry(Value events, WallTime now) {
  Entry entry{"Events", ""};
  if (events.empty()) {
    entry.value = "<none>";
    return entry;
  }
  struct Row {
    std::string time;
    std::vector<std::string> cells;
  };
  std::vector<Row> rows;
  for (Value event : events.elements()) {
    std::string last(event["lastTimestamp"].str());
    const Value series = event["series"];
    if (last.empty()) last = series["lastObservedTime"].str();
    if (last.empty()) last = event["eventTime"].str();
    if (last.empty()) last = event["metadata"]["creationTimestamp"].str();
    std::string first(event["firstTimestamp"].str());
    if (first.empty()) first = event["eventTime"].str();
    const std::int64_t count = std::max(event["count"].integer(), series["count"].integer());
    std::string age = AgeOf(last, now);
    if (count > 1 && !first.empty()) age += StrCat(" (x", count, " over ", AgeOf(first, now), ")");
    std::string from(event["source"]["component"].str());
    if (from.empty()) from = event["reportingComponent"].str();
    rows.push_back({last,
                    {std::string(event["type"].str()), std::string(event["reason"].str()), age,
                     from, std::string(Trim(event["message"].str()))}});
  }
  std::ranges::stable_sort(rows, {}, &Row::time);
  entry.table.push_back({"Type", "Reason", "Age", "From", "Message"});
  for (Row& row : rows) entry.table.push_back(std::move(row.cells));
  return entry;
}

}  // namespace drakkar::cli
