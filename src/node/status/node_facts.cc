#include "node/status/node_facts.h"

#include "api/meta/quantity.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

std::string ReadLine(FileSystem& files, const std::string& path) {
  auto content = files.ReadFile(path);
  return content.ok() ? std::string(Trim(*content)) : std::string();
}

std::string Architecture() {
#if defined(__x86_64__)
  return "amd64";
#elif defined(__aarch64__)
  return "arm64";
#elif defined(__riscv)
  return "riscv64";
#else
  return "unknown";
#endif
}

// Sizes of pages are directories, "hugepages-2048kB".
std::map<std::string, std::int64_t> ReadHugePages(FileSystem& files) {
  constexpr std::string_view kPrefix = "hugepages-", kUnit = "kB";
  constexpr char kDirectory[] = "/sys/kernel/mm/hugepages";
  std::map<std::string, std::int64_t> pages;
  const auto names = files.ListDirectory(kDirectory);
  if (!names.ok()) return pages;
  for (const std::string& name : *names) {
    if (!name.starts_with(kPrefix) || !name.ends_with(kUnit)) continue;
    const auto kilobytes = ParseInt64(
        std::string_view(name).substr(kPrefix.size(), name.size() - kPrefix.size() - kUnit.size()));
    if (!kilobytes || *kilobytes <= 0) continue;
    const std::int64_t bytes = *kilobytes * 1024;
    const auto count = ParseInt64(ReadLine(files, StrCat(kDirectory, "/", name, "/nr_hugepages")));
    pages[api::Quantity(bytes, api::Quantity::Format::kBinarySI).ToString()] =
        bytes * count.value_or(0);
  }
  return pages;
}

}  // namespace

NodeFacts ReadNodeFacts(FileSystem& files) {
  NodeFacts facts;
  facts.architecture = Architecture();
  facts.hostname = ToLower(ReadLine(files, "/proc/sys/kernel/hostname"));
  facts.kernel_version = ReadLine(files, "/proc/sys/kernel/osrelease");
  facts.boot_id = ReadLine(files, "/proc/sys/kernel/random/boot_id");
  facts.machine_id = ReadLine(files, "/etc/machine-id");
  facts.system_uuid = ToLower(ReadLine(files, "/sys/class/dmi/id/product_uuid"));
  if (facts.system_uuid.empty()) facts.system_uuid = facts.machine_id;
  if (auto content = files.ReadFile("/proc/meminfo"); content.ok()) {
    for (std::string_view line : Split(*content, '\n')) {
      const std::size_t colon = line.find(':');
      const std::string_view name = line.substr(0, colon);
      if (name != "MemTotal" && name != "SwapTotal") continue;
      std::string_view number = Trim(line.substr(colon + 1));
      if (auto kilobytes = ParseInt64(number.substr(0, number.find(' ')))) {
        (name == "MemTotal" ? facts.memory_bytes : facts.swap_bytes) = *kilobytes * 1024;
      }
    }
  }
  facts.huge_pages = ReadHugePages(files);
  if (auto content = files.ReadFile("/proc/cpuinfo"); content.ok()) {
    std::int64_t count = 0;
    for (std::string_view line : Split(*content, '\n')) {
      if (line.starts_with("processor")) ++count;
    }
    if (count > 0) facts.cpu_count = count;
  }
  if (auto content = files.ReadFile("/etc/os-release"); content.ok()) {
    for (std::string_view line : Split(*content, '\n')) {
      if (!line.starts_with("PRETTY_NAME=")) continue;
      std::string_view name = Trim(line.substr(12));
      if (name.size() >= 2 && name.front() == '"' && name.back() == '"')
        name = name.substr(1, name.size() - 2);
      facts.os_image = std::string(name);
    }
  }
  return facts;
}

}  // namespace drakkar::node
