#include "answers/render/devices.h"

#include <set>

#include "answers/render/columns.h"
#include "answers/render/json.h"
#include "api/meta/age.h"
#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::answers {
namespace {

// "CLASS" for class. Names of attributes and labels are not changed.
std::string TitleOf(std::string_view by) {
  std::string upper(by);
  if (upper.find_first_of("./") != std::string::npos) return upper;
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

std::vector<std::string> CountCells(std::string name, const DeviceCounts& counts) {
  return {std::move(name),
          std::to_string(counts.total),
          std::to_string(counts.free),
          std::to_string(counts.held),
          std::to_string(counts.tainted),
          std::to_string(counts.unhealthy),
          std::to_string(counts.unusable)};
}

std::string RenderAmounts(const std::vector<SharedAmount>& amounts, std::string_view by,
                          std::string_view title, std::string_view per,
                          const RenderOptions& options) {
  if (amounts.empty()) return {};
  TextTable table({{TitleOf(by), false, true},
                   {std::string(title), false, true},
                   {std::string(per), true},
                   {"TOTAL", true},
                   {"USED", true},
                   {"FREE", true},
                   {"LARGEST", true}});
  for (const SharedAmount& each : amounts) {
    table.AddRow({each.group, each.name, std::to_string(each.count), each.total.ToString(),
                  each.used.ToString(), each.free.ToString(), each.largest_free.ToString()});
  }
  return "\n" + table.Render(options.width, options.headers);
}

void CountsToJson(JsonOut& json, const DeviceCounts& counts) {
  json.Field("total", counts.total)
      .Field("free", counts.free)
      .Field("held", counts.held)
      .Field("waiting", counts.waiting)
      .Field("tainted", counts.tainted)
      .Field("unhealthy", counts.unhealthy)
      .Field("unusable", counts.unusable);
}

void AmountsToJson(JsonOut& json, std::string_view key, const std::vector<SharedAmount>& amounts,
                   std::string_view per) {
  json.Key(key).BeginArray();
  for (const SharedAmount& each : amounts) {
    json.BeginObject()
        .Field("group", each.group)
        .Field("name", each.name)
        .Field(per, each.count)
        .Field("total", each.total.ToString())
        .Field("used", each.used.ToString())
        .Field("free", each.free.ToString())
        .Field("largestFree", each.largest_free.ToString())
        .EndObject();
  }
  json.EndArray();
}

std::string OrNone(std::string_view text) {
  return text.empty() ? "<none>" : std::string(text);
}

// The shared amount, for example "2Gi memory"; empty if the device is not shared.
std::string ShareText(const Holding& holding) {
  if (holding.result->admin_access) return "admin";
  std::vector<std::string> parts;
  for (const auto& each : holding.result->consumed_capacity) {
    parts.push_back(StrCat(each.name, "=", each.value.ToString()));
  }
  if (!parts.empty()) return Join(parts, ",");
  return holding.result->share_id.empty() ? "exclusive" : "shared";
}

std::string HealthText(const Holding& holding) {
  return holding.claim->waiting && holding.device->IsWaiting() ? "Waiting"
                                                               : holding.device->health.health;
}

}  // namespace

std::string RenderNotes(const std::vector<std::string>& notes, std::size_t width) {
  std::string text;
  for (const std::string& note : notes) text += Wrap(StrCat("note: ", note), width, 6);
  return text;
}

std::string AgeText(const std::string& since, WallTime now) {
  const Result<WallTime> parsed = api::ParseTime(since);
  return parsed.ok() ? api::FormatAge(now - *parsed) : "<unknown>";
}

std::string RenderFree(const FreeAnswer& answer, const RenderOptions& options) {
  std::string text = RenderNotes(answer.notes, options.width);
  if (answer.all.total == 0) return text + "No devices found.\n";
  TextTable table({{TitleOf(answer.by), false, true},
                   {"TOTAL", true},
                   {"FREE", true},
                   {"HELD", true},
                   {"TAINTED", true},
                   {"UNHEALTHY", true},
                   {"UNUSABLE", true}});
  for (const FreeGroup& group : answer.groups) table.AddRow(CountCells(group.name, group.counts));
  if (answer.groups.size() > 1) table.AddRow(CountCells("(all)", answer.all));
  text += table.Render(options.width, options.headers);
  text += RenderAmounts(answer.capacity, answer.by, "SHARED CAPACITY", "DEVICES", options);
  text += RenderAmounts(answer.counters, answer.by, "COUNTER", "SETS", options);
  return text;
}

std::string FreeToJson(const FreeAnswer& answer) {
  JsonOut json;
  json.BeginObject().Field("by", answer.by);
  json.Key("all").BeginObject();
  CountsToJson(json, answer.all);
  json.EndObject();
  json.Key("groups").BeginArray();
  for (const FreeGroup& group : answer.groups) {
    json.BeginObject().Field("name", group.name);
    CountsToJson(json, group.counts);
    json.EndObject();
  }
  json.EndArray();
  AmountsToJson(json, "sharedCapacity", answer.capacity, "devices");
  AmountsToJson(json, "counters", answer.counters, "sets");
  json.Texts("notes", answer.notes);
  return json.EndObject().Take();
}

std::string RenderFits(const FitsAnswer& answer, const RenderOptions& options) {
  std::string text = RenderNotes(answer.notes, options.width);
  if (!answer.why_none.empty()) {
    return text + Wrap(StrCat("No claim like ", answer.claim, " fits: ", answer.why_none, "."),
                       options.width);
  }
  if (answer.nodes.empty()) {
    return text + Wrap(StrCat("No more claims like ", answer.claim,
                              " fit on any node. `drakkar why claim NAME` says why."),
                       options.width);
  }
  text += Wrap(StrCat(answer.at_least ? "At least " : "", answer.total, " more ",
                      answer.total == 1 ? "claim" : "claims", " like ", answer.claim,
                      answer.total == 1 ? " fits, on " : " fit, on ", answer.nodes.size(),
                      answer.nodes.size() == 1 ? " node." : " nodes."),
               options.width);
  TextTable table({{"NODE", false, true}, {"MORE", true}});
  for (const FitsAnswer::Node& node : answer.nodes) {
    table.AddRow({node.name, std::to_string(node.count)});
  }
  return text + table.Render(options.width, options.headers);
}

std::string FitsToJson(const FitsAnswer& answer) {
  JsonOut json;
  json.BeginObject()
      .Field("claim", answer.claim)
      .Field("total", answer.total)
      .Field("atLeast", answer.at_least)
      .FieldIfAny("reason", answer.why_none);
  json.Key("nodes").BeginArray();
  for (const FitsAnswer::Node& node : answer.nodes) {
    json.BeginObject().Field("name", node.name).Field("count", node.count).EndObject();
  }
  json.EndArray().Texts("notes", answer.notes);
  return json.EndObject().Take();
}

std::string RenderWho(const WhoAnswer& answer, const RenderOptions& options) {
  std::string text = RenderNotes(answer.notes, options.width);
  if (answer.holdings.empty()) return text + "No matching device is held.\n";
  std::set<std::string_view> drivers;
  for (const Holding& holding : answer.holdings) drivers.insert(holding.device->id.driver);
  const bool wide = options.wide;
  const bool show_driver = wide || drivers.size() > 1;
  std::vector<Column> columns = {{"NODE", false, true}};
  if (show_driver) columns.push_back({"DRIVER", false, true});
  if (wide) columns.push_back({"POOL", false, true});
  columns.push_back({"DEVICE", false, true});
  columns.push_back({"POD", false, true});
  columns.push_back({"CLAIM", false, true});
  if (wide) columns.push_back({"OWNER", false, true});
  columns.push_back({"SINCE"});
  columns.push_back({"HEALTH"});
  if (wide) columns.push_back({"USE"});
  TextTable table(std::move(columns));
  for (const Holding& holding : answer.holdings) {
    const api::Object& claim = *holding.claim->claim;
    std::vector<std::string> row = {OrNone(holding.device->node)};
    if (show_driver) row.push_back(holding.device->id.driver);
    if (wide) row.push_back(holding.device->id.pool);
    row.push_back(holding.device->id.device);
    row.push_back(holding.pod());
    // A claim is in its pod's namespace.
    row.push_back(holding.consumer == nullptr || wide ? claim.qualified_name()
                                                      : std::string(claim.name()));
    if (wide) row.push_back(holding.owner());
    row.push_back(AgeText(holding.claim->since, options.now));
    row.push_back(HealthText(holding));
    if (wide) row.push_back(ShareText(holding));
    table.AddRow(std::move(row));
  }
  return text + table.Render(wide ? 0 : options.width, options.headers);
}

std::string WhoToJson(const WhoAnswer& answer) {
  JsonOut json;
  json.BeginObject().Key("holders").BeginArray();
  for (const Holding& holding : answer.holdings) {
    const device::DeviceId& id = holding.device->id;
    json.BeginObject()
        .FieldIfAny("node", holding.device->node)
        .Field("driver", id.driver)
        .Field("pool", id.pool)
        .Field("device", id.device)
        .Field("namespace", holding.claim->claim->namespace_())
        .Field("claim", holding.claim->claim->name())
        .Field("request", holding.result->request)
        .FieldIfAny("since", holding.claim->since)
        .Field("health", holding.device->health.health)
        .FieldIfAny("healthMessage", holding.device->health.message)
        .Field("waiting", holding.device->IsWaiting())
        .Field("adminAccess", holding.result->admin_access)
        .FieldIfAny("shareID", holding.result->share_id);
    if (!holding.result->consumed_capacity.empty()) {
      json.Key("consumedCapacity").BeginObject();
      for (const auto& each : holding.result->consumed_capacity) {
        json.Field(each.name, each.value.ToString());
      }
      json.EndObject();
    }
    if (holding.consumer != nullptr) {
      json.Field(holding.consumer->is_pod ? "pod" : "consumer", holding.consumer->name)
          .FieldIfAny("owner", holding.consumer->owner);
    }
    json.EndObject();
  }
  json.EndArray().Texts("notes", answer.notes);
  return json.EndObject().Take();
}

std::string RenderHolderGroups(const std::vector<HolderGroup>& groups, const HolderGrouping& by,
                               const RenderOptions& options) {
  if (groups.empty()) return "No matching device is held.\n";
  TextTable table({{TitleOf(by.name()), false, true},
                   {"DEVICES", true},
                   {"CLAIMS", true},
                   {"PODS", true},
                   {"UNHEALTHY", true},
                   {"OLDEST"}});
  for (const HolderGroup& group : groups) {
    table.AddRow({group.name, std::to_string(group.devices), std::to_string(group.claims),
                  std::to_string(group.pods), std::to_string(group.unhealthy),
                  AgeText(group.oldest, options.now)});
  }
  return table.Render(options.width, options.headers);
}

std::string HolderGroupsToJson(const std::vector<HolderGroup>& groups, const HolderGrouping& by) {
  JsonOut json;
  json.BeginObject().Field("by", by.name()).Key("groups").BeginArray();
  for (const HolderGroup& group : groups) {
    json.BeginObject()
        .Field("name", group.name)
        .Field("devices", group.devices)
        .Field("claims", group.claims)
        .Field("pods", group.pods)
        .Field("unhealthy", group.unhealthy)
        .FieldIfAny("oldest", group.oldest)
        .EndObject();
  }
  return json.EndArray().EndObject().Take();
}

}  // namespace drakkar::answers
