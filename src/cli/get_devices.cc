#include "cli/get_devices.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "answers/cluster/attributes.h"
#include "answers/cluster/device_table.h"
#include "answers/cluster/natural_order.h"
#include "answers/render/columns.h"
#include "answers/render/json.h"
#include "answers/who/who.h"
#include "api/json/reader.h"
#include "api/meta/field_selector.h"
#include "api/meta/label_selector.h"
#include "base/text/text.h"
#include "cli/age.h"
#include "cli/answer.h"
#include "cli/sorting.h"
#include "cli/table.h"
#include "device/cel_expressions.h"

namespace drakkar::cli {
namespace {

using answers::DeviceEntry;
using api::TreePtr;
using api::Value;

// Health is not part of any API object, so a watch has to poll the nodes.
constexpr Duration kLookAgain = std::chrono::seconds(1);

// Fields that --field-selector supports.
constexpr std::string_view kFields[] = {"metadata.name", "node",  "driver", "pool",
                                        "device",        "state", "health", "model"};

// A device as text, in the form that every format prints.
struct DeviceRow {
  device::DeviceId id;
  std::string node;  // empty if the device does not belong to one node
  std::string state;
  answers::DeviceHealth health;
  std::string model;
  std::vector<std::pair<std::string, std::string>> attributes;  // by name
  std::vector<std::pair<std::string, std::string>> capacity;
  std::vector<std::string> classes;
  std::vector<std::string> taints;  // "key=value:Effect"
  std::set<std::string> claims;     // "namespace/name"
  std::set<std::string> pods;

  bool operator==(const DeviceRow&) const = default;
};

DeviceRow MakeRow(const answers::DeviceTable& table, const DeviceEntry& entry) {
  DeviceRow row{.id = entry.id,
                .node = entry.node,
                .state = std::string(entry.State()),
                .health = entry.health};
  if (entry.device != nullptr) {
    row.model = answers::ModelOf(entry.id.driver, *entry.device);
    for (const device::Attribute& each : entry.device->attributes) {
      row.attributes.emplace_back(each.name, answers::AttributeText(each.value));
    }
    for (const device::Capacity& each : entry.device->capacity) {
      row.capacity.emplace_back(each.name, each.value.ToString());
    }
  }
  for (const std::uint32_t each : entry.classes) row.classes.push_back(table.classes()[each]);
  for (const device::Taint& taint : entry.taints) {
    row.taints.push_back(
        StrCat(taint.key, taint.value.empty() ? "" : "=", taint.value, ":", taint.effect));
  }
  for (const answers::Hold& hold : entry.holds) {
    row.claims.insert(hold.claim->claim->qualified_name());
    for (const answers::Consumer& consumer : hold.claim->consumers) {
      if (consumer.is_pod) row.pods.insert(consumer.qualified_name());
    }
  }
  return row;
}

void PairsToJson(answers::JsonOut& json, std::string_view key,
                 const std::vector<std::pair<std::string, std::string>>& pairs) {
  if (pairs.empty()) return;
  json.Key(key).BeginObject();
  for (const auto& [name, value] : pairs) json.Field(name, value);
  json.EndObject();
}

void ListToJson(answers::JsonOut& json, std::string_view key,
                const std::vector<std::string>& list) {
  if (!list.empty()) json.Texts(key, list);
}

// Attributes become labels, so that -l and --show-labels work.
TreePtr ObjectOf(const DeviceRow& row) {
  answers::JsonOut json(/*indented=*/false);
  json.BeginObject().Field("kind", "Device");
  json.Key("metadata").BeginObject().Field("name", row.id.ToString());
  PairsToJson(json, "labels", row.attributes);
  json.EndObject()
      .Field("node", row.node)
      .Field("driver", row.id.driver)
      .Field("pool", row.id.pool)
      .Field("device", row.id.device)
      .Field("state", row.state)
      .Field("health", row.health.health)
      .FieldIfAny("since", row.health.since)
      .FieldIfAny("message", row.health.message)
      .FieldIfAny("model", row.model);
  PairsToJson(json, "capacity", row.capacity);
  ListToJson(json, "classes", row.classes);
  ListToJson(json, "taints", row.taints);
  ListToJson(json, "claims", {row.claims.begin(), row.claims.end()});
  ListToJson(json, "pods", {row.pods.begin(), row.pods.end()});
  return api::ParseJson(json.EndObject().Take()).value();
}

// The devices selected on the command line.
struct Filter {
  std::vector<std::string> names;
  api::LabelSelector labels;
  api::FieldSelector fields;
  std::string namespace_;

  bool Matches(const DeviceRow& row, const TreePtr& object) const {
    if (!names.empty() && std::none_of(names.begin(), names.end(), [&](const std::string& name) {
          return answers::NamesDevice(name, row.id);
        })) {
      return false;
    }
    if (!namespace_.empty()) {
      const std::string prefix = namespace_ + "/";
      if (std::none_of(row.claims.begin(), row.claims.end(),
                       [&](const std::string& claim) { return claim.starts_with(prefix); })) {
        return false;
      }
    }
    if (!labels.Matches(object->root()["metadata"]["labels"])) return false;
    const std::string name = row.id.ToString();
    return fields.Matches([&](std::string_view field) -> std::string_view {
      if (field == "metadata.name") return name;
      if (field == "node") return row.node;
      if (field == "driver") return row.id.driver;
      if (field == "pool") return row.id.pool;
      if (field == "device") return row.id.device;
      if (field == "state") return row.state;
      if (field == "health") return row.health.health;
      return row.model;
    });
  }
};

Result<Filter> FilterFrom(const Arguments& arguments) {
  Filter filter;
  filter.names.assign(arguments.positionals().begin() + 1, arguments.positionals().end());
  ASSIGN_OR_RETURN(filter.labels, api::LabelSelector::Parse(arguments.Text("selector")));
  ASSIGN_OR_RETURN(filter.fields, api::FieldSelector::Parse(arguments.Text("field-selector")));
  for (const api::FieldRequirement& each : filter.fields.requirements()) {
    if (std::find(std::begin(kFields), std::end(kFields), each.field) == std::end(kFields)) {
      return InvalidArgument(StrCat("--field-selector does not support ", Quote(each.field),
                                    " for devices; supported are ", Join(kFields, ", ")));
    }
  }
  if (arguments.Has("namespace") && !arguments.Bool("all-namespaces")) {
    filter.namespace_ = arguments.Text("namespace");
  }
  return filter;
}

using Rows = std::map<device::DeviceId, DeviceRow>;

Result<Rows> ReadRows(Console& console, Session& session, const Filter& filter) {
  ASSIGN_OR_RETURN(answers::Snapshot snapshot, ReadSnapshot(session, answers::kEveryKind));
  for (const std::string& note : snapshot.notes) console.Err(StrCat("note: ", note, "\n"));
  AddNodeHealth(session, console, snapshot);
  device::CelExpressions compiler;
  const answers::DeviceTable table(snapshot, {.compiler = &compiler});
  Rows rows;
  for (const DeviceEntry& entry : table.devices()) {
    DeviceRow row = MakeRow(table, entry);
    if (filter.Matches(row, ObjectOf(row))) rows.emplace(entry.id, std::move(row));
  }
  return rows;
}

std::string TextOf(const std::set<std::string>& names) {
  return names.empty() ? "<none>" : Join(names, ",");
}
std::string TextOf(const std::vector<std::string>& names) {
  return names.empty() ? "<none>" : Join(names, ",");
}
std::string TextOf(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : pairs) parts.push_back(StrCat(name, "=", value));
  return TextOf(parts);
}
std::string OrNone(const std::string& text) {
  return text.empty() ? "<none>" : text;
}

// Prints rows aligned with the previous ones.
class Printer {
 public:
  Printer(const Arguments& arguments, Console& console, Session& session,
          const OutputFormat& format)
      : arguments_(arguments),
        console_(console),
        session_(session),
        format_(format),
        headers_(!arguments.Bool("no-headers")) {}

  void Print(const Rows& rows, bool is_list) {
    if (rows.empty() && !is_list) return;
    const std::vector<const DeviceRow*> sorted = Sort(rows);
    if (!format_.is_table()) return PrintAsObjects(sorted, is_list);
    PrintTable(sorted);
  }

 private:
  // By --sort-by, otherwise by node, driver, pool and name.
  std::vector<const DeviceRow*> Sort(const Rows& rows) const {
    std::vector<const DeviceRow*> sorted;
    for (const auto& [id, row] : rows) sorted.push_back(&row);
    std::stable_sort(sorted.begin(), sorted.end(), [](const DeviceRow* a, const DeviceRow* b) {
      if (a->node != b->node) return answers::NaturalLess(a->node, b->node);
      if (a->id.driver != b->id.driver) return a->id.driver < b->id.driver;
      if (a->id.pool != b->id.pool) return answers::NaturalLess(a->id.pool, b->id.pool);
      return answers::NaturalLess(a->id.device, b->id.device);
    });
    const std::string& path = arguments_.Text("sort-by");
    if (path.empty()) return sorted;
    std::vector<TreePtr> objects;
    for (const DeviceRow* row : sorted) objects.push_back(ObjectOf(*row));
    std::vector<const DeviceRow*> ordered;
    for (const std::size_t index : SortedBy(path, objects)) ordered.push_back(sorted[index]);
    return ordered;
  }

  void PrintTable(const std::vector<const DeviceRow*>& rows) {
    const bool wide = format_.kind == OutputFormat::Kind::kWide;
    std::set<std::string_view> drivers;
    for (const DeviceRow* row : rows) drivers.insert(row->id.driver);
    // All tables of a watch have the same columns.
    if (!show_driver_) show_driver_ = wide || drivers.size() > 1;
    const bool labels = arguments_.Bool("show-labels");
    std::vector<answers::Column> columns = {{"NODE", false, true}};
    if (*show_driver_) columns.push_back({"DRIVER", false, true});
    if (wide) columns.push_back({"POOL"});
    columns.push_back({"DEVICE", false, true});
    columns.push_back({"STATE"});
    columns.push_back({"HEALTH"});
    columns.push_back({"SINCE"});
    columns.push_back({"CLAIM", false, true});
    columns.push_back({"POD", false, true});
    if (wide) {
      for (const char* title : {"MODEL", "CAPACITY", "CLASS", "TAINTS", "MESSAGE"}) {
        columns.push_back({title});
      }
    }
    if (labels) columns.push_back({"LABELS"});
    answers::TextTable table(std::move(columns));
    const WallTime now = session_.clock().Now();
    for (const DeviceRow* row : rows) {
      std::vector<std::string> cells = {row->node.empty() ? "<any>" : row->node};
      if (*show_driver_) cells.push_back(row->id.driver);
      if (wide) cells.push_back(row->id.pool);
      cells.push_back(row->id.device);
      cells.push_back(row->state);
      cells.push_back(row->health.health);
      cells.push_back(row->health.since.empty() ? "<none>" : AgeOf(row->health.since, now));
      cells.push_back(TextOf(row->claims));
      cells.push_back(TextOf(row->pods));
      if (wide) {
        cells.push_back(OrNone(row->model));
        cells.push_back(TextOf(row->capacity));
        cells.push_back(TextOf(row->classes));
        cells.push_back(TextOf(row->taints));
        cells.push_back(OrNone(row->health.message));
      }
      if (labels) cells.push_back(TextOf(row->attributes));
      table.AddRow(std::move(cells));
    }
    const std::size_t width =
        wide || labels ? 0 : std::max(answers::kTextWidth, console_.size().columns);
    console_.Out(table.Render(width, std::exchange(headers_, false), &widths_));
  }

  void PrintAsObjects(const std::vector<const DeviceRow*>& rows, bool is_list) {
    std::vector<TreePtr> kept;
    std::vector<Value> objects;
    for (const DeviceRow* row : rows) {
      kept.push_back(ObjectOf(*row));
      objects.push_back(kept.back()->root());
    }
    const PrintOptions options{.no_headers = !headers_};
    if (is_list) return console_.Out(PrintObjects(format_, objects, true, options));
    for (Value object : objects) {
      if (format_.kind == OutputFormat::Kind::kYaml && std::exchange(printed_one_, true)) {
        console_.Out("---\n");
      }
      console_.Out(PrintObjects(format_, {object}, false, options));
    }
  }

  const Arguments& arguments_;
  Console& console_;
  Session& session_;
  const OutputFormat& format_;
  bool headers_;
  bool printed_one_ = false;
  std::optional<bool> show_driver_;
  std::vector<std::size_t> widths_;
};

// Names that match no device.
std::vector<std::string> Missing(const Filter& filter, const Rows& rows) {
  std::vector<std::string> missing;
  for (const std::string& name : filter.names) {
    if (std::none_of(rows.begin(), rows.end(),
                     [&](const auto& entry) { return answers::NamesDevice(name, entry.first); })) {
      missing.push_back(name);
    }
  }
  return missing;
}

}  // namespace

int GetDevices(const Arguments& arguments, Console& console, Session& session,
               const OutputFormat& format) {
  const Result<Filter> filter = FilterFrom(arguments);
  if (!filter.ok()) {
    console.Error(filter.error().message);
    return kExitUsage;
  }
  const bool watches = arguments.Bool("watch") || arguments.Bool("watch-only");
  Printer printer(arguments, console, session, format);
  Rows before;
  for (bool first = true;; first = false) {
    Result<Rows> rows = ReadRows(console, session, *filter);
    if (!rows.ok()) {
      Report(console, rows.error());
      return kExitFailure;
    }
    if (!watches) {
      int code = kExitOk;
      for (const std::string& name : Missing(*filter, *rows)) {
        if (arguments.Bool("ignore-not-found")) continue;
        console.Error(StrCat("device ", Quote(name), " not found"));
        code = kExitFailure;
      }
      if (rows->empty() && (format.is_table() || code != kExitOk)) {
        if (code == kExitOk && !arguments.Bool("ignore-not-found")) {
          console.Err("No devices found.\n");
        }
        return code;
      }
      printer.Print(*rows, true);
      return code;
    }
    Rows changed;
    for (const auto& [id, row] : *rows) {
      const auto known = before.find(id);
      if (known == before.end() || !(known->second == row)) changed.emplace(id, row);
    }
    if (!first || !arguments.Bool("watch-only")) printer.Print(changed, false);
    before = std::move(*rows);
    session.Pause(kLookAgain);
  }
}

}  // namespace drakkar::cli
