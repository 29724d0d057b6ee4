#include "scheduler/config/plugin_sets.h"

#include <algorithm>

#include "base/text/text.h"
#include "scheduler/args/fields.h"
#include "scheduler/plugins/registry.h"

namespace drakkar::scheduler {
namespace {

using api::Value;
using enum Point;

struct PointName {
  api::FieldName name;
  Points bits;  // 0: no plugin uses it
};
constexpr PointName kPoints[] = {
    {"preEnqueue", static_cast<Points>(kPreEnqueue)},
    {"queueSort", 0},
    {"preFilter", static_cast<Points>(kPreFilter)},
    {"filter", static_cast<Points>(kFilter)},
    {"postFilter", static_cast<Points>(kPostFilter)},
    {"preScore", 0},
    // Preferring devices that are ready is a score that outweighs the others.
    {"score", kScore | kPrefer},
    {"reserve", static_cast<Points>(kReserve)},
    {"permit", 0},
    {"preBind", static_cast<Points>(kPreBind)},
    {"bind", static_cast<Points>(kBind)},
    {"postBind", 0},
};
// Points that share a plugin's state within a cycle.
constexpr Points kTogether = kPreFilter | kFilter | kReserve | kPreBind;
constexpr std::int64_t kMaxWeight = 1'000'000;

struct Entry {
  std::string name;
  std::int64_t weight = 0;
};

Result<std::vector<Entry>> ReadList(Value list, const std::string& path) {
  std::vector<Entry> entries;
  for (Value each : list.elements()) {
    Fields fields(each, StrCat(path, "[", entries.size(), "]"));
    Entry& entry = entries.emplace_back();
    fields.Text("name", entry.name);
    fields.Int("weight", entry.weight, 0, kMaxWeight);
    if (entry.name.empty()) fields.Refuse("name", "must name a plugin");
    RETURN_IF_ERROR(fields.Finish());
  }
  return entries;
}

// One set; `bits` are the points to which it applies.
Result<void> ApplySet(Value set, const std::string& path, Points bits, bool is_all,
                      PluginChoices& choices) {
  Fields fields(set, path);
  ASSIGN_OR_RETURN(const std::vector<Entry> disabled,
                   ReadList(fields.Get("disabled"), fields.PathOf("disabled")));
  ASSIGN_OR_RETURN(const std::vector<Entry> enabled,
                   ReadList(fields.Get("enabled"), fields.PathOf("enabled")));
  RETURN_IF_ERROR(fields.Finish());
  for (const Entry& entry : disabled) {
    for (auto& [name, choice] : choices) {
      if (entry.name == "*" || entry.name == name) {
        choice.points = static_cast<Points>(choice.points & ~bits);
      }
    }
    if (entry.name == "PrioritySort" && is_all) {
      return InvalidArgument(
          StrCat(path, ": PrioritySort cannot be disabled: there is no other queue sort plugin"));
    }
    const bool known = entry.name == "*" || entry.name == "PrioritySort" ||
                       FindPluginRow(entry.name) != nullptr || IsForeignPlugin(entry.name);
    if (!known) {
      return InvalidArgument(StrCat(path, ".disabled: unknown plugin ", Quote(entry.name)));
    }
  }
  for (const Entry& entry : enabled) {
    if (entry.name == "PrioritySort") continue;
    if (IsForeignPlugin(entry.name)) {
      return InvalidArgument(
          StrCat(path, ".enabled: plugin ", entry.name, " is not supported by this scheduler"));
    }
    const PluginRow* row = FindPluginRow(entry.name);
    if (row == nullptr) {
      return InvalidArgument(StrCat(path, ".enabled: unknown plugin ", Quote(entry.name)));
    }
    const auto offered = static_cast<Points>(row->points & bits);
    if (offered == 0 && bits != 0) {
      return InvalidArgument(
          StrCat(path, ".enabled: ", entry.name, " has no such extension point"));
    }
    PluginChoice& choice = choices[std::string(row->name)];
    choice.points = static_cast<Points>(choice.points | offered);
    if (entry.weight > 0) choice.weight = entry.weight;
  }
  return Ok();
}

using Names = std::vector<std::string>;

bool Has(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Names NamesIn(Value list) {
  Names names;
  for (Value each : list.elements()) names.emplace_back(each["name"].str());
  return names;
}

// `defaults` without `disabled`, followed by the rest of `enabled`.
Names Merge(Names defaults, const Names& disabled, const Names& enabled) {
  std::erase_if(defaults,
                [&](const std::string& name) { return Has(disabled, "*") || Has(disabled, name); });
  for (const std::string& name : enabled) {
    if (!Has(defaults, name)) defaults.push_back(name);
  }
  return defaults;
}

// The order at one point; `all` is the result of multiPoint.
Names OrderAt(Value set, const Names& all) {
  const Names disabled = NamesIn(set["disabled"]), enabled = NamesIn(set["enabled"]);
  if (Has(disabled, "*")) return enabled;
  Names order;
  for (const std::string& name : enabled) {
    if (Has(all, name) && !Has(disabled, name)) order.push_back(name);
  }
  return Merge(Merge(std::move(order), {}, Merge(all, disabled, {})), {}, enabled);
}

// Sets the place of each plugin at each point. The sets must be valid.
void SetPlaces(Value plugins, PluginChoices& choices) {
  Names all;
  for (const PluginRow& row : PluginRows()) {
    if (!row.is_mandatory) all.emplace_back(row.name);
  }
  const Value multi = plugins["multiPoint"];
  all = Merge(std::move(all), NamesIn(multi["disabled"]), NamesIn(multi["enabled"]));
  for (const PointName& point : kPoints) {
    const Names order = OrderAt(plugins[point.name], all);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto choice = choices.find(order[i]);
      if (choice == choices.end()) continue;
      for (Points bit = 1; bit != 0; bit = static_cast<Points>(bit << 1)) {
        if ((point.bits & bit) != 0) choice->second.places[bit] = static_cast<int>(i);
      }
    }
  }
}

}  // namespace

Result<PluginChoices> ReadPluginSets(Value plugins, const std::string& path) {
  PluginChoices choices;
  for (const PluginRow& row : PluginRows()) {
    if (row.is_mandatory) continue;
    choices[std::string(row.name)] = {.points = row.points, .weight = 0, .places = {}};
  }
  Fields fields(plugins, path);
  if (const Value all = fields.Get("multiPoint"); all.has_value()) {
    fields.Take(ApplySet(all, fields.PathOf("multiPoint"), 0xffff, true, choices));
  }
  for (const PointName& point : kPoints) {
    const Value set = fields.Get(point.name);
    if (!set.has_value()) continue;
    fields.Take(
        ApplySet(set, fields.PathOf(point.name), point.bits, point.name == "queueSort", choices));
  }
  RETURN_IF_ERROR(fields.Finish());
  bool binds = false;
  for (const auto& [name, choice] : choices) {
    const Points has = static_cast<Points>(FindPluginRow(name)->points & kTogether);
    const Points left = static_cast<Points>(choice.points & has);
    if (left != 0 && left != has) {
      return InvalidArgument(StrCat(path, ": ", name,
                                    " must be enabled at all of preFilter, filter, reserve and "
                                    "preBind, or at none of them"));
    }
    binds = binds || (choice.points & static_cast<Points>(kBind)) != 0;
  }
  if (!binds)
    return InvalidArgument(
        StrCat(path, ".bind: at least one plugin that binds pods must be enabled"));
  SetPlaces(plugins, choices);
  return choices;
}

api::Draft PluginSetsToDraft(const PluginChoices& choices) {
  api::Draft plugins = api::Draft::Object();
  for (const PointName& point : kPoints) {
    if (point.bits == 0) continue;
    const auto choice = [&](const PluginRow& row) {
      const auto found = choices.find(row.name);
      return found == choices.end() ? PluginChoice{.points = row.points, .weight = 0, .places = {}}
                                    : found->second;
    };
    std::vector<const PluginRow*> on;
    for (const PluginRow& row : PluginRows()) {
      if (row.is_mandatory) continue;
      if ((row.points & choice(row).points & point.bits) != 0) on.push_back(&row);
    }
    std::stable_sort(on.begin(), on.end(), [&](const PluginRow* a, const PluginRow* b) {
      const auto place = [&](const PluginRow& row) {
        for (const auto& [bit, at] : choice(row).places) {
          if ((bit & point.bits) != 0) return at;
        }
        return -1;
      };
      return place(*a) < place(*b);
    });
    api::Draft enabled = api::Draft::Array();
    for (const PluginRow* row : on) {
      api::Draft entry{{"name", row->name}};
      if (point.name == "score") {
        const std::int64_t weight = choice(*row).weight;
        entry["weight"] = weight == 0 ? row->weight : weight;
      }
      enabled.Append(std::move(entry));
    }
    plugins[point.name]["enabled"] = std::move(enabled);
    // Without this, plugins that are not listed would be on when the file is read.
    plugins[point.name]["disabled"].Append({{"name", "*"}});
  }
  return plugins;
}

}  // namespace drakkar::scheduler
