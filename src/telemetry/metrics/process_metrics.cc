#include "telemetry/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/text/text.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar {
namespace {

// Positions in /proc/self/stat after the program's name, which may contain any character.
constexpr std::size_t kUserTicks = 11;
constexpr std::size_t kSystemTicks = 12;
constexpr std::size_t kStartTicks = 19;
constexpr std::size_t kVirtualBytes = 20;
constexpr std::size_t kResidentPages = 21;

std::vector<double> ReadNumbers(FileSystem& files) {
  const Result<std::string> text = files.ReadFile("/proc/self/stat");
  std::vector<double> numbers;
  const std::size_t name_end = text.ok() ? text->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return numbers;
  for (std::string_view field : Split(Trim(std::string_view(*text).substr(name_end + 1)), ' ')) {
    numbers.push_back(static_cast<double>(ParseInt64(field).value_or(0)));
  }
  return numbers;
}

std::optional<double> BootTime(FileSystem& files) {
  const Result<std::string> text = files.ReadFile("/proc/stat");
  if (!text.ok()) return std::nullopt;
  for (std::string_view line : Split(*text, '\n')) {
    if (!line.starts_with("btime ")) continue;
    if (const auto seconds = ParseInt64(Trim(line.substr(6)))) return static_cast<double>(*seconds);
  }
  return std::nullopt;
}

}  // namespace

void UpdateProcessMetrics(FileSystem& files, Metrics& metrics) {
  const auto set = [&](const char* name, const char* help, double value) {
    metrics.GetGauge(name, help).Set(value);
  };
  if (const std::vector<double> numbers = ReadNumbers(files); numbers.size() > kResidentPages) {
    const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
    Counter& cpu = metrics.GetCounter("process_cpu_seconds_total",
                                      "Total user and system CPU time spent in seconds.");
    cpu.Add((numbers[kUserTicks] + numbers[kSystemTicks]) / ticks - cpu.value());
    set("process_virtual_memory_bytes", "Virtual memory size in bytes.", numbers[kVirtualBytes]);
    set("process_resident_memory_bytes", "Resident memory size in bytes.",
        numbers[kResidentPages] * static_cast<double>(::sysconf(_SC_PAGESIZE)));
    if (const std::optional<double> boot = BootTime(files)) {
      set("process_start_time_seconds", "Start time of the process since unix epoch in seconds.",
          *boot + numbers[kStartTicks] / ticks);
    }
  }
  if (const auto open = files.ListDirectory("/proc/self/fd"); open.ok()) {
    set("process_open_fds", "Number of open file descriptors.", static_cast<double>(open->size()));
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    set("process_max_fds", "Maximum number of open file descriptors.",
        static_cast<double>(limit.rlim_cur));
  }
}

}  // namespace drakkar
