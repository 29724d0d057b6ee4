#include "bench/load/probe.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "base/env/file_system.h"
#include "base/text/text.h"
#include "bench/load/watcher.h"

namespace drakkar::load {
namespace {

constexpr std::string_view kPrefix = "drakkar_store_";

Duration ProcessCpu(const std::string& pid) {
  const Result<std::string> stat = RealFileSystem().ReadFile(StrCat("/proc/", pid, "/stat"));
  if (!stat.ok()) return Duration::zero();
  // The name, in parentheses, may contain spaces. utime and stime are the 12th and 13th fields
  // after it.
  const std::vector<std::string_view> fields =
      Split(std::string_view(*stat).substr(stat->rfind(')') + 2), ' ');
  if (fields.size() < 13) return Duration::zero();
  const std::int64_t ticks =
      ParseInt64(fields[11]).value_or(0) + ParseInt64(fields[12]).value_or(0);
  return std::chrono::nanoseconds(ticks * (1'000'000'000 / ::sysconf(_SC_CLK_TCK)));
}

Duration OwnCpu() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  auto of = [](const timeval& t) {
    return Duration(std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec));
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

}  // namespace

void ReadStoreMetrics(std::string_view text, Usage& usage) {
  for (std::string_view line : Split(text, '\n')) {
    if (!line.starts_with(kPrefix)) continue;
    const std::size_t space = line.rfind(' ');
    if (space == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, std::min(line.find('{'), space));
    usage.counters[std::string(name.substr(kPrefix.size()))] +=
        std::strtod(std::string(line.substr(space + 1)).c_str(), nullptr);
    if (const std::size_t label = line.find("file_system=\""); label != std::string_view::npos) {
      const std::string_view value = line.substr(label + 13);
      usage.file_system = value.substr(0, value.find('"'));
    }
  }
}

Usage Probe::Take() {
  Usage usage;
  if (Result<net::Response> metrics = api_.Do({.path = "/metrics"}); metrics.ok()) {
    ReadStoreMetrics(metrics->body, usage);
  }
  for (const std::string& pid : pids_) usage.server_cpu += ProcessCpu(pid);
  usage.own_cpu = OwnCpu();
  return usage;
}

void Probe::Describe(const Usage& before, const Usage& after, double units, std::string_view unit,
                     Detail& detail) {
  detail.Text("file_system", after.file_system);
  for (const auto& [name, value] : after.counters) {
    if (!name.ends_with("_total")) continue;
    const auto old = before.counters.find(name);
    const double grown = value - (old == before.counters.end() ? 0 : old->second);
    detail.Number(StrCat("store_", name.substr(0, name.size() - 6), "_per_", unit), grown / units);
  }
  detail.Number(StrCat("server_cpu_us_per_", unit),
                Seconds(after.server_cpu - before.server_cpu) * 1e6 / units);
  detail.Number(StrCat("client_cpu_us_per_", unit),
                Seconds(after.own_cpu - before.own_cpu) * 1e6 / units);
}

double Probe::ServerPssBytes() const {
  double sum = 0;
  for (const std::string& pid : pids_) {
    const Result<std::string> text =
        RealFileSystem().ReadFile(StrCat("/proc/", pid, "/smaps_rollup"));
    if (!text.ok()) continue;
    const std::size_t at = text->find("\nPss:");
    if (at != std::string::npos) sum += std::strtod(text->c_str() + at + 5, nullptr) * 1024;
  }
  return sum;
}

}  // namespace drakkar::load
