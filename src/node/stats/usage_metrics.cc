// Prometheus text of /metrics/resource and /metrics/cadvisor.
#include <charconv>
#include <cmath>
#include <functional>

#include "base/text/text.h"
#include "node/stats/summary.h"

namespace drakkar::node {
namespace {

std::string Escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text;
}

std::string Text(double value) {
  // Whole numbers in full: 4e+05 is hard to read.
  constexpr double kExact = 9e15;
  if (value == std::floor(value) && std::fabs(value) < kExact) {
    return std::to_string(static_cast<std::int64_t>(value));
  }
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end.ptr);
}

std::int64_t Milliseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

double Seconds(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

// Collects samples by family, because all samples of a family must be adjacent.
class Exposition {
 public:
  void Family(std::string_view name, std::string_view type, std::string_view help) {
    text_ += StrCat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
    name_ = std::string(name);
  }
  void Add(std::string_view labels, double value, std::optional<WallTime> time) {
    text_ += name_;
    if (!labels.empty()) text_ += StrCat("{", labels, "}");
    text_ += StrCat(" ", Text(value));
    if (time) text_ += StrCat(" ", Milliseconds(*time));
    text_ += '\n';
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

constexpr double kNanosecond = 1e-9;
constexpr double kMicrosecond = 1e-6;

// --- /metrics/resource ---

std::string PodLabels(const PodUsage& pod) {
  return StrCat("namespace=\"", Escaped(pod.namespace_name), "\",pod=\"", Escaped(pod.name), "\"");
}
std::string ContainerLabels(const PodUsage& pod, const ContainerUsage& container) {
  return StrCat("container=\"", Escaped(container.name), "\",", PodLabels(pod));
}

// --- /metrics/cadvisor ---

// A cgroup with its labels: the machine, a pod or a container.
struct Group {
  std::string labels;
  bool is_container = false;
  WallTime started_at{};
  const CpuUsage* cpu = nullptr;
  const MemoryUsage* memory = nullptr;
  const std::optional<Pressure>* io_pressure = nullptr;
  Count processes;
  const std::vector<InterfaceUsage>* interfaces = nullptr;
  const FileUsage* files = nullptr;
};

std::string GroupLabels(const PodUsage* pod, const ContainerUsage* container,
                        std::string_view cgroup) {
  std::string_view name;
  if (container != nullptr) {
    name = container->id;
  } else if (pod != nullptr) {
    name = pod->sandbox_id;
  }
  return StrCat("container=\"", container != nullptr ? Escaped(container->name) : "", "\",id=\"",
                Escaped(cgroup), "\",image=\"",
                container != nullptr ? Escaped(container->image) : "", "\",name=\"", Escaped(name),
                "\",namespace=\"", pod != nullptr ? Escaped(pod->namespace_name) : "", "\",pod=\"",
                pod != nullptr ? Escaped(pod->name) : "", "\"");
}

std::vector<Group> GroupsOf(const NodeUsage& usage) {
  std::vector<Group> groups;
  groups.push_back({.labels = GroupLabels(nullptr, nullptr, "/"),
                    .started_at = usage.boot_time,
                    .cpu = &usage.machine.cpu,
                    .memory = &usage.machine.memory,
                    .io_pressure = &usage.machine.io_pressure,
                    .processes = usage.machine.processes,
                    .interfaces = &usage.machine.interfaces});
  if (usage.all_pods) {
    groups.push_back({.labels = GroupLabels(nullptr, nullptr, usage.all_pods->cgroup),
                      .started_at = usage.boot_time,
                      .cpu = &usage.all_pods->cpu,
                      .memory = &usage.all_pods->memory});
  }
  for (const PodUsage& pod : usage.pods) {
    groups.push_back({.labels = GroupLabels(&pod, nullptr, pod.cgroup),
                      .started_at = pod.started_at,
                      .cpu = &pod.cpu,
                      .memory = &pod.memory,
                      .io_pressure = &pod.io_pressure,
                      .processes = pod.processes,
                      .interfaces = &pod.interfaces});
    for (const ContainerUsage& each : pod.containers) {
      groups.push_back({.labels = GroupLabels(&pod, &each, each.cgroup),
                        .is_container = true,
                        .started_at = each.started_at,
                        .cpu = &each.cpu,
                        .memory = &each.memory,
                        .io_pressure = &each.io_pressure,
                        .processes = each.processes,
                        .files = &each.root_fs});
    }
  }
  return groups;
}

struct CpuMetric {
  const char* name;
  const char* type;
  const char* help;
  Count CpuUsage::*value;
  double factor;
  const char* label;
};
constexpr CpuMetric kCpuMetrics[] = {
    {"container_cpu_usage_seconds_total", "counter", "CPU time used", &CpuUsage::total_ns,
     kNanosecond, ",cpu=\"total\""},
    {"container_cpu_user_seconds_total", "counter", "CPU time used in user mode",
     &CpuUsage::user_ns, kNanosecond, ""},
    {"container_cpu_system_seconds_total", "counter", "CPU time used in kernel mode",
     &CpuUsage::system_ns, kNanosecond, ""},
    {"container_cpu_cfs_periods_total", "counter", "Periods of the CPU quota that have passed",
     &CpuUsage::periods, 1, ""},
    {"container_cpu_cfs_throttled_periods_total", "counter",
     "Periods in which the CPU quota was used up", &CpuUsage::throttled_periods, 1, ""},
    {"container_cpu_cfs_throttled_seconds_total", "counter",
     "Time spent waiting for the next period of the CPU quota", &CpuUsage::throttled_ns,
     kNanosecond, ""},
    {"container_spec_cpu_quota", "gauge", "CPU quota per period, in microseconds",
     &CpuUsage::quota_us, 1, ""},
    {"container_spec_cpu_period", "gauge", "Period of the CPU quota, in microseconds",
     &CpuUsage::period_us, 1, ""},
    {"container_spec_cpu_shares", "gauge", "CPU shares", &CpuUsage::shares, 1, ""},
};

struct MemoryMetric {
  const char* name;
  const char* type;
  const char* help;
  Count MemoryUsage::*value;
};
constexpr MemoryMetric kMemoryMetrics[] = {
    {"container_memory_cache", "gauge", "Page cache", &MemoryUsage::cache_bytes},
    {"container_memory_rss", "gauge", "Anonymous memory", &MemoryUsage::rss_bytes},
    {"container_memory_mapped_file", "gauge", "Files mapped into memory",
     &MemoryUsage::mapped_bytes},
    {"container_memory_swap", "gauge", "Swap in use", &MemoryUsage::swap_bytes},
    {"container_memory_failcnt", "counter", "How often the memory limit was reached",
     &MemoryUsage::limit_hits},
    {"container_memory_usage_bytes", "gauge", "Memory in use, with page cache",
     &MemoryUsage::usage_bytes},
    {"container_memory_max_usage_bytes", "gauge", "Most memory in use so far",
     &MemoryUsage::max_usage_bytes},
    {"container_memory_working_set_bytes", "gauge", "Memory in use, without inactive page cache",
     &MemoryUsage::working_set_bytes},
    {"container_oom_events_total", "counter", "Processes killed for lack of memory",
     &MemoryUsage::oom_kills},
};

struct NetworkMetric {
  const char* name;
  const char* help;
  Count InterfaceUsage::*value;
};
constexpr NetworkMetric kNetworkMetrics[] = {
    {"container_network_receive_bytes_total", "Bytes received", &InterfaceUsage::rx_bytes},
    {"container_network_receive_packets_total", "Packets received", &InterfaceUsage::rx_packets},
    {"container_network_receive_packets_dropped_total", "Incoming packets that were dropped",
     &InterfaceUsage::rx_dropped},
    {"container_network_receive_errors_total", "Errors of reception", &InterfaceUsage::rx_errors},
    {"container_network_transmit_bytes_total", "Bytes sent", &InterfaceUsage::tx_bytes},
    {"container_network_transmit_packets_total", "Packets sent", &InterfaceUsage::tx_packets},
    {"container_network_transmit_packets_dropped_total", "Outgoing packets that were dropped",
     &InterfaceUsage::tx_dropped},
    {"container_network_transmit_errors_total", "Errors of transmission",
     &InterfaceUsage::tx_errors},
};

void WritePressure(Exposition& out, const std::vector<Group>& groups) {
  using Find = std::function<const std::optional<Pressure>*(const Group&)>;
  const struct {
    const char* resource;
    Find find;
  } kinds[] = {
      {"cpu", [](const Group& group) { return &group.cpu->pressure; }},
      {"memory", [](const Group& group) { return &group.memory->pressure; }},
      {"io", [](const Group& group) { return group.io_pressure; }},
  };
  for (const auto& kind : kinds) {
    for (const bool stalled : {true, false}) {
      out.Family(
          StrCat("container_pressure_", kind.resource, stalled ? "_stalled" : "_waiting",
                 "_seconds_total"),
          "counter",
          StrCat("Time in which ", stalled ? "all" : "some", " tasks waited for ", kind.resource));
      for (const Group& group : groups) {
        const std::optional<Pressure>* pressure = kind.find(group);
        if (pressure == nullptr || !*pressure) continue;
        const Pressure::Line& line = stalled ? (*pressure)->full : (*pressure)->some;
        out.Add(group.labels, static_cast<double>(line.total_us) * kMicrosecond, group.cpu->time);
      }
    }
  }
}

}  // namespace

std::string WriteResourceMetrics(const NodeUsage& usage) {
  Exposition out;
  auto containers = [&](std::string_view name, std::string_view type, std::string_view help,
                        auto value) {
    out.Family(name, type, help);
    for (const PodUsage& pod : usage.pods) {
      for (const ContainerUsage& each : pod.containers) {
        if (const std::optional<double> number = value(each)) {
          out.Add(ContainerLabels(pod, each), *number, each.cpu.time);
        }
      }
    }
  };
  auto pods = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
    out.Family(name, type, help);
    for (const PodUsage& pod : usage.pods) {
      if (const std::optional<double> number = value(pod)) {
        out.Add(PodLabels(pod), *number, pod.cpu.time);
      }
    }
  };
  auto node = [&](std::string_view name, std::string_view type, std::string_view help,
                  const Count& value, double factor) {
    out.Family(name, type, help);
    if (value) out.Add("", static_cast<double>(*value) * factor, usage.machine.time);
  };
  auto number = [](const Count& count, double factor = 1) {
    return count ? std::optional<double>(static_cast<double>(*count) * factor) : std::nullopt;
  };
  containers("container_cpu_usage_seconds_total", "counter", "CPU time that the container used",
             [&](const ContainerUsage& each) { return number(each.cpu.total_ns, kNanosecond); });
  containers("container_memory_working_set_bytes", "gauge",
             "Memory of the container, without inactive page cache",
             [&](const ContainerUsage& each) { return number(each.memory.working_set_bytes); });
  out.Family("container_start_time_seconds", "gauge", "When the container started");
  for (const PodUsage& pod : usage.pods) {
    for (const ContainerUsage& each : pod.containers) {
      if (each.started_at == WallTime{}) continue;
      out.Add(ContainerLabels(pod, each), Seconds(each.started_at), std::nullopt);
    }
  }
  containers(
      "container_swap_limit_bytes", "gauge", "Swap that the container may use",
      [&](const ContainerUsage& each) {
        if (!each.memory.swap_available_bytes) return std::optional<double>();
        return std::optional<double>(static_cast<double>(*each.memory.swap_available_bytes) +
                                     static_cast<double>(each.memory.swap_bytes.value_or(0)));
      });
  containers("container_swap_usage_bytes", "gauge", "Swap that the container uses",
             [&](const ContainerUsage& each) { return number(each.memory.swap_bytes); });
  node("node_cpu_usage_seconds_total", "counter", "CPU time that the node used",
       usage.machine.cpu.total_ns, kNanosecond);
  node("node_memory_working_set_bytes", "gauge", "Memory of the node, without inactive page cache",
       usage.machine.memory.working_set_bytes, 1);
  node("node_swap_usage_bytes", "gauge", "Swap that the node uses", usage.machine.memory.swap_bytes,
       1);
  pods("pod_cpu_usage_seconds_total", "counter", "CPU time that the pod used",
       [&](const PodUsage& pod) { return number(pod.cpu.total_ns, kNanosecond); });
  pods("pod_memory_working_set_bytes", "gauge", "Memory of the pod, without inactive page cache",
       [&](const PodUsage& pod) { return number(pod.memory.working_set_bytes); });
  pods("pod_swap_usage_bytes", "gauge", "Swap that the pod uses",
       [&](const PodUsage& pod) { return number(pod.memory.swap_bytes); });
  out.Family("resource_scrape_error", "gauge", "1 if statistics could not be read");
  out.Add("", 0, std::nullopt);
  out.Family("scrape_error", "gauge", "The same as resource_scrape_error");
  out.Add("", 0, std::nullopt);
  return out.Take();
}

std::string WriteCadvisorMetrics(const NodeUsage& usage, const MachineIdentity& identity) {
  Exposition out;
  const std::vector<Group> groups = GroupsOf(usage);
  for (const CpuMetric& metric : kCpuMetrics) {
    out.Family(metric.name, metric.type, metric.help);
    for (const Group& group : groups) {
      const Count& value = group.cpu->*metric.value;
      if (!value) continue;
      out.Add(StrCat(group.labels, metric.label), static_cast<double>(*value) * metric.factor,
              group.cpu->time);
    }
  }
  for (const MemoryMetric& metric : kMemoryMetrics) {
    out.Family(metric.name, metric.type, metric.help);
    for (const Group& group : groups) {
      const Count& value = group.memory->*metric.value;
      if (value) out.Add(group.labels, static_cast<double>(*value), group.memory->time);
    }
  }
  out.Family("container_memory_failures_total", "counter", "Page faults");
  for (const Group& group : groups) {
    for (const bool major : {false, true}) {
      const Count& value = major ? group.memory->major_page_faults : group.memory->page_faults;
      if (!value) continue;
      // Nothing is below a container, so both scopes are equal there.
      for (const char* scope : {"container", "hierarchy"}) {
        if (!group.is_container && std::string_view(scope) == "container") continue;
        out.Add(StrCat(group.labels, ",failure_type=\"", major ? "pgmajfault" : "pgfault",
                       "\",scope=\"", scope, "\""),
                static_cast<double>(*value), group.memory->time);
      }
    }
  }
  out.Family("container_spec_memory_limit_bytes", "gauge", "Memory limit; 0: none");
  for (const Group& group : groups) {
    out.Add(group.labels, static_cast<double>(group.memory->limit_bytes.value_or(0)), std::nullopt);
  }
  for (const NetworkMetric& metric : kNetworkMetrics) {
    out.Family(metric.name, "counter", metric.help);
    for (const Group& group : groups) {
      if (group.interfaces == nullptr) continue;
      for (const InterfaceUsage& each : *group.interfaces) {
        const Count& value = each.*metric.value;
        if (!value) continue;
        out.Add(StrCat(group.labels, ",interface=\"", Escaped(each.name), "\""),
                static_cast<double>(*value), group.cpu->time);
      }
    }
  }
  out.Family("container_fs_usage_bytes", "gauge", "Disk space that the writable layer uses");
  for (const Group& group : groups) {
    if (group.files == nullptr || !group.files->used_bytes) continue;
    out.Add(StrCat(group.labels, ",device=\"\""), static_cast<double>(*group.files->used_bytes),
            group.cpu->time);
  }
  out.Family("container_threads", "gauge", "Threads");
  for (const Group& group : groups) {
    if (group.processes) {
      out.Add(group.labels, static_cast<double>(*group.processes), group.cpu->time);
    }
  }
  WritePressure(out, groups);
  out.Family("container_last_seen", "gauge", "When the values were read");
  for (const Group& group : groups) {
    out.Add(group.labels, std::floor(Seconds(usage.machine.time)), usage.machine.time);
  }
  out.Family("container_start_time_seconds", "gauge", "When the container started");
  for (const Group& group : groups) {
    out.Add(group.labels, std::floor(Seconds(group.started_at)), std::nullopt);
  }
  const std::string machine = StrCat("boot_id=\"", Escaped(identity.boot_id), "\",machine_id=\"",
                                     Escaped(identity.machine_id), "\",system_uuid=\"",
                                     Escaped(identity.system_uuid), "\"");
  out.Family("machine_cpu_cores", "gauge", "Logical processors");
  out.Add(machine, static_cast<double>(usage.cpu_count), std::nullopt);
  out.Family("machine_memory_bytes", "gauge", "Memory of the machine");
  out.Add(machine, static_cast<double>(usage.memory_capacity_bytes), std::nullopt);
  out.Family("container_scrape_error", "gauge", "1 if statistics could not be read");
  out.Add("", 0, std::nullopt);
  return out.Take();
}

}  // namespace drakkar::node
