#include "sdk/driver/attributes/pci.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/text/text.h"

namespace drakkar::driver {
namespace {

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string DevicePath(const Sysfs& sysfs, const std::string& bus_id) {
  return JoinPath(sysfs.root, "bus/pci/devices/" + bus_id);
}

std::string NodePath(const Sysfs& sysfs, std::int64_t node) {
  return JoinPath(sysfs.root, StrCat("devices/system/node/node", node));
}

// Resolves "../../../devices/pci0000:00/x" relative to `directory`.
std::string Resolve(const std::string& directory, const std::string& target) {
  if (target.starts_with('/')) return target;
  const std::string joined = JoinPath(directory, target);
  std::vector<std::string> parts;
  for (const std::string_view part : Split(joined, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else {
      parts.emplace_back(part);
    }
  }
  return "/" + Join(parts, "/");
}

Result<std::int64_t> ReadNumber(const Sysfs& sysfs, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, sysfs.files.ReadFile(path));
  const std::optional<std::int64_t> number = ParseInt64(Trim(text));
  if (!number) return InvalidArgument(StrCat(path, " does not contain a number"));
  return *number;
}

Result<void> CheckNumaNode(std::int64_t node) {
  if (node >= 0 && node <= kMaxNumaNode) return Ok();
  return InvalidArgument(StrCat("NUMA node ", node, " is not between 0 and ", kMaxNumaNode));
}

// The first CPU of a list such as "0-3,8"; enough to find the socket.
std::optional<std::int64_t> FirstCpu(std::string_view list) {
  list = Trim(list);
  return ParseInt64(list.substr(0, list.find_first_of(",-")));
}

// The socket of a NUMA node, if sysfs has it.
std::optional<std::int64_t> SocketOf(const Sysfs& sysfs, std::int64_t node) {
  const auto list = sysfs.files.ReadFile(JoinPath(NodePath(sysfs, node), "cpulist"));
  if (!list.ok()) return std::nullopt;
  const std::optional<std::int64_t> cpu = FirstCpu(*list);
  if (!cpu) return std::nullopt;
  const auto socket = ReadNumber(
      sysfs, JoinPath(sysfs.root,
                      StrCat("devices/system/cpu/cpu", *cpu, "/topology/physical_package_id")));
  if (!socket.ok() || *socket < 0) return std::nullopt;
  return *socket;
}

// The online NUMA nodes, ascending: the columns of a `distance` file.
std::vector<std::int64_t> OnlineNodes(const Sysfs& sysfs) {
  std::vector<std::int64_t> nodes;
  const auto names = sysfs.files.ListDirectory(JoinPath(sysfs.root, "devices/system/node"));
  if (!names.ok()) return nodes;
  for (const std::string& name : *names) {
    if (!name.starts_with("node")) continue;
    if (const auto number = ParseInt64(name.substr(4)); number && *number >= 0) {
      nodes.push_back(*number);
    }
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

// Distance by node; empty if sysfs has none.
std::map<std::int64_t, std::int64_t> Distances(const Sysfs& sysfs, std::int64_t node) {
  std::map<std::int64_t, std::int64_t> distances;
  const auto text = sysfs.files.ReadFile(JoinPath(NodePath(sysfs, node), "distance"));
  if (!text.ok()) return distances;
  const std::vector<std::int64_t> nodes = OnlineNodes(sysfs);
  std::size_t column = 0;
  for (const std::string_view word : Split(Trim(*text), ' ')) {
    if (word.empty()) continue;
    const auto distance = ParseInt64(word);
    if (!distance || column >= nodes.size()) return {};
    distances[nodes[column++]] = *distance;
  }
  if (column != nodes.size()) distances.clear();
  return distances;
}

}  // namespace

Result<void> CheckPciBusId(std::string_view bus_id) {
  if (bus_id.empty()) return InvalidArgument("PCI Bus ID cannot be empty");
  const bool valid = bus_id.size() == 12 && bus_id[4] == ':' && bus_id[7] == ':' &&
                     bus_id[10] == '.' && IsHex(bus_id.substr(0, 4)) &&
                     IsHex(bus_id.substr(5, 2)) && IsHex(bus_id.substr(8, 2)) &&
                     IsHex(bus_id.substr(11));
  if (!valid) return InvalidArgument(StrCat("invalid PCI Bus ID format: ", bus_id));
  return Ok();
}

Result<std::string> PcieRoot(const Sysfs& sysfs, const std::string& bus_id) {
  RETURN_IF_ERROR(CheckPciBusId(bus_id));
  const std::string link = DevicePath(sysfs, bus_id);
  ASSIGN_OR_RETURN(const std::string target, sysfs.files.ReadLink(link));
  const std::string path = Resolve(DirectoryName(link), target);
  const std::string prefix = JoinPath(sysfs.root, "devices/");
  if (!path.starts_with(prefix + "pci") || BaseName(path) != bus_id) {
    return FailedPrecondition(StrCat(link, " points to ", path, ", which is not a PCI device"));
  }
  const std::string below = path.substr(prefix.size());
  return below.substr(0, below.find('/'));
}

Result<std::int64_t> NumaNodeOfPciDevice(const Sysfs& sysfs, const std::string& bus_id) {
  RETURN_IF_ERROR(CheckPciBusId(bus_id));
  ASSIGN_OR_RETURN(const std::int64_t node,
                   ReadNumber(sysfs, JoinPath(DevicePath(sysfs, bus_id), "numa_node")));
  if (node < 0) {
    return FailedPrecondition(StrCat("the NUMA node of ", bus_id, " is unknown"));
  }
  RETURN_IF_ERROR(CheckNumaNode(node));
  return node;
}

Result<std::int64_t> NumaNodeOfCpu(const Sysfs& sysfs, std::int64_t cpu) {
  const std::string directory = JoinPath(sysfs.root, StrCat("devices/system/cpu/cpu", cpu));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, sysfs.files.ListDirectory(directory));
  for (const std::string& name : names) {
    if (!name.starts_with("node")) continue;
    if (const auto node = ParseInt64(name.substr(4)); node && *node >= 0) return *node;
  }
  return FailedPrecondition(StrCat("the NUMA node of CPU ", cpu, " is unknown"));
}

Result<std::vector<std::int64_t>> NumaNodesNear(const Sysfs& sysfs, std::int64_t node) {
  RETURN_IF_ERROR(CheckNumaNode(node));
  std::vector<std::int64_t> near = {node};
  std::map<std::int64_t, std::int64_t> others = Distances(sysfs, node);
  if (others.erase(node) == 0 || others.empty()) return near;
  const std::optional<std::int64_t> socket = SocketOf(sysfs, node);
  const std::int64_t least =
      std::min_element(others.begin(), others.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->second;
  for (const auto& [other, distance] : others) {
    if (distance != least) continue;
    const std::optional<std::int64_t> other_socket = SocketOf(sysfs, other);
    if (socket && other_socket && *socket != *other_socket) continue;
    near.push_back(other);
  }
  return near;
}

Result<void> AddPciAttributes(const Sysfs& sysfs, const std::string& bus_id, Device& device) {
  RETURN_IF_ERROR(CheckPciBusId(bus_id));
  if (auto there = sysfs.files.LinkStat(DevicePath(sysfs, bus_id)); !there.ok()) {
    return std::move(there).error().Prefixed("PCI device " + bus_id);
  }
  device.attributes[kPciBusIdAttribute] = bus_id;
  if (auto root = PcieRoot(sysfs, bus_id); root.ok()) {
    device.attributes[kPcieRootAttribute] = *std::move(root);
  }
  if (auto node = NumaNodeOfPciDevice(sysfs, bus_id); node.ok()) {
    device.attributes[kNumaNodeAttribute] = *node;
  }
  return Ok();
}

}  // namespace drakkar::driver
