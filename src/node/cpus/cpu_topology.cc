#include "node/cpus/cpu_topology.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

using Place = CpuTopology::Place;
using Part = int Place::*;

constexpr char kCpus[] = "/sys/devices/system/cpu";
constexpr char kNodes[] = "/sys/devices/system/node";

Result<int> ReadNumber(FileSystem& files, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, files.ReadFile(path));
  const auto number = ParseInt64(Trim(text));
  if (!number || *number > CpuSet::kMaxCpu) return InvalidArgument(path + " is not a number");
  return static_cast<int>(std::max<std::int64_t>(*number, 0));  // -1 in some virtual machines
}

// How many of `cpus` are in each core, socket or NUMA node.
std::map<int, int> CountBy(const CpuTopology& topology, const CpuSet& cpus, Part part) {
  std::map<int, int> counts;
  for (const int cpu : cpus) ++counts[topology.cpus.at(cpu).*part];
  return counts;
}

class Taking {
 public:
  Taking(const CpuTopology& topology, const CpuSet& available, int count)
      : topology_(topology), all_(topology.All()), free_(available), missing_(count) {}

  CpuSet Take() {
    // The larger part first; usually both are the same.
    const auto nodes = CountBy(topology_, all_, &Place::numa_node).size();
    const auto sockets = CountBy(topology_, all_, &Place::socket).size();
    const bool node_is_larger = sockets >= nodes;
    TakeWhole(node_is_larger ? &Place::numa_node : &Place::socket);
    TakeWhole(node_is_larger ? &Place::socket : &Place::numa_node);
    TakeWhole(&Place::core);
    while (missing_ > 0 && !free_.empty()) {
      const std::vector<int> sorted = Sorted();
      Move({sorted.front()});
    }
    return taken_;
  }

 private:
  // Takes units (cores, sockets, nodes) that are entirely free, as long as enough CPUs are missing.
  void TakeWhole(Part part) {
    while (missing_ > 0) {
      const auto sizes = CountBy(topology_, all_, part);
      const auto counts = CountBy(topology_, free_, part);
      const std::vector<int> sorted = Sorted();
      const auto fits = std::ranges::find_if(sorted, [&](int cpu) {
        const int id = topology_.cpus.at(cpu).*part;
        return counts.at(id) == sizes.at(id) && sizes.at(id) <= missing_;
      });
      if (fits == sorted.end()) return;
      CpuSet whole;
      for (const int cpu : free_) {
        if (topology_.cpus.at(cpu).*part == topology_.cpus.at(*fits).*part) whole.Add(cpu);
      }
      Move(whole);
    }
  }

  // The free CPUs, starting with those of the fullest units.
  std::vector<int> Sorted() const {
    const auto nodes = CountBy(topology_, free_, &Place::numa_node);
    const auto sockets = CountBy(topology_, free_, &Place::socket);
    const auto cores = CountBy(topology_, free_, &Place::core);
    const auto rank = [&](int cpu) {
      const Place& place = topology_.cpus.at(cpu);
      return std::tuple(nodes.at(place.numa_node), place.numa_node, sockets.at(place.socket),
                        place.socket, cores.at(place.core), place.core, cpu);
    };
    std::vector<int> sorted(free_.begin(), free_.end());
    std::ranges::sort(sorted, {}, rank);
    return sorted;
  }

  void Move(const CpuSet& cpus) {
    taken_.Add(cpus);
    free_ = free_.Without(cpus);
    missing_ -= cpus.size();
  }

  const CpuTopology& topology_;
  const CpuSet all_;
  CpuSet free_;
  CpuSet taken_;
  int missing_;
};

}  // namespace

CpuSet CpuTopology::All() const {
  CpuSet all;
  for (const auto& [cpu, place] : cpus) all.Add(cpu);
  return all;
}

CpuSet CpuTopology::WholeCores(const CpuSet& some) const {
  CpuSet whole;
  for (const auto& [cpu, place] : cpus) {
    const bool shares = std::ranges::any_of(some, [&](int each) {
      const auto found = cpus.find(each);
      return found != cpus.end() && found->second.core == place.core;
    });
    if (shares) whole.Add(cpu);
  }
  return whole;
}

int CpuTopology::CpusPerCore() const {
  int most = 1;
  for (const auto& [core, count] : CountBy(*this, All(), &Place::core))
    most = std::max(most, count);
  return most;
}

Result<CpuTopology> ReadCpuTopology(FileSystem& files) {
  ASSIGN_OR_RETURN(const std::string text, files.ReadFile(StrCat(kCpus, "/online")));
  ASSIGN_OR_RETURN(const CpuSet online, CpuSet::Parse(text));
  CpuTopology topology;
  std::map<std::pair<int, int>, int> cores;  // (socket, core in it) -> the first CPU
  for (const int cpu : online) {
    const std::string directory = StrCat(kCpus, "/cpu", cpu, "/topology");
    ASSIGN_OR_RETURN(const int socket, ReadNumber(files, directory + "/physical_package_id"));
    ASSIGN_OR_RETURN(const int core, ReadNumber(files, directory + "/core_id"));
    topology.cpus[cpu] = {.core = cores.try_emplace({socket, core}, cpu).first->second,
                          .socket = socket};
  }
  // A kernel without NUMA has no such directory.
  const auto nodes = files.ListDirectory(kNodes);
  if (!nodes.ok()) return topology;
  for (const std::string& name : *nodes) {
    if (!name.starts_with("node")) continue;
    const auto number = ParseInt64(std::string_view(name).substr(4));
    if (!number) continue;
    ASSIGN_OR_RETURN(const std::string list, files.ReadFile(StrCat(kNodes, "/", name, "/cpulist")));
    ASSIGN_OR_RETURN(const CpuSet cpus, CpuSet::Parse(list));
    for (const int cpu : cpus) {
      const auto found = topology.cpus.find(cpu);
      if (found != topology.cpus.end()) found->second.numa_node = static_cast<int>(*number);
    }
  }
  return topology;
}

Result<CpuSet> TakeCpus(const CpuTopology& topology, const CpuSet& available, int count) {
  if (available.size() < count) {
    return Error{ErrorCode::kResourceExhausted,
                 StrCat("not enough cpus available to satisfy request: requested=", count,
                        ", available=", available.size())};
  }
  return Taking(topology, available, count).Take();
}

}  // namespace drakkar::node
