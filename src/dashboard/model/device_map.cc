#include "dashboard/model/device_map.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "answers/cluster/natural_order.h"
#include "base/text/text.h"

namespace drakkar::dashboard {
namespace {

using answers::DeviceEntry;
using answers::NaturalLess;

bool EntryLess(const DeviceEntry* a, const DeviceEntry* b) {
  if (a->node != b->node) {
    if (a->node.empty() != b->node.empty()) return b->node.empty();
    return NaturalLess(a->node, b->node);
  }
  if (a->id.driver != b->id.driver) return a->id.driver < b->id.driver;
  if (a->id.pool != b->id.pool) return NaturalLess(a->id.pool, b->id.pool);
  return NaturalLess(a->id.device, b->id.device);
}

void CountsToJson(answers::JsonOut& json, const DeviceMap& map) {
  json.Key("counts").BeginObject();
  for (const auto& [letter, count] : map.counts) {
    json.Field(std::string_view(&letter, 1), count);
  }
  json.EndObject().Field("nodesWithoutDevices", map.nodes_without_devices);
}

}  // namespace

char StateLetter(std::string_view state) {
  return state == "Unusable" ? 'N' : state[0];
}

DeviceMap MakeMap(const answers::Snapshot& snapshot, const answers::DeviceTable& table) {
  std::unordered_map<std::string_view, const api::Object*> leases;
  for (const api::ObjectPtr& lease : snapshot.leases) leases[lease->name()] = lease.get();
  std::unordered_map<std::string_view, const api::Object*> nodes;
  for (const api::ObjectPtr& node : snapshot.nodes) nodes[node->name()] = node.get();

  std::vector<const DeviceEntry*> entries;
  entries.reserve(table.devices().size());
  for (const DeviceEntry& entry : table.devices()) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(), EntryLess);

  DeviceMap map;
  std::size_t nodes_with_devices = 0;
  for (const DeviceEntry* entry : entries) {
    const bool is_node = !entry->node.empty();
    const std::string pool = entry->id.pool_id().ToString();
    const std::string& name = is_node ? entry->node : pool;
    if (map.rows.empty() || map.rows.back().name != name || map.rows.back().is_node != is_node) {
      MapRow row{.name = name, .is_node = is_node};
      if (const auto node = nodes.find(name); is_node && node != nodes.end()) {
        ++nodes_with_devices;
        const auto lease = leases.find(name);
        row.problem = answers::DescribeNodeProblem(
            *node->second, lease == leases.end() ? nullptr : lease->second, snapshot.now);
      } else if (is_node && snapshot.has_nodes) {
        row.problem = "node does not exist";
      }
      map.rows.push_back(std::move(row));
    }
    MapRow& row = map.rows.back();
    if (row.pools.empty() || row.pools.back().driver != entry->id.driver ||
        row.pools.back().pool != entry->id.pool) {
      row.pools.push_back({entry->id.driver, entry->id.pool, {}});
    }
    row.pools.back().devices.push_back(entry->id.device);
    const char letter = StateLetter(entry->State());
    row.states += letter;
    ++map.counts[letter];
  }
  map.nodes_without_devices = snapshot.nodes.size() - nodes_with_devices;
  return map;
}

void MapToJson(answers::JsonOut& json, const DeviceMap& map) {
  CountsToJson(json, map);
  json.Key("rows").BeginArray();
  for (const MapRow& row : map.rows) {
    json.BeginObject().Field("name", row.name).Field("node", row.is_node);
    json.FieldIfAny("problem", row.problem).Field("states", row.states);
    json.Key("pools").BeginArray();
    for (const MapRow::Pool& pool : row.pools) {
      json.BeginObject()
          .Field("driver", pool.driver)
          .Field("pool", pool.pool)
          .Texts("devices", pool.devices)
          .EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray();
}

bool ChangesToJson(answers::JsonOut& json, const DeviceMap& before, const DeviceMap& map) {
  if (before.rows.size() != map.rows.size()) return false;
  for (std::size_t i = 0; i < map.rows.size(); ++i) {
    if (!map.rows[i].HasShapeOf(before.rows[i])) return false;
  }
  CountsToJson(json, map);
  json.Key("changed").BeginArray();
  for (std::size_t i = 0; i < map.rows.size(); ++i) {
    const MapRow& row = map.rows[i];
    if (row.states == before.rows[i].states && row.problem == before.rows[i].problem) continue;
    json.BeginArray()
        .Number(static_cast<std::int64_t>(i))
        .Text(row.states)
        .Text(row.problem)
        .EndArray();
  }
  json.EndArray();
  return true;
}

}  // namespace drakkar::dashboard
