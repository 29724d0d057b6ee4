#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "answers/cluster/device_table.h"
#include "answers/cluster/snapshot.h"
#include "answers/render/json.h"

namespace drakkar::dashboard {

// The devices of one node, or of a pool that does not belong to one node.
struct MapRow {
  struct Pool {
    std::string driver;
    std::string pool;
    std::vector<std::string> devices;  // in natural order

    bool operator==(const Pool&) const = default;
  };
  std::string name;
  bool is_node = true;
  std::string problem;  // why pods cannot start on the node; empty if they can
  std::vector<Pool> pools;
  // One letter per device, in the order of `pools`: F(ree), H(eld), W(aiting), T(ainted),
  // U(nhealthy) or N(ot usable).
  std::string states;

  // Has the same devices, in any state.
  bool HasShapeOf(const MapRow& other) const {
    return name == other.name && is_node == other.is_node && pools == other.pools;
  }
};

// What the page's map shows: nodes in natural order, then pools without a node.
struct DeviceMap {
  std::vector<MapRow> rows;
  std::map<char, std::size_t> counts;  // by letter; add up to the number of devices
  std::size_t nodes_without_devices = 0;
};

DeviceMap MakeMap(const answers::Snapshot& snapshot, const answers::DeviceTable& table);

// The letter for answers::DeviceEntry::State().
char StateLetter(std::string_view state);

// The fields "counts" and "rows" of an open object: all rows.
void MapToJson(answers::JsonOut& json, const DeviceMap& map);
// The same with only the rows that differ from `before`, as [index, states, problem]. Returns false
// and writes nothing if rows or devices came or went: send the whole map then.
bool ChangesToJson(answers::JsonOut& json, const DeviceMap& before, const DeviceMap& map);

}  // namespace drakkar::dashboard
