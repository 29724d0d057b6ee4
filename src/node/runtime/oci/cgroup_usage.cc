#include "node/runtime/oci/cgroup_usage.h"

#include <algorithm>
#include <cstdlib>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

constexpr std::uint64_t kUserTickNs = 10'000'000;  // USER_HZ is 100 on every architecture
// v1 shows "no limit" as the largest multiple of a page.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;

Count Number(std::string_view text) {
  const auto number = ParseInt64(Trim(text));
  if (!number || *number < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

// A file with "name value" lines.
class Table {
 public:
  explicit Table(std::string text) : text_(std::move(text)) {}
  Count Get(std::string_view name) const {
    for (std::string_view line : Split(text_, '\n')) {
      if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ' ') {
        return Number(line.substr(name.size() + 1));
      }
    }
    return std::nullopt;
  }
  // The sum over a cgroup and those below it, which v1 shows under a name of its own.
  Count Sum(std::string_view name) const {
    if (Count total = Get(StrCat("total_", name))) return total;
    return Get(name);
  }

 private:
  std::string text_;
};

class Reader {
 public:
  Reader(FileSystem& files, const Cgroups& cgroups, const std::string& path)
      : files_(files), cgroups_(cgroups), path_(path) {}

  std::string Text(std::string_view controller, std::string_view file) const {
    const std::string root = cgroups_.RootOf(controller);
    if (root.empty()) return "";
    auto text = files_.ReadFile(JoinPath(path_ == "/" ? root : root + path_, file));
    return text.ok() ? std::move(*text) : std::string();
  }
  Count Value(std::string_view controller, std::string_view file) const {
    return Number(Text(controller, file));
  }
  Table Lines(std::string_view controller, std::string_view file) const {
    return Table(Text(controller, file));
  }
  std::string Host(const char* file) const {
    auto text = files_.ReadFile(file);
    return text.ok() ? std::move(*text) : std::string();
  }
  bool is_machine() const { return path_ == "/"; }

 private:
  FileSystem& files_;
  const Cgroups& cgroups_;
  const std::string& path_;
};

Count Times(Count value, std::uint64_t factor) {
  if (value) *value *= factor;
  return value;
}

Count Less(Count from, Count amount) {
  if (!from) return from;
  return *from - std::min(*from, amount.value_or(0));
}

Count KilobytesOf(std::string_view meminfo, std::string_view name) {
  for (std::string_view line : Split(meminfo, '\n')) {
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ':') continue;
    std::string_view number = Trim(line.substr(name.size() + 1));
    return Times(Number(number.substr(0, number.find(' '))), 1024);
  }
  return std::nullopt;
}

CpuUsage ReadCpu(const Reader& reader, bool unified) {
  CpuUsage cpu;
  const Table stat = reader.Lines("cpu", "cpu.stat");
  cpu.periods = stat.Get("nr_periods");
  cpu.throttled_periods = stat.Get("nr_throttled");
  if (unified) {
    cpu.total_ns = Times(stat.Get("usage_usec"), 1000);
    cpu.user_ns = Times(stat.Get("user_usec"), 1000);
    cpu.system_ns = Times(stat.Get("system_usec"), 1000);
    cpu.throttled_ns = Times(stat.Get("throttled_usec"), 1000);
    const std::string most = reader.Text("cpu", "cpu.max");
    if (const auto words = Split(Trim(most), ' '); words.size() == 2) {
      cpu.quota_us = Number(words[0]);  // "max" is no number
      cpu.period_us = Number(words[1]);
    }
    if (const Count weight = reader.Value("cpu", "cpu.weight"); weight && *weight >= 1) {
      cpu.shares = 2 + (*weight - 1) * 262142 / 9999;
    }
    cpu.pressure = ParsePressure(reader.is_machine() ? reader.Host("/proc/pressure/cpu")
                                                     : reader.Text("cpu", "cpu.pressure"));
    return cpu;
  }
  cpu.total_ns = reader.Value("cpuacct", "cpuacct.usage");
  const Table ticks = reader.Lines("cpuacct", "cpuacct.stat");
  cpu.user_ns = Times(ticks.Get("user"), kUserTickNs);
  cpu.system_ns = Times(ticks.Get("system"), kUserTickNs);
  cpu.throttled_ns = stat.Get("throttled_time");
  cpu.quota_us = reader.Value("cpu", "cpu.cfs_quota_us");  // -1 is no limit
  cpu.period_us = reader.Value("cpu", "cpu.cfs_period_us");
  cpu.shares = reader.Value("cpu", "cpu.shares");
  return cpu;
}

MemoryUsage ReadMemory(const Reader& reader, bool unified) {
  MemoryUsage memory;
  const Table stat = reader.Lines("memory", "memory.stat");
  if (unified) {
    memory.usage_bytes = reader.Value("memory", "memory.current");
    memory.swap_bytes = reader.Value("memory", "memory.swap.current");
    if (reader.is_machine() && !memory.usage_bytes) {
      const std::string meminfo = reader.Host("/proc/meminfo");
      memory.usage_bytes = Less(KilobytesOf(meminfo, "MemTotal"), KilobytesOf(meminfo, "MemFree"));
      memory.swap_bytes = Less(KilobytesOf(meminfo, "SwapTotal"), KilobytesOf(meminfo, "SwapFree"));
      memory.swap_available_bytes = KilobytesOf(meminfo, "SwapFree");
    }
    memory.rss_bytes = stat.Get("anon");
    memory.cache_bytes = stat.Get("file");
    memory.mapped_bytes = stat.Get("file_mapped");
    memory.max_usage_bytes = reader.Value("memory", "memory.peak");
    memory.limit_bytes = reader.Value("memory", "memory.max");  // "max" is no number
    if (const Count most = reader.Value("memory", "memory.swap.max")) {
      memory.swap_available_bytes = Less(most, memory.swap_bytes);
    }
    memory.page_faults = stat.Get("pgfault");
    memory.major_page_faults = stat.Get("pgmajfault");
    const Table events = reader.Lines("memory", "memory.events");
    memory.limit_hits = events.Get("max");
    memory.oom_kills = events.Get("oom_kill");
    memory.pressure = ParsePressure(reader.is_machine() ? reader.Host("/proc/pressure/memory")
                                                        : reader.Text("memory", "memory.pressure"));
    memory.working_set_bytes = Less(memory.usage_bytes, stat.Get("inactive_file"));
  } else {
    memory.usage_bytes = reader.Value("memory", "memory.usage_in_bytes");
    memory.working_set_bytes = Less(memory.usage_bytes, stat.Sum("inactive_file"));
    memory.rss_bytes = stat.Sum("rss");
    memory.cache_bytes = stat.Sum("cache");
    memory.mapped_bytes = stat.Sum("mapped_file");
    memory.swap_bytes = stat.Sum("swap");  // absent without swap accounting
    memory.max_usage_bytes = reader.Value("memory", "memory.max_usage_in_bytes");
    memory.limit_bytes = reader.Value("memory", "memory.limit_in_bytes");
    memory.page_faults = stat.Sum("pgfault");
    memory.major_page_faults = stat.Sum("pgmajfault");
    memory.limit_hits = reader.Value("memory", "memory.failcnt");
    memory.oom_kills = reader.Lines("memory", "memory.oom_control").Get("oom_kill");
    if (memory.limit_bytes && *memory.limit_bytes >= kNoLimit) memory.limit_bytes.reset();
    const Count with_swap = reader.Value("memory", "memory.memsw.limit_in_bytes");
    if (with_swap && *with_swap < kNoLimit && memory.limit_bytes) {
      memory.swap_available_bytes = Less(Less(with_swap, memory.limit_bytes), memory.swap_bytes);
    }
    if (reader.is_machine()) {
      const std::string meminfo = reader.Host("/proc/meminfo");
      memory.swap_available_bytes = KilobytesOf(meminfo, "SwapFree");
    }
  }
  if (memory.limit_bytes) {
    memory.available_bytes = Less(memory.limit_bytes, memory.working_set_bytes);
  }
  return memory;
}

}  // namespace

std::optional<Pressure> ParsePressure(std::string_view text) {
  Pressure pressure;
  bool any = false;
  for (std::string_view line : Split(text, '\n')) {
    const auto words = Split(line, ' ');
    if (words.size() != 5 || (words[0] != "some" && words[0] != "full")) continue;
    Pressure::Line& into = words[0] == "some" ? pressure.some : pressure.full;
    auto value = [](std::string_view word) {
      return std::string(word.substr(std::min(word.size(), word.find('=') + 1)));
    };
    into.avg10 = std::strtod(value(words[1]).c_str(), nullptr);
    into.avg60 = std::strtod(value(words[2]).c_str(), nullptr);
    into.avg300 = std::strtod(value(words[3]).c_str(), nullptr);
    into.total_us = Number(value(words[4])).value_or(0);
    any = true;
  }
  return any ? std::optional<Pressure>(pressure) : std::nullopt;
}

CgroupUsage ReadCgroupUsage(FileSystem& files, const Cgroups& cgroups, const std::string& path,
                            WallTime now) {
  const Reader reader(files, cgroups, path);
  CgroupUsage usage;
  usage.cpu = ReadCpu(reader, cgroups.is_unified());
  usage.memory = ReadMemory(reader, cgroups.is_unified());
  usage.cpu.time = now;
  usage.memory.time = now;
  if (cgroups.is_unified()) {
    usage.io_pressure = ParsePressure(reader.is_machine() ? reader.Host("/proc/pressure/io")
                                                          : reader.Text("io", "io.pressure"));
  }
  usage.processes = reader.Value("pids", "pids.current");
  return usage;
}

std::vector<InterfaceUsage> ParseInterfaces(std::string_view net_dev) {
  std::vector<InterfaceUsage> interfaces;
  for (std::string_view line : Split(net_dev, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    InterfaceUsage each;
    each.name = std::string(Trim(line.substr(0, colon)));
    if (each.name == "lo") continue;
    std::vector<Count> numbers;
    for (std::string_view word : Split(line.substr(colon + 1), ' ')) {
      if (!word.empty()) numbers.push_back(Number(word));
    }
    // Eight columns for each direction: bytes, packets, errs, drop, and four more.
    if (numbers.size() < 12) continue;
    each.rx_bytes = numbers[0];
    each.rx_packets = numbers[1];
    each.rx_errors = numbers[2];
    each.rx_dropped = numbers[3];
    each.tx_bytes = numbers[8];
    each.tx_packets = numbers[9];
    each.tx_errors = numbers[10];
    each.tx_dropped = numbers[11];
    interfaces.push_back(std::move(each));
  }
  return interfaces;
}

std::string DefaultInterface(std::string_view net_route) {
  for (std::string_view line : Split(net_route, '\n')) {
    const auto words = Split(line, '\t');
    if (words.size() > 2 && words[1] == "00000000") return std::string(Trim(words[0]));
  }
  return "";
}

std::vector<InterfaceUsage> ReadInterfaces(FileSystem& files, int pid) {
  auto devices = files.ReadFile(StrCat("/proc/", pid, "/net/dev"));
  if (!devices.ok()) return {};
  std::vector<InterfaceUsage> interfaces = ParseInterfaces(*devices);
  auto routes = files.ReadFile(StrCat("/proc/", pid, "/net/route"));
  const std::string first = routes.ok() ? DefaultInterface(*routes) : "";
  std::stable_partition(interfaces.begin(), interfaces.end(),
                        [&](const InterfaceUsage& each) { return each.name == first; });
  return interfaces;
}

}  // namespace drakkar::node
